package stream

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/net/tstamp"
	"oneway.example/exporter/net/wire/loadfmt"
	"oneway.example/tests/testseed"
)

// adjustedPlan returns n packets at intervals of at least 1 ms, with feedback each 20 ms.
func adjustedPlan(n int) Plan {
	return Plan{Feedback: 20 * time.Millisecond, Segments: []Segment{{PayloadBytes: 200, Interval: time.Millisecond, Burst: 1, Bursts: n}}}
}

func TestInvalidPlansWithFeedbackAreRejected(t *testing.T) {
	if err := adjustedPlan(10).Check(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Plan){
		"interval too short": func(p *Plan) { p.Feedback = MinFeedback - 1 },
		"negative":           func(p *Plan) { p.Feedback = -1 },
		"interval too long":  func(p *Plan) { p.Feedback = MaxFeedback + 1 },
		"two segments":       func(p *Plan) { p.Segments = append(p.Segments, p.Segments[0]) },
		"bursts":             func(p *Plan) { p.Segments[0].Burst = 2 },
		"no interval":        func(p *Plan) { p.Segments[0].Interval = 0 },
		"without timestamps": func(p *Plan) { p.Unstamped = true },
	} {
		p := adjustedPlan(10)
		change(&p)
		if err := p.Check(); !errors.Is(err, ErrPlan) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Whatever the orders, a stream sends no more packets, no faster and no longer than its plan, which is
// what was authorized.
func TestNoOrderExceedsThePlan(t *testing.T) {
	rng := rand.New(rand.NewPCG(testseed.Of(t), 0))
	for _, orders := range [][]uint64{{1}, {math.MaxInt64}, {1, math.MaxInt64}, {uint64(time.Millisecond) / 2, uint64(2 * time.Millisecond)}} {
		p := adjustedPlan(1000)
		s := NewRateControl(p, nil, 0)
		c := newCursor(p, 0)
		c.adjustRate, c.end = s, p.Duration()
		n, last := 0, time.Duration(-1)
		for serial := uint32(1); !c.done(); serial++ {
			now := c.due()
			if rng.IntN(50) == 0 {
				now += time.Duration(rng.Int64N(int64(30 * time.Millisecond))) // a busy host
			}
			if now >= p.Duration()+50*time.Millisecond {
				t.Fatalf("a packet after %v of %v", now, p.Duration())
			}
			if last >= 0 && c.due()-last < p.Segments[0].Interval {
				t.Fatalf("packets %v apart, want at least %v", c.due()-last, p.Segments[0].Interval)
			}
			last = c.due()
			s.ordered(loadfmt.Pace{Serial: serial, Interval: orders[int(serial)%len(orders)]}, now)
			c.advance(now)
			n++
		}
		if n > p.Packets() {
			t.Errorf("%d packets of %d", n, p.Packets())
		}
	}
}

func TestSilenceKeepsTheRateAndThenHalvesIt(t *testing.T) {
	p := adjustedPlan(1000)
	s := NewRateControl(p, nil, 0)
	if got := s.Interval(0); got != p.Feedback {
		t.Errorf("initial interval %v, want %v", got, p.Feedback)
	}
	s.ordered(loadfmt.Pace{Serial: 1, Interval: uint64(2 * time.Millisecond)}, time.Second)
	for at, want := range []time.Duration{2, 2, 4, 8, 16, 20, 20} { // ms, by seconds after the last order
		now := time.Second + time.Duration(at)*(reportTimeout+time.Millisecond)
		if at == 1 {
			now = time.Second + reportTimeout
		}
		if got := s.Interval(now); got != want*time.Millisecond {
			t.Errorf("%v after the last order: interval %v, want %v ms", now-time.Second, got, int(want))
		}
	}
	s.ordered(loadfmt.Pace{Serial: 2, Interval: uint64(3 * time.Millisecond)}, time.Minute)
	if got := s.Interval(time.Minute); got != 3*time.Millisecond {
		t.Errorf("after the next order: interval %v", got)
	}
}

// A receiver never sends more bytes than it receives.
func TestReportIsSentWhenAsManyBytesHaveComeAsItHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Reception{session: new(Session), feedback: MinFeedback, tally: new(StatusCounter)}
		reports := 0
		go r.Follow(t.Context(), func(Status) { reports++ })
		for _, c := range []struct{ bytes, reports int }{{0, 0}, {71, 0}, {1, 1}, {0, 1}, {71, 1}, {1, 2}, {10_000, 3}, {71, 3}} {
			r.session.mu.Lock()
			r.tally.Add(1, c.bytes, false, 0, 0)
			r.session.mu.Unlock()
			time.Sleep(MinFeedback) // simulated time (synctest), in which the receiver's ticker fires
			synctest.Wait()
			if reports != c.reports {
				t.Errorf("%d reports of %d bytes, want %d", reports, r.tally.status.Bytes, c.reports)
			}
		}
	})
}

