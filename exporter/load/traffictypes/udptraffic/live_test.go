package udptraffic

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/stream"
	"oneway.example/exporter/load/traffic"
	"oneway.example/exporter/net/sched"
	"oneway.example/tests/remoteend"
)

// proven is the address of a simulated client.
var proven = netip.MustParseAddrPort("127.0.0.1:9")

// simulated returns a session whose client is the test; each call of hello is a hello packet.
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
	hello = func() { f.challenge(s.id, proven) }
	return s, h, hello
}

// proves sets the proved address.
func (s *serving) proves(to netip.AddrPort) {
	s.recordReceived()
	s.to.Store(&to)
}

// greeting sends two hello packets a second for a time.
func greeting(hello func(), d time.Duration) {
	for range d / helloEvery {
		time.Sleep(helloEvery) // simulated time (synctest)
		hello()
	}
}

// silentAfter waits for the end of the session and fails unless it comes after the idle timeout, or at
// the next call of watch.
func silentAfter(t *testing.T, h *host, timeout time.Duration) {
	t.Helper()
	begin := time.Now()
	why := <-h.ended
	if took := time.Since(begin); !errors.Is(why, traffic.ErrIdleTimeout) || took < timeout || took > timeout+2*traffic.WatchInterval {
		t.Errorf("after %v: %v; want the end as silent after %v", took, why, timeout)
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
			silentAfter(t, h, 10*time.Second) // a client in a long pause would send hello packets
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

func TestSessionSurvivesAnOutageOfNineSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h, hello := simulated(t)
		s.proves(proven)
		for range 20 {
			greeting(hello, time.Second)
			time.Sleep(9 * time.Second) // simulated time (synctest)
		}
		select {
		case why := <-h.ended:
			t.Error(why)
		default:
		}
	})
}

func TestHelloOfAnotherAddressDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h, _ := simulated(t)
		s.proves(proven)
		ctx, cancel := context.WithCancel(t.Context())
		var others sync.WaitGroup
		others.Go(func() {
			for ctx.Err() == nil {
				s.remote.challenge(s.id, netip.AddrPortFrom(proven.Addr(), proven.Port()+1))
				s.remote.challenge(s.id+1, proven)
				time.Sleep(helloEvery) // simulated time (synctest)
			}
		})
		silentAfter(t, h, 10*time.Second)
		const want = "no test packet was received from 127.0.0.1:9 for 10 s; they come from port 10: a NAT changed the port"
		if idle, ok := errors.AsType[*traffic.IdleError](s.idleError()); !ok || idle.Detail != want {
			t.Errorf("%v, want %s", s.idleError(), want)
		}
		cancel()
		others.Wait()
	})
}

// The path may store packets of a reverse stream for long: its client waits for them, and the session is not idle.
func TestSessionIsBusyWhileItsClientWaitsForPackets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h, _ := simulated(t)
		s.drain(time.Minute)
		s.busy()
		time.Sleep(30 * time.Second) // simulated time (synctest)
		s.drain(MaxIdle)             // of the next stream
		s.busy()
		end := time.Now().Add(MaxIdle)
		time.Sleep(MaxIdle - time.Nanosecond) // simulated time (synctest)
		if until := h.busy(); !until.Equal(end) {
			t.Errorf("busy until %v, want %v", until, end)
		}
		time.Sleep(time.Nanosecond) // simulated time (synctest)
		synctest.Wait()
		if until := h.busy(); !until.IsZero() {
			t.Errorf("busy until %v after its end", until)
		}
	})
}

func TestReverseStreamIsFollowedByTheWaitForItsPackets(t *testing.T) {
	p := ready(t)
	for id, wait := range []time.Duration{MaxIdle, time.Minute} { // the begin of the second one ends the first wait
		x := startOf(uint16(id+1), sample.Reverse)
		x.Idle = wait
		if _, err := p.Start(t.Context(), x); err != nil {
			t.Fatal(err)
		}
		if _, _, err := p.Wait(t.Context(), x.ID); err != nil {
			t.Fatal(err)
		}
	}
	end := time.Now().Add(time.Minute)
	p.serving.Close() // all tasks have ended
	if until := p.host.busy(); until.IsZero() || until.After(end) {
		t.Errorf("busy until %v, want a minute after the last stream, %v", until, end)
	}
}

// A client that hangs before it has proved its address holds the link no longer than one that hangs later.
func TestClientWithoutAProofFreesTheLinkAfterTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, h, hello := simulated(t)
		begin := time.Now()
		greeting(hello, 5*time.Second) // from an address that is not proved
		silentAfter(t, h, 10*time.Second-time.Since(begin))
	})
}

