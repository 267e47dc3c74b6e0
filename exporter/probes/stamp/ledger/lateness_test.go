package ledger

import (
	"slices"
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/net/tstamp"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/exporter/net/wire/timefmt"
)

// TestClockOfWideBoundMakesNoLoss: both directions take 300 ms, the loss timeout is 500 ms. The remote clock is 300
// ms fast, and its bound of 400 ms covers that.
func TestClockOfWideBoundMakesNoLoss(t *testing.T) {
	s := idleAccount()
	s.opts.LossTimeout = 500 * time.Millisecond
	at := instant.Time(1_800_000_000 * int64(time.Second))
	remote := 300 * time.Millisecond
	stamp := func(d time.Duration) sample.Stamp { return sample.Stamp{At: at.Add(d), Origin: sample.Kernel} }
	a := PendingReply{Packet: sample.Packet{
		T1: stamp(0), T2: stamp(300*time.Millisecond + remote), T3: stamp(300*time.Millisecond + remote), T4: stamp(600 * time.Millisecond),
		Remote: sample.Bound{Error: 400 * time.Millisecond, Reason: sample.OK},
	}, Clock: ClockThen{Bound: sample.Bound{Error: time.Millisecond, Reason: sample.OK}}}
	if lost := s.overdue(&a); lost[sample.Forward] {
		t.Errorf("true delay 300 ms, measured 600 +- 401 ms, loss timeout 500 ms: got lost, want received")
	}
}

// TestDisprovedClockMakesNoLoss: both directions take 300 ms, the loss timeout is 500 ms. The remote clock is an hour fast, or slow, and is
// said to be right to 1 ms.
func TestDisprovedClockMakesNoLoss(t *testing.T) {
	for _, remote := range []time.Duration{time.Hour, -time.Hour} {
		s := idleAccount()
		s.opts.LossTimeout = 500 * time.Millisecond
		stamp := func(d time.Duration) sample.Stamp {
			return sample.Stamp{At: testStart.Add(d), Origin: sample.Kernel}
		}
		ok := sample.Bound{Error: time.Millisecond, Reason: sample.OK}
		a := PendingReply{Packet: sample.Packet{
			T1: stamp(0), T2: stamp(300*time.Millisecond + remote), T3: stamp(300*time.Millisecond + remote), T4: stamp(600 * time.Millisecond), Remote: ok,
		}, Clock: ClockThen{Bound: ok}}
		if lost := s.overdue(&a); lost != [2]bool{} {
			t.Errorf("clock off by %v: lost %v, want none: each took 300 ms", remote, lost)
		}
	}
}

// TestLatePacketThatDecidesItselfIsLostOnce: number 10 arrives late. With it the remote end decides 10 and 600 others, far
// more than its bitmap has, and replies first to 10.
func TestLatePacketThatDecidesItselfIsLostOnce(t *testing.T) {
	for _, late := range []uint32{0, 1} {
		a := idleAccount()
		asks(a, 611)
		learn := func(rc stampfmt.Receipt) {
			rc.Filled, rc.Words, rc.Epoch = true, 4, 5
			r := Reply{Receipt: rc, HasReceipt: true}
			r.Packet.Seq = rc.Tx - 1
			a.learn(&r, time.Second, true)
		}
		learn(stampfmt.Receipt{Next: 611, Base: 10, Received: 610, Tx: 610, Recent: [4]uint64{1<<10 - 1}})
		learn(stampfmt.Receipt{Next: 611, Base: 611, Received: 611 - late, Lost: late, Late: late, Tx: 611, Recent: allReceived()})
		q := Request{Seq: 10, Outstanding: a.outstandingPackets.get(10)}
		if q.Outstanding == nil {
			t.Fatal("request 10 is not remembered")
		}
		a.take(&Reply{Packet: stampfmt.ReflectorPacket{Seq: 610}}, q, time.Second, [2]bool{sample.Forward: true}, true)
		if f := a.fwd.now; f.lost != 1 || f.received != 610 || f.late != 1 {
			t.Errorf("late by the remote end's count: %d; got %d received, %d lost, %d late; want 610, 1 and 1", late, f.received, f.lost, f.late)
		}
	}
}

// TestLatePacketWithoutAReceiptIsLostOnce: number 10 arrives late, and its reply has no space for a Receipt. The remote end told neither
// before it arrived, nor until the query after it, whether it counts 10 as lost.
func TestLatePacketWithoutAReceiptIsLostOnce(t *testing.T) {
	for _, late := range []uint32{0, 1} {
		for _, next := range []uint32{0, 60} {
			a := idleAccount()
			asks(a, 100)
			learn := func(rc stampfmt.Receipt) {
				rc.Filled, rc.StatsQuery, rc.Words, rc.Epoch = true, true, 4, 5
				a.learn(&Reply{Receipt: rc, HasReceipt: true}, time.Second, true)
			}
			learn(stampfmt.Receipt{Next: next, Base: min(next, 10), Received: next - min(next, 1), Tx: next - min(next, 1), Recent: [4]uint64{1<<min(next, 10) - 1}})
			q := Request{Seq: 10, Outstanding: a.outstandingPackets.get(10)}
			a.take(&Reply{Packet: stampfmt.ReflectorPacket{Seq: 99}}, q, time.Second, [2]bool{sample.Forward: true}, true)
			recent := [4]uint64{1<<64 - 1, 1<<36 - 1}
			recent[(99-10)/64] &^= uint64(late) << ((99 - 10) % 64)
			learn(stampfmt.Receipt{Next: 100, Base: 100, Received: 100 - late, Lost: late, Late: late, Tx: 100, Recent: recent})
			if f := a.fwd.now; f.lost != 1 || f.received != 99 || f.late != 1 {
				t.Errorf("late by the remote end's count: %d, told of %d before; got %d received, %d lost, %d late; want 99, 1 and 1", late, next, f.received, f.lost, f.late)
			}
		}
	}
}

