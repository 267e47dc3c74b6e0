package stamp

import (
	"context"
	"strings"
	"testing"

	"oneway.example/exporter/core/lightreason"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/reflector"
	"oneway.example/tests/await"
)

// A path that cannot be measured from the start is down in the metrics, which alerts need, and says why.
func TestPathThatCannotBeginIsDown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		peer   string
		change func(*Options)
		says   string
	}{
		"address of local is not on this host": {"203.0.113.1", func(o *Options) { o.Local = "203.0.113.9" }, "this host does not have the address 203.0.113.9 now"},
		"interface of a link-local address":    {"fe80::1%nosuch", func(*Options) {}, "this host has no interface nosuch"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := quick()
			c.change(&o)
			testDown(t, c.peer, o, c.says)
		})
	}
}

// testDown awaits that a path is down, with the reason not_sent in words.
func testDown(t *testing.T, peer string, o Options, says string) {
	t.Helper()
	b := newTestbed(t, reflector.Options{})
	sink := &metrictest.Sink{}
	b.env.Sink = sink
	p, err := NewType().NewProber(b.env, probe.Target{Path: "p", Probe: "stamp", Peer: peer}, o)
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
		s := p.Status()
		return s.Cause == string(lightreason.NotSent) && strings.Contains(s.Reason, says)
	})
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
