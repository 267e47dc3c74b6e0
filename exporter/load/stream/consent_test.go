package stream

import (
	"context"
	"net/netip"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// consentOf calls a function of the test, and counts ICMP errors.
type consentOf struct {
	given  func() bool
	errors atomic.Int64
	last   atomic.Int64
}

func (c *consentOf) Given() bool { return c.given() }
func (c *consentOf) Unreachable(err syscall.Errno) {
	c.last.Store(int64(err))
	c.errors.Add(1)
}

// gaps returns the ranges of packets that were not sent.
func gaps(s *Sent) (runs [][2]int) {
	for i := range s.Packets {
		switch n := len(runs); {
		case s.Packets[i].Stamp.Present():
		case n > 0 && runs[n-1][1] == i:
			runs[n-1][1]++
		default:
			runs = append(runs, [2]int{i, i + 1})
		}
	}
	return runs
}

func TestStreamPausesWithoutConsentAndResumesInItsPlan(t *testing.T) {
	e := newEnds(t)
	p := Plan{Segments: []Segment{{PayloadBytes: 200, Interval: time.Millisecond, Burst: 1, Bursts: 1500}}}
	r, err := e.there.Expect(1, p)
	if err != nil {
		t.Fatal(err)
	}
	refused, before := 0, uint64(0)
	quiet := true
	sent, err := e.here.Send(t.Context(), 1, e.server.LocalAddr(), p, SendOptions{Consent: &consentOf{given: func() bool {
		if r.Progress().Packets < 50 || refused == 10 {
			return true
		}
		if refused++; refused == 1 {
			before = e.client.Stats().Socket.Sent
		}
		quiet = quiet && e.client.Stats().Socket.Sent == before
		return false
	}}})
	if err != nil {
		t.Fatal(err)
	}
	runs := gaps(sent)
	if len(runs) != 1 || runs[0][0] < 50 || runs[0][1]-runs[0][0] < 80 || !quiet {
		t.Fatalf("packets %v were withheld, no others sent during the pause: %v; want those of 90 ms, after the first 50", runs, quiet)
	}
	withheld := runs[0][1] - runs[0][0]
	if len(sent.Packets) != 1500 || sent.Refused != 0 || sent.Withheld() != withheld {
		t.Errorf("%d packets, %d refused, %d withheld of %d", len(sent.Packets), sent.Refused, sent.Withheld(), withheld)
	}
	for i := 1; i < len(sent.Packets); i++ {
		if d := sent.Packets[i].Due.Sub(sent.Packets[i-1].Due); d < 0 || d > 100*time.Millisecond {
			t.Fatalf("packet %d is due %v after the previous one", i, d)
		}
	}
	if got := r.Finish(t.Context(), 1500-withheld, testLimit); len(got.Packets) != 1500-withheld {
		t.Errorf("%d of %d arrived", len(got.Packets), 1500-withheld)
	}
	if again, err := ParseSent(sent.AppendTo(nil), MaxPackets); err != nil || (&Sent{Packets: again}).Withheld() != withheld {
		t.Errorf("the records have %d withheld, %v", (&Sent{Packets: again}).Withheld(), err)
	}
}

// Packets without a planned time wait; a stream with feedback does not catch up.
func TestPauseOfAStreamWithoutTimesWithholdsNothing(t *testing.T) {
	e := newEnds(t)
	const at = 10 * time.Second
	for name, c := range map[string]struct {
		plan    Plan
		after   time.Duration
		packets int
		due     time.Duration
		done    bool
	}{
		"unpaced":         {Plan{Segments: []Segment{{PayloadBytes: 200, Burst: 1, Bursts: 100}}}, time.Second, 0, at, false},
		"feedback":        {adjustedPlan(5000), time.Second, 0, at + time.Second, false},
		"feedback, over":  {adjustedPlan(500), time.Second, 0, 0, true},
		"paced":           {Plan{Segments: []Segment{{PayloadBytes: 200, Interval: time.Millisecond, Burst: 2, Bursts: 5000}}}, time.Second, 2002, at + 1001*time.Millisecond, false},
		"paced, over":     {Plan{Segments: []Segment{{PayloadBytes: 200, Interval: time.Millisecond, Burst: 1, Bursts: 500}}}, time.Second, 500, 0, true},
		"up to the pause": {Plan{Segments: []Segment{{PayloadBytes: 200, Interval: time.Millisecond, Burst: 1, Bursts: 500}, {Pause: time.Second, PayloadBytes: 200, Burst: 1, Bursts: 1}}}, time.Second, 500, at + 1500*time.Millisecond, false},
	} {
		x := newSending(e.here, 1, e.server.LocalAddr(), c.plan, func() {})
		x.begin = at
		x.cursor = newCursor(c.plan, at)
		x.cursor.end = at + c.plan.Duration()
		if c.plan.Feedback > 0 {
			x.adjustRate = NewRateControl(c.plan, nil, at)
			x.cursor.adjustRate = x.adjustRate
		}
		x.skipWithoutConsent(at + c.after)
		if x.prepared != c.packets || x.cursor.done() != c.done || !c.done && x.cursor.due() != c.due {
			t.Errorf("%s: %d packets withheld, over %v, want %d, %v", name, x.prepared, x.cursor.done(), c.packets, c.done)
		}
		if n := testing.AllocsPerRun(10, func() { x.skipWithoutConsent(at + c.after) }); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func TestICMPErrorReachesItsStreamOnly(t *testing.T) {
	for _, local := range []string{"127.0.0.1:0", "[::1]:0"} {
		sender := running(t, Options{Local: netip.MustParseAddrPort(local)})
		gone, err := Open(Options{Local: netip.MustParseAddrPort(local)})
		if err != nil {
			t.Fatal(err)
		}
		gone.Close()
		other := running(t, Options{Local: netip.MustParseAddrPort(local)})
		s := sender.Join(testSession)
		p := Plan{Segments: []Segment{{PayloadBytes: 200, Interval: time.Millisecond, Burst: 1, Bursts: 20_000}}}
		refused, well := &consentOf{}, &consentOf{given: func() bool { return true }}
		done := make(chan error)
		go func() {
			short := p
			short.Segments = []Segment{{PayloadBytes: 200, Interval: time.Millisecond, Burst: 1, Bursts: 300}}
			_, err := s.Send(t.Context(), 2, other.LocalAddr(), short, SendOptions{Consent: well})
			done <- err
		}()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		refused.given = func() bool {
			if refused.errors.Load() < 3 {
				return true
			}
			cancel()
			return false
		}
		sent, err := s.Send(ctx, 1, gone.LocalAddr(), p, SendOptions{Consent: refused})
		if err != nil {
			t.Fatal(err)
		}
		if left := len(sent.Packets) - sent.Withheld(); left < 3 || left > p.Packets()/2 {
			t.Errorf("%s: %d packets were sent, want 3 and the outstanding ones", local, left)
		}
		if got := syscall.Errno(refused.last.Load()); got != syscall.ECONNREFUSED {
			t.Errorf("%s: %v", local, got)
		}
		if err := <-done; err != nil || well.errors.Load() != 0 {
			t.Errorf("%s: the other stream got %d errors, %v", local, well.errors.Load(), err)
		}
	}
}