func TestOldOrMisdirectedFeedbackIsIgnored(t *testing.T) {
	called := 0
	local := NewRateControl(adjustedPlan(10), func(loadfmt.Status) time.Duration { called++; return time.Millisecond }, 0)
	remote := NewRateControl(adjustedPlan(10), nil, 0)
	for _, c := range []struct {
		what string
		got  bool
		want bool
	}{
		{"a report", local.HandleReport(loadfmt.Status{Serial: 2}, 0), true},
		{"the same", local.HandleReport(loadfmt.Status{Serial: 2}, 0), false},
		{"an older one", local.HandleReport(loadfmt.Status{Serial: 1}, 0), false},
		{"an order to the deciding end", local.ordered(loadfmt.Pace{Serial: 3, Interval: 1}, 0), false},
		{"a report to the other end", remote.HandleReport(loadfmt.Status{Serial: 1}, 0), false},
		{"an order", remote.ordered(loadfmt.Pace{Serial: 7, Interval: 1}, 0), true},
		{"an older order", remote.ordered(loadfmt.Pace{Serial: 6, Interval: 1e9}, 0), false},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v", c.what, c.got)
		}
	}
	local.end()
	if local.HandleReport(loadfmt.Status{Serial: 9}, 0) || called != 1 || remote.Interval(0) != time.Millisecond {
		t.Errorf("Adjuster called %d times; interval %v", called, remote.Interval(0))
	}
}

func TestTallyCountsReceivedPackets(t *testing.T) {
	var c StatusCounter
	at := func(sentMS, delayMS int) (instant.Time, uint32) { // an offset of the clocks cancels
		return instant.Time(1e18).Add(time.Duration(sentMS+delayMS) * time.Millisecond), uint32(sentMS * 1000)
	}
	for i, seq := range []uint32{0, 1, 3, 2, 3, 7} {
		when, micros := at(10*i, 30+i)
		c.Add(seq, 100, i == 4, when, micros)
	}
	got := c.Status(time.Second)
	want := loadfmt.Status{Serial: 1, Expected: 8, Packets: 5, Reordered: 1, Duplicates: 1, Bytes: 500, Elapsed: 1e9, Variation: 2200}
	if got != want { // of 0, 1, 2, 3 and 5 ms
		t.Errorf("%+v, want %+v", got, want)
	}
	if got = c.Status(2 * time.Second); got.Serial != 2 || got.Variation != loadfmt.NoVariation || got.Packets != 5 {
		t.Errorf("without further packets: %+v", got)
	}
	when, micros := at(100, 20)
	c.Add(8, 100, false, when, micros)
	if got = c.Status(2 * time.Second); got.Variation != 0 {
		t.Errorf("with the least delay: %+v", got)
	}
	c.Add(9, 100, false, 0, 0)
	if got = c.Status(2 * time.Second); got.Variation != loadfmt.NoVariation || got.Packets != 7 {
		t.Errorf("without a timestamp: %+v", got)
	}
}

