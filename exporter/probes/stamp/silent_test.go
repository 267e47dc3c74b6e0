package stamp

import (
	"context"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/reflector"
	"oneway.example/tests/await"
)

// TestTargetThatIsDownHasLossOfOne: it replies, then it is stopped. The direction of its losses is not known, but the
// loss of round trips is, in both profiles.
func TestTargetThatIsDownHasLossOfOne(t *testing.T) {
	for _, profile := range []metric.Profile{metric.Full, metric.Slim} {
		b := newTestbed(t, reflector.Options{})
		at, stopReflector := b.reflect(t, netip.MustParseAddrPort("127.0.0.1:0"))
		sink := &metrictest.Sink{}
		b.env.Sink, b.env.Profile = sink, profile
		o := DefaultOptions()
		o.Interval, o.Window, o.LossTimeout = 10*time.Millisecond, time.Second, 100*time.Millisecond
		made, err := NewType().NewProber(b.env, probe.Target{Path: "p", Probe: "stamp", Peer: at.String()}, o)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- made.Run(ctx) }()
		loss := func(want float64) func() bool {
			return func() bool {
				v, ok := sink.Value(metric.RoundTripLossRatio, "p", "stamp")
				return ok && v == want
			}
		}
		await.That(t, "no loss while it replies", loss(0))
		stopReflector()
		await.That(t, "loss of 1 while it is down", loss(1))
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// TestUnreachablePeerHasARemedy: errors that ICMP reports name what to do.
func TestUnreachablePeerHasARemedy(t *testing.T) {
	for err, want := range map[error]string{
		syscall.ECONNREFUSED: "`oneway reflect`", syscall.EHOSTUNREACH: "`ip route get 192.0.2.7`", syscall.ENETUNREACH: "`ip route get 192.0.2.7`",
	} {
		f := newSessionFixture(t, time.Millisecond, nil)
		v := f.snapshot()
		v.peer, v.peerError = netip.MustParseAddrPort("192.0.2.7:862"), err
		if got := v.silence(); !strings.Contains(got, want) || !strings.Contains(got, err.Error()) {
			t.Errorf("%v: %s", err, got)
		}
	}
}
