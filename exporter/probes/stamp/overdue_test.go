package stamp

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/exporter/net/wire/timefmt"
	"oneway.example/exporter/reflector"
)

// TestOverduePacketOvertakenByManyIsLostOnce: 10 of 1500 packets take 900 ms, the loss timeout is 300 ms, and the
// others overtake them at one a millisecond. The remote end has decided each as lost, further back than its bitmap
// reaches.
func TestOverduePacketOvertakenByManyIsLostOnce(t *testing.T) {
	const wait, late = 300 * time.Millisecond, 900 * time.Millisecond
	b := newTestbed(t, reflector.Options{})
	var carrier atomic.Pointer[proxy]
	p := newProxy(t, b.peer, func(d sample.Direction, _ time.Duration, payload []byte) (time.Duration, bool) {
		if d == sample.Forward && !isStatsQuery(payload) && numberOf(d, payload)%50 == 20 && numberOf(d, payload) < 500 {
			copied := append([]byte(nil), payload...)
			time.AfterFunc(late, func() { _, _ = carrier.Load().remote.Write(copied) })
			return 0, true // slower than the loss timeout: lost (RFC 7680)
		}
		return 0, false
	})
	carrier.Store(p)
	o := quick()
	o.Interval, o.LossTimeout = time.Millisecond, wait
	r := b.to(p.addr).measure(t, o, 1500)
	f := r.Forward
	t.Logf("sent %d received %d lost %d late %d dropped %d outstanding %d", *f.Sent, *f.Received, *f.Lost, *f.Late, *f.HostDropped, *f.Outstanding)
	p.check(t, r, wait)
	if *f.Late != 10 {
		t.Errorf("got %d late, want 10", *f.Late)
	}
}

// TestUnansweredPacketsAreOverdueAsOftenAsTheOthers: 280 of 400 packets take twice the loss timeout forward, and 40
// % of the replies are lost.
func TestUnansweredPacketsAreOverdueAsOftenAsTheOthers(t *testing.T) {
	const wait, n, slow = 150 * time.Millisecond, 400, 120
	b := newTestbed(t, reflector.Options{})
	p := newProxy(t, b.peer, func(d sample.Direction, _ time.Duration, payload []byte) (time.Duration, bool) {
		switch {
		case isStatsQuery(payload):
		case d == sample.Reverse:
			return 0, numberOf(d, payload)%5 < 2
		case numberOf(d, payload) >= slow:
			return 2 * wait, false
		}
		return 0, false
	})
	o := quick()
	o.Interval, o.LossTimeout = 5*time.Millisecond, wait
	f := b.to(p.addr).measure(t, o, n).Forward
	if received, lost, _ := p.truth(sample.Forward, wait); lost < n-slow {
		t.Fatalf("proxy log: %d received and %d lost, want %d lost at least", received, lost, n-slow)
	}
	if f.Delay == nil || f.Delay.P50 != nil {
		t.Errorf("more than half of the delays are infinite, but the median is finite: %s", asJSON(t, f))
	}
}

// TestClockOfWideBoundMakesNoLoss: both directions take 300 ms, the loss timeout is 500 ms. The remote clock is 300
// ms fast, and its bound of 400 ms covers that.
func TestClockOfWideBoundMakesNoLoss(t *testing.T) {
	s := idleSession(t).estimator
	s.opts.LossTimeout = 500 * time.Millisecond
	at := instant.Time(1_800_000_000 * int64(time.Second))
	remote := 300 * time.Millisecond
	stamp := func(d time.Duration) sample.Stamp { return sample.Stamp{At: at.Add(d), Origin: sample.Kernel} }
	a := pendingReply{packet: sample.Packet{
		T1: stamp(0), T2: stamp(300*time.Millisecond + remote), T3: stamp(300*time.Millisecond + remote), T4: stamp(600 * time.Millisecond),
		Remote: sample.Bound{Error: 400 * time.Millisecond, Reason: sample.OK},
	}, clock: clockThen{bound: sample.Bound{Error: time.Millisecond, Reason: sample.OK}}}
	if lost := s.overdue(&a); lost[sample.Forward] {
		t.Errorf("true delay 300 ms, measured 600 +- 401 ms, loss timeout 500 ms: got lost, want received")
	}
}

// TestBusyReflectorMakesNoLossOfItsReplies: our reflector reads T3 and sends the reply 800 ms later; the loss timeout is
// 500 ms. It reports its true T3 with the next reply.
func TestBusyReflectorMakesNoLossOfItsReplies(t *testing.T) {
	for _, c := range []struct {
		held time.Duration // by the reflector
		lost uint64
	}{{799 * time.Millisecond, 0}, {0, 1}} {
		s := idleSession(t)
		a, e := s.account, s.estimator
		at := instant.Time(1_800_000_000 * int64(time.Second))
		encode := func(d time.Duration) uint64 { return timefmt.NTP.Encode(at.Add(d), 0) }
		a.outstandingPackets.add(0, 0, at, thenOf(e.clock.Quality(at)))
		f := a.outstandingPackets.get(0)
		r := reply{hasReceipt: true, receipt: stampfmt.Receipt{Filled: true, T2Origin: sample.Kernel}}
		r.packet.T2, r.packet.T3 = encode(time.Millisecond), encode(2*time.Millisecond)
		r.packet.Error = timefmt.MakeErrorEstimate(time.Microsecond, true, timefmt.NTP)
		one := e.replyOf(inAt(at.Add(802*time.Millisecond)), &r, request{outstanding: f}, 802*time.Millisecond)
		a.rev.now.received = 1
		if one.lost[sample.Reverse] {
			a.rev.now.received = 0
			a.rev.now.lost++
		}
		e.replies.put(&one, e.conclude)
		e.replies.left(0, stampfmt.ReplyTX{Known: true, After: c.held}, e.conclude)
		if got := a.rev.now; got.lost != c.lost || got.received != 1-c.lost {
			t.Errorf("held for %v: %d lost and %d received, want %d lost", c.held, got.lost, got.received, c.lost)
		}
	}
}

