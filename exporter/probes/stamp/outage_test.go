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
	if 2**f.Lost <= *f.Sent || *f.Received == 0 {
		t.Fatalf("of %d packets %d were lost, want more than half, which were sent to no reflector: %s", *f.Sent, *f.Lost, asJSON(t, f))
	}
	if f.Delay == nil || f.Delay.P50 != nil {
		t.Errorf("more than half were lost, but the median is finite: %s", asJSON(t, f.Delay))
	}
	want := float64(*f.Lost) * (1 - float64(*f.Lost)/float64(*f.Sent))
	if f.BurstRatio == nil || math.Abs(*f.BurstRatio/want-1) > 0.02 {
		t.Errorf("BurstR %s of one run of %d in %d packets, want %.0f", asJSON(t, f.BurstRatio), *f.Lost, *f.Sent, want)
	}
}