// TestUnreportedLatePacketsAreLimited: the counts of the remote end stay the same, and each reply is late.
func TestUnreportedLatePacketsAreLimited(t *testing.T) {
	const packets = 2 * mostUnreported
	a := idleAccount()
	asks(a, packets)
	a.learn(&Reply{Receipt: stampfmt.Receipt{Filled: true, StatsQuery: true, Words: 4, Epoch: 5}, HasReceipt: true}, time.Second, true)
	for seq := range uint64(packets) {
		q := Request{Seq: seq, Outstanding: a.outstandingPackets.get(seq)}
		a.take(&Reply{Packet: stampfmt.ReflectorPacket{Seq: uint32(seq)}}, q, time.Second, [2]bool{sample.Forward: true}, true)
	}
	if n := uint64(len(a.fault().unreported)); n != mostUnreported || a.fwd.now.lost != packets-n {
		t.Errorf("%d packets are unreported and %d lost, want %d of each", n, a.fwd.now.lost, mostUnreported)
	}
}

// TestOverdueRepliesEndWithTheirSession: three replies that wait for their true T3 are too late, and the remote end
// restarts.
func TestOverdueRepliesEndWithTheirSession(t *testing.T) {
	a, sum := idleAccount(), &tally{}
	a.decided, a.rev.decided = sum.take, sum.take
	asks(a, 1000)
	now := time.Second
	for n := range uint32(1000) {
		a.number(&stampfmt.ReflectorPacket{Seq: n}, Request{}, now, false)
	}
	at := testStart
	for n := uint64(997); n < 1000; n++ {
		a.replies.put(&PendingReply{undecided: true, arrived: now, Clock: ClockThen{Bound: sample.Bound{Reason: sample.OK}}, Packet: sample.Packet{
			ReverseSeq: n, T3: sample.Stamp{At: at, Origin: sample.InPacket}, T4: sample.Stamp{At: at.Add(time.Hour), Origin: sample.Kernel},
			Remote: sample.Bound{Reason: sample.OK},
		}}, a.conclude)
	}
	a.renumber(0, now)
	a.number(&stampfmt.ReflectorPacket{Seq: 0}, Request{}, now, false)
	if v := a.rev; v.now.lost != 3 || v.ended.lost != 3 || v.now.received != 998 || !slices.Equal(sum.bursts, []int{3}) {
		t.Errorf("%d lost, %d of them in the old session, %d received, bursts of %d; want 3, 3, 998 and one burst of 3", v.now.lost, v.ended.lost, v.now.received, sum.bursts)
	}
}

// TestBusyReflectorMakesNoLossOfItsReplies: our reflector reads T3 and sends the reply 800 ms later; the loss timeout is
// 500 ms. It reports its true T3 with the next reply.
func TestBusyReflectorMakesNoLossOfItsReplies(t *testing.T) {
	for _, c := range []struct {
		held time.Duration // by the reflector
		lost uint64
	}{{799 * time.Millisecond, 0}, {0, 1}} {
		a := idleAccountOf(0)
		at := instant.Time(1_800_000_000 * int64(time.Second))
		encode := func(d time.Duration) uint64 { return timefmt.NTP.Encode(at.Add(d), 0) }
		a.Send(0, at, ClockThen{Bound: sample.Bound{Reason: sample.OK}})
		r := Reply{HasReceipt: true, Receipt: stampfmt.Receipt{Filled: true, T2Origin: sample.Kernel}}
		r.Packet.T2, r.Packet.T3 = encode(time.Millisecond), encode(2*time.Millisecond)
		r.Packet.Error = timefmt.MakeErrorEstimate(time.Microsecond, true, timefmt.NTP)
		arrived := at.Add(802 * time.Millisecond)
		in, q := &tstamp.In{Stamp: sample.Stamp{At: arrived, Origin: sample.Kernel}, At: arrived}, Request{Outstanding: a.outstandingPackets.get(0)}
		one := pendingOf(in, &r, q)
		a.Judge(in, &r, q, &one, 802*time.Millisecond, true)
		a.replies.left(0, stampfmt.ReplyTX{Known: true, After: c.held}, a.conclude)
		if got := a.rev.now; got.lost != c.lost || got.received != 1-c.lost {
			t.Errorf("held for %v: %d lost and %d received, want %d lost", c.held, got.lost, got.received, c.lost)
		}
	}
}