// TestStallInAnotherOrderIsOneRun: a stall delivers its packets in random order.
func TestStallInAnotherOrderIsOneRun(t *testing.T) {
	for _, dir := range sample.Directions() {
		b := newTestbed(t, reflector.Options{})
		var carrier atomic.Pointer[proxy]
		var out time.Time
		p := newProxy(t, b.peer, func(d sample.Direction, _ time.Duration, payload []byte) (time.Duration, bool) {
			if n := numberOf(d, payload); d != dir || isStatsQuery(payload) || n < 100 || n >= 200 {
				return 0, false
			}
			if out.IsZero() {
				out = time.Now().Add(2200 * time.Millisecond)
			}
			copied := append([]byte(nil), payload...)
			p := carrier.Load()
			time.AfterFunc(time.Until(out)+time.Duration(rand.IntN(10_000_000)), func() {
				if d == sample.Forward {
					_, _ = p.remote.Write(copied)
					return
				}
				p.mu.Lock()
				to := p.client
				p.mu.Unlock()
				_, _ = p.local.WriteToUDPAddrPort(copied, to)
			})
			return 0, true // slower than the loss timeout
		})
		carrier.Store(p)
		o := quick()
		o.Interval, o.LossTimeout = 4*time.Millisecond, time.Second // a busy host may add some delay
		r := b.to(p.addr).measure(t, o, 500)
		got := []DirectionReport{r.Forward, r.Reverse}[dir]
		// one run of 100 in 500
		if got.BurstRatio == nil || *got.BurstRatio < 79 || *got.BurstRatio > 81 || *got.Lost != 100 {
			t.Errorf("%v: lost %d late %d, got BurstR %s; want 100, one run, 80", dir, *got.Lost, *got.Late, asJSON(t, got.BurstRatio))
		} else {
			t.Logf("%v: BurstR %.1f", dir, *got.BurstRatio)
		}
	}
}

// TestLatePacketThatDecidesItselfIsLostOnce: number 10 arrives late. With it the remote end decides 10 and 600 others, far
// more than its bitmap has, and replies first to 10.
func TestLatePacketThatDecidesItselfIsLostOnce(t *testing.T) {
	for _, late := range []uint32{0, 1} {
		s := idleSession(t)
		a := s.account
		asks(a, 611)
		learn := func(rc stampfmt.Receipt) {
			rc.Filled, rc.Words, rc.Epoch = true, 4, 5
			r := reply{receipt: rc, hasReceipt: true}
			r.packet.Seq = rc.Tx - 1
			a.learn(&r, time.Second, true)
		}
		learn(stampfmt.Receipt{Next: 611, Base: 10, Received: 610, Tx: 610, Recent: [4]uint64{1<<10 - 1}})
		learn(stampfmt.Receipt{Next: 611, Base: 611, Received: 611 - late, Lost: late, Late: late, Tx: 611, Recent: allReceived()})
		q := request{seq: 10, outstanding: a.outstandingPackets.get(10)}
		if q.outstanding == nil {
			t.Fatal("request 10 is not remembered")
		}
		a.take(&stampfmt.ReflectorPacket{Seq: 610}, q, time.Second, [2]bool{sample.Forward: true}, true)
		if f := a.fwd.now; f.lost != 1 || f.received != 610 || f.late != 1 {
			t.Errorf("late by the remote end's count: %d; got %d received, %d lost, %d late; want 610, 1 and 1", late, f.received, f.lost, f.late)
		}
	}
}

// TestOverdueRepliesEndWithTheirSession: three replies that wait for their true T3 are too late, and the remote end
// restarts.
func TestOverdueRepliesEndWithTheirSession(t *testing.T) {
	s := idleSession(t)
	a, bursts := s.account, []int(nil)
	s.series.observed.ways[sample.Reverse].burst = burstsTo{metric.Discard{}.Series(nil), func(n int) { bursts = append(bursts, n) }}
	asks(a, 1000)
	now := time.Second
	for n := range uint32(1000) {
		a.number(&stampfmt.ReflectorPacket{Seq: n}, request{}, now, false)
	}
	at := wheelStart
	for n := uint64(997); n < 1000; n++ {
		s.estimator.replies.put(&pendingReply{undecided: true, arrived: now, clock: clockThen{bound: sample.Bound{Reason: sample.OK}}, packet: sample.Packet{
			ReverseSeq: n, T3: sample.Stamp{At: at, Origin: sample.InPacket}, T4: sample.Stamp{At: at.Add(time.Hour), Origin: sample.Kernel},
			Remote: sample.Bound{Reason: sample.OK},
		}}, s.estimator.conclude)
	}
	a.renumber(0, now)
	a.number(&stampfmt.ReflectorPacket{Seq: 0}, request{}, now, false)
	if v := a.rev; v.now.lost != 3 || v.ended.lost != 3 || v.now.received != 998 || len(bursts) != 1 || bursts[0] != 3 {
		t.Errorf("%d lost, %d of them in the old session, %d received, bursts of %d; want 3, 3, 998 and one burst of 3", v.now.lost, v.ended.lost, v.now.received, bursts)
	}
}
