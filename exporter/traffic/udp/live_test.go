package udp

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"oneway.example/exporter/sample"
	"oneway.example/exporter/sched"
	"oneway.example/exporter/stream"
	"oneway.example/exporter/traffic"
	"oneway.example/tests/remoteend"
)

// proven is where a simulated client receives.
var proven = netip.MustParseAddrPort("127.0.0.1:9")

// simulated is a session whose client is this test, in a bubble or not: its hellos are the calls
// of hello.
func simulated(t *testing.T) (s *serving, h *host, hello func()) {
	t.Helper()
	f := newRemote(t)
	h = newHost()
	h.local = f.open()[0].LocalAddr()
	opened, _, refusal := f.Open(h, nil)
	if refusal != nil {
		t.Fatal(refusal)
	}
	s = opened.(*serving)
	t.Cleanup(s.Close)
	hello = func() { f.greeted(s.id, proven) }
	return s, h, hello
}

// proves is what a cookie from there would do.
func (s *serving) proves(to netip.AddrPort) {
	s.heardFrom()
	s.to.Store(&to)
}

// greeting says hello twice a second for a while.
func greeting(hello func(), d time.Duration) {
	for range d / helloEvery {
		time.Sleep(helloEvery) // simulated time (synctest)
		hello()
	}
}

// silentAfter waits for the end of the session and fails the test unless it comes when nothing
// was heard for so long, or at the next look.
func silentAfter(t *testing.T, h *host, bears time.Duration) {
	t.Helper()
	begin := time.Now()
	why := <-h.ended
	if took := time.Since(begin); !errors.Is(why, traffic.ErrSilent) || took < bears || took > bears+2*lookEvery {
		t.Errorf("after %v: %v; want the end as silent after %v", took, why, bears)
	}
}

func TestSilentClientBetweenTransfersFreesTheLinkAfterTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h, hello := simulated(t)
		s.proves(proven)
		greeting(hello, time.Minute)
		silentAfter(t, h, 10*time.Second)
	})
}

func TestSilentClientInAForwardTransferFreesTheLinkAfterTenSeconds(t *testing.T) {
	for _, pause := range []time.Duration{time.Millisecond, 20 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			s, h, hello := simulated(t)
			s.proves(proven)
			x := startOf(1, sample.Forward)
			x.Plan.Segments[0].Interval = pause
			s.set(sample.Forward, &transfer{Start: &x})
			greeting(hello, 3*time.Second)
			silentAfter(t, h, 10*time.Second) // in a long pause it would say hello
		})
	}
}

func TestSilentClientInAReverseTransferFreesTheLinkAfterTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h, hello := simulated(t)
		s.proves(proven)
		x := startOf(1, sample.Reverse)
		x.Plan.Segments[0].Interval = time.Minute
		s.set(sample.Reverse, &transfer{Start: &x})
		greeting(hello, 3*time.Second)
		silentAfter(t, h, 10*time.Second)
	})
}

func TestSessionOutlivesAnOutageOfNineSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h, hello := simulated(t)
		s.proves(proven)
		for range 20 {
			greeting(hello, time.Second)
			time.Sleep(9 * time.Second)
		}
		select {
		case why := <-h.ended:
			t.Error(why)
		default:
		}
	})
}

func TestHelloOfAnotherAddressIsNoSignOfLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h, _ := simulated(t)
		s.proves(proven)
		ctx, cancel := context.WithCancel(t.Context())
		var others sync.WaitGroup
		others.Go(func() {
			for ctx.Err() == nil {
				s.remote.greeted(s.id, netip.AddrPortFrom(proven.Addr(), proven.Port()+1))
				s.remote.greeted(s.id+1, proven)
				time.Sleep(helloEvery)
			}
		})
		silentAfter(t, h, 10*time.Second)
		cancel()
		others.Wait()
	})
}

// One that has proved no address is waited for as long as the load server waits for anything.
func TestClientThatHasProvedNothingIsTheLoadServersToSendAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, h, _ := simulated(t)
		time.Sleep(time.Hour)
		select {
		case why := <-h.ended:
			t.Error(why)
		default:
		}
	})
}

func TestReverseStreamPausesAfterThreeSecondsAndGoesOnWithTheNextHello(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, hello := simulated(t)
		s.proves(proven)
		c := &consent{s, sched.Now()}
		for range 3 {
			time.Sleep(3 * time.Second)
			if !c.Given() {
				t.Error("after 3 s: it has paused")
			}
			time.Sleep(time.Nanosecond)
			if c.Given() {
				t.Error("after more than 3 s: it has not paused")
			}
			time.Sleep(6 * time.Second)
			hello()
			if !c.Given() {
				t.Error("after a hello: it has paused")
			}
		}
	})
}

