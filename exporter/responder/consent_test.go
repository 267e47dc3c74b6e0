package responder

import (
	"context"
	"sync"
	"syscall"
	"testing"
	"time"

	"oneway.example/exporter/control"
	"oneway.example/exporter/sample"
	"oneway.example/exporter/sched"
)

// While a stream fills the way to the client, its connection may be silent for Idle; but
// one that said hello meanwhile, and no longer does, is not waited for.
func TestStreamStopsWhenTheClientSaysNoHelloAnyMore(t *testing.T) {
	s := newSite(t, Options{}, "a")
	w := newWire(t, s.r.Addrs()[0])
	p := s.joinOver(w)
	alive, vanish := context.WithCancel(t.Context())
	var greeting sync.WaitGroup
	greeting.Go(func() { p.session.KeepAlive(alive, p.at()) })
	defer greeting.Wait()
	defer vanish()
	p.streaming(time.Minute)
	eventually(t, "hellos", func() bool { return p.hellos() >= 3 })
	close(w.frozen)
	vanish()
	p.quiet(control.Outage+2*second, "silent")
}

// An address is proved for as long as it is heard, and two minutes.
func TestProofOfASilentAddressExpires(t *testing.T) {
	s := newSite(t, Options{}, "a")
	p := s.ready("a", 1<<20)
	silence := func(d time.Duration) {
		v, _ := s.r.byID.Load(p.opened.Session)
		v.(*session).hello.Store(int64(sched.Now() - d))
	}
	ask := func(id uint16, d sample.Direction) error {
		x := transferOf(id, d)
		r, err := p.session.Expect(id, x.Plan)
		if err == nil {
			_, err = p.Start(t.Context(), x)
		}
		if err == nil && d == sample.Forward {
			if _, err = p.session.Send(t.Context(), id, p.at(), x.Plan, nil); err == nil {
				err = p.Sent(t.Context(), id, 100)
			}
		}
		if err == nil {
			_, _, err = p.Wait(t.Context(), id)
		}
		r.Finish(t.Context(), 0, 0)
		return err
	}
	silence(2*time.Minute - patience)
	if err := ask(1, sample.Reverse); err != nil {
		t.Errorf("before it expires: %v", err)
	}
	silence(2*time.Minute + second)
	if r := refusal(t, ask(2, sample.Reverse)); r.Reason != control.Unproved || r.ID != 2 {
		t.Errorf("afterwards: %v", r)
	}
	if err := ask(3, sample.Forward); err != nil {
		t.Errorf("in the other direction: %v", err)
	}
	// What came from there is as good as a hello.
	if err := ask(4, sample.Reverse); err != nil {
		t.Errorf("after a stream from there: %v", err)
	}
	if err := p.prove(); err != nil {
		t.Errorf("proving again: %v", err)
	}
	if err := ask(5, sample.Reverse); err != nil {
		t.Errorf("proved again: %v", err)
	}
}

// One error may be forged, or of what was before; a host that cannot be reached may be again.
func TestErrorsFromTheNetworkPauseAStreamUntilTheNextHello(t *testing.T) {
	s := newSite(t, Options{}, "a")
	p := s.ready("a", 1<<20)
	v, _ := s.r.byID.Load(p.opened.Session)
	x := transferOf(1, sample.Reverse)
	c := v.(*session).consent(&x)
	c.s.hellos.Add(2) // it says hello, so that no word of its connection counts
	for _, errs := range []struct {
		of    []syscall.Errno
		given bool
	}{
		{[]syscall.Errno{syscall.EMSGSIZE, syscall.EMSGSIZE, syscall.EMSGSIZE}, true},
		{[]syscall.Errno{syscall.ECONNREFUSED, syscall.ECONNREFUSED}, true},
		{[]syscall.Errno{syscall.ECONNREFUSED, syscall.ECONNREFUSED, syscall.ECONNREFUSED}, false},
		{[]syscall.Errno{syscall.ECONNREFUSED, syscall.ENOPROTOOPT, syscall.ECONNREFUSED}, false},
		{[]syscall.Errno{syscall.EHOSTUNREACH}, false},
		{[]syscall.Errno{syscall.ENETUNREACH}, false},
	} {
		c.s.heardFrom()
		for _, err := range errs.of {
			c.Unreachable(err)
		}
		if got := c.Given(); got != errs.given {
			t.Errorf("after %v: may send %v, want %v", errs.of, got, errs.given)
		}
		c.s.heardFrom()
		if !c.Given() {
			t.Errorf("after %v, and a hello: it does not go on", errs.of)
		}
	}
	if n := testing.AllocsPerRun(100, func() { c.Given() }); n > 0 {
		t.Errorf("%v allocations each time that it is asked", n)
	}
}

func TestConsentIsWaitedForSevenSecondsAndAConnectionTen(t *testing.T) {
	c := new(consent)
	for _, look := range []struct {
		given  bool
		at     time.Duration
		waited bool
	}{
		{true, 1 * second, false}, {false, 10 * second, false}, {false, 17*second - 1, false}, {true, 17 * second, false}, // in time
		{false, 20 * second, false}, {false, 27*second - 1, false}, {false, 27 * second, true},
	} {
		if got := c.waited(look.given, look.at); got != look.waited {
			t.Errorf("at %v: waited for long enough: %v, want %v", look.at, got, look.waited)
		}
	}
	for idle, quiet := range map[time.Duration]time.Duration{
		control.MinIdle: 3 * second, 5 * second: 5900 * time.Millisecond, time.Minute: 10 * second,
	} {
		if got := new(session).consent(&control.Transfer{Idle: idle}).quiet; got != quiet {
			t.Errorf("a client without hellos may be silent for %v in a transfer whose drain_timeout is %v, want %v", got, idle, quiet)
		}
	}
}

// hellos are those that the responder has counted of this peer.
func (p *peer) hellos() uint64 {
	v, ok := p.site.r.byID.Load(p.opened.Session)
	if !ok {
		return 0
	}
	return v.(*session).hellos.Load()
}
