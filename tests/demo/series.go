package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
)

const selector = `job="oneway",path="client-to-server"`

func of(d sample.Direction) string { return fmt.Sprintf(`{%s,direction=%q}`, selector, d) }

// failed records an error of a query. Its values are missing then, and the exit status is 1.
func (s *stack) failed(err error) {
	if err != nil {
		s.failures = append(s.failures, err)
	}
}

// value is the single value of a query; nil if there is none.
func (s *stack) value(ctx context.Context, q string) *float64 {
	all, err := s.query(ctx, q)
	if err == nil && len(all) > 1 {
		err = fmt.Errorf("got %d series, want 1: %s", len(all), q)
	}
	if err != nil || len(all) == 0 {
		s.failed(err)
		return nil
	}
	v, err := all[0].number()
	if err != nil {
		s.failed(err)
		return nil
	}
	return &v
}

// counterNames are those that countRows needs: the part after oneway_packets_, without _total.
var counterNames = []string{"sent", "received", "lost", "host_dropped", "duplicated", "corrupted", "outstanding"}

// counters are the packet counters of a direction, all of one scrape by one query. Absent ones are not in the map.
func (s *stack) counters(ctx context.Context, d sample.Direction) map[string]float64 {
	all, err := s.query(ctx, fmt.Sprintf(`{__name__=~"oneway_packets_(%s)(_total)?",%s,direction=%q}`, strings.Join(counterNames, "|"), selector, d))
	s.failed(err)
	out := map[string]float64{}
	for _, one := range all {
		v, err := one.number()
		s.failed(err)
		out[strings.TrimSuffix(strings.TrimPrefix(one.Metric["__name__"], "oneway_packets_"), "_total")] = v
	}
	return out
}

// point is one scraped value, with the time at which the scrape began.
type point struct {
	at    instant.Time
	value float64
}

// points are all values of a series since the session began.
func (s *stack) points(ctx context.Context, q string) []point {
	var all []struct {
		Values [][2]any `json:"values"`
	}
	q = fmt.Sprintf("%s[%ds]", q, int(time.Since(s.began).Seconds())+1)
	err := s.queryServer(ctx, q, func(_ string, result json.RawMessage) error { return json.Unmarshal(result, &all) })
	if err == nil && len(all) > 1 {
		err = fmt.Errorf("got %d series, want 1: %s", len(all), q)
	}
	if err != nil || len(all) == 0 {
		s.failed(err)
		return nil
	}
	var out []point
	for _, one := range all[0].Values {
		v, err := series{Value: one}.number()
		s.failed(err)
		at, _ := one[0].(float64)
		out = append(out, point{instant.FromUnix(0, int64(math.Round(1e3*at))*1e6), v})
	}
	return out
}
