package stamp

import (
	"context"
	"strings"
	"testing"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/reflector"
	"oneway.example/tests/await"
)

// A path that cannot be measured from the start, as its source address is not on this host, is down in the metrics, and says why.
func TestPathWithoutItsAddressAtTheStartIsDown(t *testing.T) {
	t.Parallel()
	b := newTestbed(t, reflector.Options{})
	sink := &metrictest.Sink{}
	b.env.Sink = sink
	o := quick()
	o.Local = "203.0.113.9"
	p, err := NewType().NewProber(b.env, probe.Target{Path: "p", Probe: "stamp", Peer: "203.0.113.1"}, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	await.That(t, "the path is down", func() bool {
		up, known := sink.Value(metric.ProbeUp, "p", "stamp")
		return known && up == 0
	})
	await.That(t, "the path says why", func() bool {
		return strings.Contains(p.Status().Reason, "this host does not have the address 203.0.113.9 now")
	})
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
