package stamp

import (
	"context"
	"testing"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/reflector"
	"oneway.example/tests/await"
)

func TestDSCPArrivesAsItWasSentOverTheLoopback(t *testing.T) {
	b, sink := newTestbed(t, reflector.Options{}), &metrictest.Sink{}
	b.env.Sink = sink
	o := quick()
	o.DSCP = 46
	p, err := NewType().NewProber(b.env, probe.Target{Path: "p", Probe: "stamp", Peer: b.peer}, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	for _, direction := range []string{"forward", "reverse"} {
		await.That(t, "the DSCP "+direction, func() bool {
			v, known := sink.Value(metric.DSCP, "p", "stamp", direction)
			return known && v == 46
		})
		if v, known := sink.Value(metric.DSCPRemarked, "p", "stamp", direction); known {
			t.Errorf("%s: %v packets were remarked", direction, v)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
