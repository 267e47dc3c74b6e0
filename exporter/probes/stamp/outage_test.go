package stamp

import (
	"math"
	"net/netip"
	"testing"

	"oneway.example/exporter/probe"
	"oneway.example/exporter/reflector"
)

// TestOutageOfTheRemoteEndIsInTheWindow: the reflector is stopped from the run's first report until 1800 of 2300
// packets have been sent, and returns with a new session.
func TestOutageOfTheRemoteEndIsInTheWindow(t *testing.T) {
	t.Parallel()
	b := newTestbed(t, reflector.Options{})
	at, stopFirst := b.reflect(t, netip.MustParseAddrPort("127.0.0.1:0"))
	p, err := NewType().NewProber(b.env, probe.Target{Peer: at.String()}, quick())
	if err != nil {
		t.Fatal(err)
	}
	var stopSecond func()
	away := false
	o, err := p.Measure(t.Context(), 2300, func(r Report) {
		switch sent := *r.Forward.Sent; {
		case !away && stopSecond == nil:
			stopFirst()
			away = true
		case away && sent >= 1800:
			_, stopSecond = b.reflect(t, at)
			away = false
		}
	})
	if stopSecond == nil {
		t.Fatal("the run ended before the remote end returned")
	}
	defer stopSecond()
	if err != nil {
		t.Fatal(err)
	}
	f := o.Forward
	// Some of the packets may have reached the first reflector, which lost its counts.
	if f.Undecided == nil || 2**f.Undecided <= *f.Sent || *f.Received == 0 || *f.Sent != *f.Received+*f.Lost+*f.Undecided {
		t.Fatalf("of %d packets more than half have an outcome, although they were sent to no reflector: %s", *f.Sent, asJSON(t, f))
	}
	if f.Delay == nil || f.Delay.P50 != nil || f.BurstRatio != nil || f.Loss != nil {
		t.Errorf("more than half are undecided, but the median, BurstR or the loss is known: %s", asJSON(t, f))
	}
	if want := float64(*f.Undecided) / float64(*f.Sent); f.LossLimits == nil || math.Abs(f.LossLimits.High/want-1) > 0.02 || f.LossLimits.Low > 0.02 {
		t.Errorf("loss within %s, want at most %.2f", asJSON(t, f.LossLimits), want)
	}
	if lost := o.RoundTrip.Lost; 2*lost <= *f.Sent || o.RoundTrip.Time.P50 != nil {
		t.Errorf("%d round trips lost, median %s; want more than half, and none", lost, asJSON(t, o.RoundTrip.Time))
	}
}
