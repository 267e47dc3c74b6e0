package slareport

import (
	"context"
	"fmt"
	"math"
	"time"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/rules"
	"oneway.example/exporter/serve/promapi"
)

// loadTests are the intervals that load tests affected, by their ends in Unix seconds: one ran in it or in the one before, whose
// packets may be counted after it.
func (r *Row) loadTests(ctx context.Context, c *promapi.Client, interval time.Duration) (map[int64]bool, error) {
	tested := map[int64]bool{}
	series := metric.PathTested.Name + "{" + r.pathMatch() + "}"
	query := "max(" + rules.Tested(series, 2*interval, 3*interval-time.Millisecond) + ")"
	err := r.intervals(ctx, c, query, interval, func(end, _ float64) { tested[int64(end)] = true })
	return tested, err
}

// maintenance are the intervals of planned work, by their ends in Unix seconds: the path was under maintenance in it or in the one before, whose packets may be
// counted after it. The time in which the agent was not scraped is without data, planned or not.
func (r *Row) maintenance(ctx context.Context, c *promapi.Client, interval time.Duration) (map[int64]bool, error) {
	planned := map[int64]bool{}
	query := fmt.Sprintf("max(max_over_time(%s{%s}[%dms]))", metric.PathMaintenance.Name, r.pathMatch(), 2*interval.Milliseconds()-1)
	err := r.intervals(ctx, c, query, interval, func(end, _ float64) { planned[int64(end)] = true })
	return planned, err
}

// intervals evaluates a query at the end of each interval of the row. The value at the end of an interval is that interval's.
// Prometheus 2 includes the begin of a range: with a range as long as the interval a sample at the border would count in two.
func (r *Row) intervals(ctx context.Context, c *promapi.Client, query string, interval time.Duration, each func(end, value float64)) error {
	for from := r.From; !from.Add(interval).After(r.To); { // the rest is no interval
		to := from.Add(min(longestPart, r.To.Sub(from)))
		all, err := c.Range(ctx, query, from.Add(interval), to, interval)
		if err != nil {
			return err
		}
		for _, one := range all {
			for _, v := range one.Values {
				if !math.IsNaN(float64(v.Value)) { // else neither up nor down
					each(float64(v.Timestamp)/1000, float64(v.Value))
				}
			}
		}
		from = to
	}
	return nil
}

// outside are the parts of the period outside of these intervals.
func (r *Row) outside(tested map[int64]bool, interval time.Duration) (all []Period) {
	begin := r.From
	for end := r.From.Add(interval); !end.After(r.To); end = end.Add(interval) {
		if !tested[end.Unix()] {
			continue
		}
		if last := end.Add(-interval); last.After(begin) {
			all = append(all, Period{From: begin, To: last})
		}
		begin = end
	}
	if begin.Before(r.To) {
		all = append(all, Period{From: begin, To: r.To})
	}
	return all
}
