package stamp

import (
	"context"
	"errors"
	"testing"
	"time"

	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/reflector"
	"oneway.example/tests/namespace"
)

// A measurement of a number of packets ends, too, if the host sends none of them.
func TestMeasurementEndsWithoutARoute(t *testing.T) {
	host := namespace.New(t)
	b := newTestbed(t, reflector.Options{})
	b.env.Sink = &metrictest.Sink{}
	o := quick()
	o.Interval = 10 * time.Millisecond
	p, err := NewType().NewProber(b.env, probe.Target{Path: "p", Probe: "stamp", Peer: "192.0.2.1:862"}, o)
	namespace.Check(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var r Report
	namespace.Do(t, host, func() { r, err = p.Measure(ctx, 5, func(Report) {}) })
	if ctx.Err() != nil || err != nil && !errors.Is(err, probe.ErrNoReply) {
		t.Fatalf("%v, %v", ctx.Err(), err)
	}
	if r.RoundTrip.Received != 0 || len(r.Skipped) == 0 {
		t.Errorf("%d replies, skipped %v; want none, and the reason", r.RoundTrip.Received, r.Skipped)
	}
}
