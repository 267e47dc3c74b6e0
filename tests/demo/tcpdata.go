package main

import (
	"context"
	"fmt"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/core/tcpstamp"
	"oneway.example/tests/lab"
	"oneway.example/tests/tcplog"
)

// tcpDataRows are the delay of TCP data and the verdict about split TCP of one direction; c is its connection in the link's
// log, nil if that cannot be told.
func (s *stack) tcpDataRows(ctx context.Context, profile lab.Profile, d sample.Direction, link lab.Link, c *tcplog.Connection) []row {
	rate := float64(link.MeanRate()) / 8
	idle := (profile.Forward.Delay + profile.Reverse.Delay).Seconds()
	queue := max(0, float64(tcpWindow(profile))/rate-idle)
	median := row{
		Name: "tcp_delay_median_seconds", Direction: d.String(), Configured: link.Delay.Seconds() + queue, Unit: "seconds",
		Measured:  s.value(ctx, fmt.Sprintf(`%s{%s,direction=%q,quantile_rank="0.5"}`, metric.TCPDelayQuantile.Name, selector, d)),
		Bound:     orZero(s.value(ctx, fmt.Sprintf(`%s{%s,direction=%q,quantile_rank="0.5"}`, metric.TCPDelayQuantileBound.Name, selector, d))),
		Tolerance: 0.25*queue + 0.01, Why: "a quarter of the queue: the link's log could not be joined",
	}
	if c != nil {
		if truth := dataDelay(c, d); truth != nil {
			median.Truth, median.Tolerance, median.Why = truth, lab.MTU/rate, "a segment at the rate of the link: the next sample"
		}
	}
	return []row{median, {
		// The link's log has each acknowledgment that the receiver sent, and nothing else is on the path.
		Name: "tcp_split_detected", Direction: d.String(), Measured: s.value(ctx, metric.TCPSplit.Name+of(d)), Truth: exactly(0),
		Reason: s.undecided(ctx, d), Why: "nothing splits connections on this path",
	}}
}

// undecided is why the last run has no verdict about split TCP; empty: it has one.
func (s *stack) undecided(ctx context.Context, d sample.Direction) string {
	found, err := s.query(ctx, metric.TCPSplitUndecided.Name+of(d))
	s.failed(err)
	for _, one := range found {
		return "the run cannot tell: " + one.Metric[metric.ReasonL]
	}
	return ""
}

// fewestSamples is the number of samples from which on the ends keep a distance of samples.
const fewestSamples = 20

// dataDelay is the span of the medians of the delays that sampled bytes had on the link, each sent once, for all distances
// of samples that the ends may have kept; nil: there are too few.
func dataDelay(c *tcplog.Connection, d sample.Direction) (out *span) {
	all := c.Transmissions()
	first, last := int64(0), int64(0)
	if d == sample.Forward {
		first = all[0].End // the cookie, which is no part of the flow
	}
	for _, x := range all {
		last = max(last, x.End)
	}
	for step := int64(tcpstamp.Grid); ; step *= 2 {
		var offsets []int64
		for at := first + step; at <= last; at += step {
			offsets = append(offsets, at)
		}
		var once []bracket
		for _, b := range c.Bytes(offsets) {
			if len(b.Entries) == 1 && !b.Lost {
				once = append(once, bracket{b.Arrival.After.Sub(b.Entries[0]).Seconds(), b.Arrival.Before.Sub(b.Entries[0]).Seconds()})
			}
		}
		if len(once) < fewestSamples {
			return out
		}
		middle := func(of func(b bracket) float64) float64 { v := pick(once, of); return v[(len(v)-1)/2] }
		low, high := middle(func(b bracket) float64 { return b.least }), middle(func(b bracket) float64 { return b.most })
		if out == nil {
			out = &span{low, high}
		}
		out.Low, out.High = min(out.Low, low), max(out.High, high)
	}
}