// Over real sockets: the receiver reports, and the sender follows its Adjuster, or orders of the
// receiver.
func TestStreamIsAdjustedFromEitherEnd(t *testing.T) {
	for _, name := range []string{"the sender decides", "the receiver decides"} {
		e := newEnds(t)
		p := adjustedPlan(200)
		p.Segments[0].Interval, p.Feedback = 10*time.Microsecond, MinFeedback
		p.Segments[0].Bursts = 1 << 20 // more than the test waits for
		r, err := e.there.Expect(1, p)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex
		var reported []loadfmt.Status
		decide := func(st loadfmt.Status) time.Duration {
			mu.Lock()
			defer mu.Unlock()
			if reported = append(reported, st); len(reported) == 5 {
				cancel()
			}
			return time.Millisecond
		}
		var adjustRate Adjuster
		follow := func(st loadfmt.Status) {
			if err := e.there.Order(1, e.client.LocalAddr(), st.Serial, decide(st)); err != nil {
				t.Error(err)
			}
		}
		if name == "the sender decides" {
			adjustRate = decide
			follow = func(st loadfmt.Status) {
				if err := e.there.Report(1, e.client.LocalAddr(), st); err != nil {
					t.Error(err)
				}
			}
		}
		var following sync.WaitGroup
		following.Go(func() { r.Follow(ctx, follow) })
		sent, err := e.here.Send(ctx, 1, e.server.LocalAddr(), p, SendOptions{AdjustRate: adjustRate})
		if err != nil {
			t.Fatal(err)
		}
		following.Wait()
		got := r.Finish(t.Context(), len(sent.Packets), testLimit)
		if len(got.Packets) != len(sent.Packets) || sent.Planned != len(sent.Packets) {
			t.Errorf("%s: %d of %d packets arrived; %d planned", name, len(got.Packets), len(sent.Packets), sent.Planned)
		}
		for i, st := range reported[1:] {
			if st.Serial <= reported[i].Serial || st.Packets <= reported[i].Packets || st.Elapsed <= reported[i].Elapsed || st.Packets != st.Expected {
				t.Errorf("%s: %+v after %+v", name, st, reported[i])
			}
		}
	}
}

// An order changes only the stream whose destination is its source.
func TestOrderFromElsewhereIsIgnored(t *testing.T) {
	e := newEnds(t)
	p := adjustedPlan(1000)
	x := newSending(e.here, 1, e.server.LocalAddr(), p, func() {})
	x.adjustRate = NewRateControl(p, nil, 0)
	if !x.register() {
		t.Fatal("not registered")
	}
	defer x.unregister()
	order := loadfmt.AppendOrder(nil, testSession, 1, loadfmt.Pace{Serial: 1, Interval: uint64(2 * time.Millisecond)})
	h, err := loadfmt.Parse(order)
	if err != nil {
		t.Fatal(err)
	}
	from := func(at netip.AddrPort) Ignored {
		return e.here.adjusted(&tstamp.In{Payload: order, Peer: at, Stamp: sample.Stamp{}}, h, 0)
	}
	if why := from(netip.MustParseAddrPort("127.0.0.1:9")); why != UnknownTransfer {
		t.Errorf("from an unknown peer: %v", why)
	}
	if why := from(e.server.LocalAddr()); why != taken || x.adjustRate.Interval(0) != 2*time.Millisecond {
		t.Errorf("from the other end: %v, interval %v", why, x.adjustRate.Interval(0))
	}
	if why := from(e.server.LocalAddr()); why != BadFeedback {
		t.Errorf("for the second time: %v", why)
	}
}

// Errors of a firewall would repeat for single packets: only errors of segmentation disable it.
func TestOnlyErrorsOfSegmentationDisableIt(t *testing.T) {
	for errno, want := range map[syscall.Errno]bool{
		syscall.EINVAL: true, syscall.EMSGSIZE: true, syscall.EIO: true,
		syscall.EPERM: false, syscall.EACCES: false, syscall.ENETUNREACH: false, syscall.EHOSTUNREACH: false, syscall.ENETDOWN: false,
	} {
		if got := cannotSegment(fmt.Errorf("tstamp: send: %w", errno)); got != want {
			t.Errorf("%v: %v, want %v", errno, got, want)
		}
	}
}
