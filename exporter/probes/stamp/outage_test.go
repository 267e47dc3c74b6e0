package stamp

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"oneway.example/exporter/probe"
	"oneway.example/exporter/reflector"
)

// TestOutageOfTheFarEndIsInTheWindow: the reflector is away for 1.8 s of 3 s and comes back with a
// new session.
func TestOutageOfTheFarEndIsInTheWindow(t *testing.T) {
	b := newBed(t, reflector.Options{})
	start := func(at netip.AddrPort) (*reflector.Reflector, func()) {
		r, err := reflector.New(reflector.Options{Listen: []netip.AddrPort{at}}, reflector.Env{Log: b.env.Log, Sink: b.env.Sink, Clock: b.env.Clock})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx) }()
		<-r.Started()
		return r, func() { cancel(); <-done }
	}
	first, stopFirst := start(netip.MustParseAddrPort("127.0.0.1:0"))
	at := first.Addrs()[0]
	p, err := New().NewProber(b.env, probe.Target{Peer: at.String()}, quick())
	if err != nil {
		t.Fatal(err)
	}
	stopSecond := func() {}
	ticks := 0
	o, err := p.Measure(t.Context(), 1500, func(Report) {
		if ticks++; ticks == 1 {
			stopFirst()
			time.Sleep(1800 * time.Millisecond)
			_, stopSecond = start(at)
		}
	})
	defer func() { stopSecond() }()
	if err != nil {
		t.Fatal(err)
	}
	f := o.Forward
	t.Logf("skipped %v; forward %s", o.Skipped, asJSON(t, f))
	if 2**f.Lost > *f.Sent && f.Delay.P50 != nil {
		t.Errorf("%d of %d lost in one run: got p50 %.6f s, BurstR %s; true p50 infinite, BurstR %.0f", *f.Lost, *f.Sent, *f.Delay.P50, asJSON(t, f.BurstRatio), float64(*f.Lost)*(1-float64(*f.Lost)/float64(*f.Sent)))
	}
}