func TestReverseStreamPausesAfterThreeSecondsUntilTheNextHello(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, hello := simulated(t)
		s.proves(proven)
		c := &consent{s, sched.Now()}
		for range 3 {
			time.Sleep(3 * time.Second) // simulated time (synctest)
			if !c.Given() {
				t.Error("after 3 s: no consent, want consent")
			}
			time.Sleep(time.Nanosecond) // simulated time (synctest)
			if c.Given() {
				t.Error("after more than 3 s: consent, want none")
			}
			time.Sleep(6 * time.Second) // simulated time (synctest)
			hello()
			if !c.Given() {
				t.Error("after a hello: no consent, want consent")
			}
		}
	})
}

// A hello shortly before the stream counts for it.
func TestReverseStreamThatBeginsHasThreeSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, _ := simulated(t)
		s.proves(proven)
		time.Sleep(8 * time.Second) // simulated time (synctest)
		c := &consent{s, sched.Now()}
		time.Sleep(3 * time.Second) // simulated time (synctest)
		if !c.Given() {
			t.Error("3 s after its begin: no consent, want consent")
		}
		time.Sleep(time.Nanosecond) // simulated time (synctest)
		if c.Given() {
			t.Error("more than 3 s after its begin: consent, want none")
		}
	})
}

// A pause neither ends a stream nor postpones its end.
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
						t.Errorf("9 s later: consent %v; end of the session: %v", c.Given(), s.ctx.Err())
					}
					hello()
					if !c.Given() {
						t.Error("after a hello: no consent, want consent")
					}
				}
				pause()
				silentAfter(t, h, 10*time.Second)
			})
		})
	}
}

// An error that paused a stream also pauses the next.
func TestErrorPausesTheNextStreamToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, hello := simulated(t)
		s.proves(proven)
		(&consent{s, sched.Now()}).Unreachable(syscall.EHOSTUNREACH)
		time.Sleep(time.Second) // simulated time (synctest)
		c := &consent{s, sched.Now()}
		if c.Given() {
			t.Error("consent without a packet since the error")
		}
		hello()
		if !c.Given() {
			t.Error("after a hello: no consent, want consent")
		}
	})
}

// A single error may be forged or refer to an earlier socket; an unreachable host may become reachable.
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
			time.Sleep(time.Millisecond) // simulated time (synctest)
			hello()
			for _, err := range errs.of {
				c.Unreachable(err)
			}
			if got := c.Given(); got != errs.given {
				t.Errorf("after %v: consent %v, want %v", errs.of, got, errs.given)
			}
			time.Sleep(time.Millisecond) // simulated time (synctest)
			hello()
			if !c.Given() {
				t.Errorf("after %v and a hello: no consent, want consent", errs.of)
			}
		}
	})
}

func TestConsentAllocatesNothing(t *testing.T) {
	s, _, _ := simulated(t)
	s.proves(proven)
	c := &consent{s, sched.Now()}
	if n := testing.AllocsPerRun(100, func() { c.Given() }); n > 0 {
		t.Errorf("%v allocations per call", n)
	}
}

// The last hello is 9 s old during the stream, so that the test need not wait.
func TestStreamToASilentClientEndsWithItsSession(t *testing.T) {
	p, x := streaming(t)
	p.serving.hello.Store(int64(sched.Now() - Outage))
	if why := <-p.host.ended; !errors.Is(why, traffic.ErrIdleTimeout) {
		t.Errorf("%v", why)
	}
	<-p.Done()
	remoteend.Eventually(t, "the stream's end", func() bool { return p.host.movedIn(sample.Reverse) > 0 })
	if got := p.host.movedIn(sample.Reverse); got > x.Plan.Bytes()/2 {
		t.Errorf("%d bytes were sent of %d", got, x.Plan.Bytes())
	}
}

// A packet of a stream from the proved address counts like a hello.
func TestStreamOfTheClientCountsLikeHellos(t *testing.T) {
	p := ready(t)
	x := startOf(1, sample.Forward)
	if _, err := p.Start(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	p.serving.hello.Store(int64(sched.Now() - Outage + time.Second))
	if _, err := p.session.Send(t.Context(), 1, p.at(), x.Plan, stream.SendOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := p.Sent(t.Context(), 1, 100); err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.Wait(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if ago := p.serving.idleTime(sched.Now()); ago > Outage/2 { // the limit is wide for a busy host
		t.Errorf("last heard %v ago, but packets arrived since", ago)
	}
}
