package slareport

import (
	"context"
	"fmt"
	"math"
	"time"

	"oneway.example/exporter/core/metric"
)

// loadTests are the intervals that load tests affected, by their ends in Unix seconds: one ran in it or in the one before, whose
// packets may be counted after it. By a clock of the agent that is wrong, a time is recent if it changes.
func (r *Row) loadTests(ctx context.Context, c *client, interval time.Duration) (map[int64]bool, error) {
	tested := map[int64]bool{}
	series, two := metric.PathTested.Name+"{"+r.pathMatch()+"}", 2*interval
	// A change is between two samples, so that its range is longer.
	query := fmt.Sprintf("max(-60 < time() - max_over_time(%s[%s]) < %.0f or changes(%s[%dms]) > 0)", series, seconds(two), two.Seconds(), series, (two+interval).Milliseconds()-1)
	err := r.intervals(ctx, c, query, interval, func(end, _ float64) { tested[int64(end)] = true })
	return tested, err
}

// intervals evaluates a query at the end of each interval of the row. The value at the end of an interval is that interval's.
// Prometheus 2 includes the begin of a range: with a range as long as the interval a sample at the border would count in two.
func (r *Row) intervals(ctx context.Context, c *client, query string, interval time.Duration, each func(end, value float64)) error {
	for from := r.From; !from.Add(interval).After(r.To); { // the rest is no interval
		to := from.Add(min(longestPart, r.To.Sub(from)))
		all, err := c.through(ctx, query, from.Add(interval), to, interval)
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