// A client that begins may be busy with that: what it said before is as good.
func TestReverseStreamThatBeginsHasThreeSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, _ := simulated(t)
		s.proves(proven)
		time.Sleep(8 * time.Second)
		c := &consent{s, sched.Now()}
		time.Sleep(3 * time.Second)
		if !c.Given() {
			t.Error("3 s after its beginning it has paused")
		}
		time.Sleep(time.Nanosecond)
		if c.Given() {
			t.Error("more than 3 s after its beginning it has not paused")
		}
	})
}

// What pauses a stream does not end it, nor does it put off its end.
func TestPausedStreamGoesOnOrEndsWithItsSessionTenSecondsAfterTheLastHello(t *testing.T) {
	for name, errs := range map[string][]syscall.Errno{
		"silence": nil, "host unreachable": {syscall.EHOSTUNREACH},
		"closed port": {syscall.ECONNREFUSED, syscall.ECONNREFUSED, syscall.ECONNREFUSED},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, h, hello := simulated(t)
				s.proves(proven)
				c := &consent{s, sched.Now()}
				pause := func() {
					for _, err := range errs {
						c.Unreachable(err)
					}
				}
				for range 10 {
					greeting(hello, 5*time.Second)
					pause()
					time.Sleep(9 * time.Second) // an outage
					if c.Given() || s.ctx.Err() != nil {
						t.Errorf("9 s later it goes on: %v; the session's end: %v", c.Given(), s.ctx.Err())
					}
					hello()
					if !c.Given() {
						t.Error("after a hello it does not go on")
					}
				}
				pause()
				silentAfter(t, h, 10*time.Second)
			})
		})
	}
}

// A stream that begins where the one before was stopped by an error is not the try that finds out.
func TestErrorPausesTheNextStreamToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, hello := simulated(t)
		s.proves(proven)
		(&consent{s, sched.Now()}).Unreachable(syscall.EHOSTUNREACH)
		time.Sleep(time.Second)
		c := &consent{s, sched.Now()}
		if c.Given() {
			t.Error("it begins, and nothing was heard since the error")
		}
		hello()
		if !c.Given() {
			t.Error("after a hello it does not begin")
		}
	})
}

// One error may be forged, or of what was before; a host that cannot be reached may be again.
func TestErrorsFromTheNetworkPauseAStreamUntilTheNextHello(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, hello := simulated(t)
		s.proves(proven)
		c := &consent{s, sched.Now()}
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
			time.Sleep(time.Millisecond)
			hello()
			for _, err := range errs.of {
				c.Unreachable(err)
			}
			if got := c.Given(); got != errs.given {
				t.Errorf("after %v: may send %v, want %v", errs.of, got, errs.given)
			}
			time.Sleep(time.Millisecond)
			hello()
			if !c.Given() {
				t.Errorf("after %v, and a hello: it does not go on", errs.of)
			}
		}
	})
}

func TestAskingForConsentAllocatesNothing(t *testing.T) {
	s, _, _ := simulated(t)
	s.proves(proven)
	c := &consent{s, sched.Now()}
	if n := testing.AllocsPerRun(100, func() { c.Given() }); n > 0 {
		t.Errorf("%v allocations each time that it is asked", n)
	}
}

// The client has said hello until 9 s ago, and streams meanwhile; no real time is waited for.
func TestStreamToASilentClientEndsWithItsSession(t *testing.T) {
	p, x := streaming(t)
	p.serving.hello.Store(int64(sched.Now() - Outage))
	if why := <-p.host.ended; !errors.Is(why, traffic.ErrSilent) {
		t.Errorf("%v", why)
	}
	<-p.Done()
	remoteend.Eventually(t, "the stream's end", func() bool { return p.host.movedIn(sample.Reverse) > 0 })
	if got := p.host.movedIn(sample.Reverse); got > x.Plan.Bytes()/2 {
		t.Errorf("%d bytes were sent of %d", got, x.Plan.Bytes())
	}
}

// What comes from the proved address of a stream is as good as a hello.
func TestStreamOfTheClientIsASignOfLife(t *testing.T) {
	p := ready(t)
	x := startOf(1, sample.Forward)
	if _, err := p.Start(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	p.serving.hello.Store(int64(sched.Now() - Outage + time.Second))
	if _, err := p.session.Send(t.Context(), 1, p.at(), x.Plan, stream.How{}); err != nil {
		t.Fatal(err)
	}
	if err := p.Sent(t.Context(), 1, 100); err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.Wait(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if ago := p.serving.unheard(sched.Now()); ago > Outage/2 { // a busy host takes its time
		t.Errorf("heard %v ago, and packets have come since", ago)
	}
}
