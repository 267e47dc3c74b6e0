package udptraffic

import (
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/stream"
	"oneway.example/tests/remoteend"
)

func TestLoadServerSendsHellosToTheProvedAddressOnly(t *testing.T) {
	p := meet(t, running(t), newHost())
	cookie, err := p.session.Hello(t.Context(), p.at())
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(3 * helloEvery) // the absence of packets has no event
	if n := p.endpoint.Stats().Hellos; n != 0 {
		t.Errorf("%d hellos before the proof", n)
	}
	if ago, greeted := p.session.LastReceived(); greeted || ago < 3*helloEvery {
		t.Errorf("the last packet is %v old, greeted: %v; want the challenge", ago, greeted)
	}
	if err := p.Prove(t.Context(), cookie); err != nil {
		t.Fatal(err)
	}
	remoteend.Eventually(t, "three hellos", func() bool { return p.endpoint.Stats().Hellos >= 3 })
	if ago, greeted := p.session.LastReceived(); !greeted || ago > remoteend.Timeout {
		t.Errorf("the last packet is %v old, greeted: %v", ago, greeted)
	}
}

// The packets of a stream show that the load server runs; one with long pauses has hellos too.
func TestLoadServerSendsHellosUnlessAStreamReplacesThem(t *testing.T) {
	for pause, want := range map[time.Duration]bool{1200 * time.Millisecond: true, time.Millisecond: false} {
		p := ready(t)
		remoteend.Eventually(t, "the first hello", func() bool { return p.endpoint.Stats().Hellos >= 1 })
		x := startOf(1, sample.Reverse)
		s := x.Plan.Segments[0]
		s.Bursts = int(1200 * time.Millisecond / s.Interval)
		later := s
		later.Pause = pause
		x.Plan.Segments = []stream.Segment{s, later}
		r, err := p.session.Expect(1, x.Plan)
		if err != nil {
			t.Fatal(err)
		}
		go (&carrier{session: p.session, remote: p.at()}).hello(t.Context()) // consent
		if _, err := p.Start(t.Context(), x); err != nil {
			t.Fatal(err)
		}
		remoteend.Eventually(t, "the stream", func() bool { return r.Progress().Packets > 0 })
		before := p.endpoint.Stats().Hellos
		remoteend.Eventually(t, "most of the stream", func() bool { return r.Progress().Packets > 2*s.Bursts-s.Bursts/2 })
		if during := p.endpoint.Stats().Hellos - before; want && during == 0 || !want && during > 1 { // one may be under way
			t.Errorf("a pause of %v: %d hellos during the stream", pause, during)
		}
		if _, _, err := p.Wait(t.Context(), 1); err != nil {
			t.Error(err)
		}
	}
}
