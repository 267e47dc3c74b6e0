package stamp

import (
	"slices"
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/net/wire/stampfmt"
)

// TestClockOfWideBoundMakesNoLoss: both directions take 300 ms, the loss timeout is 500 ms. The remote clock is 300
// ms fast, and its bound of 400 ms covers that.
func TestClockOfWideBoundMakesNoLoss(t *testing.T) {
	s := idleAccount(t)
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
	a, sum := idleAccount(t), &tally{}
	a.decided, a.rev.decided = sum.take, sum.take
	asks(a, 1000)
	now := time.Second
	for n := range uint32(1000) {
		a.number(&stampfmt.ReflectorPacket{Seq: n}, request{}, now, false)
	}
	at := wheelStart
	for n := uint64(997); n < 1000; n++ {
		a.replies.put(&pendingReply{undecided: true, arrived: now, clock: clockThen{bound: sample.Bound{Reason: sample.OK}}, packet: sample.Packet{
			ReverseSeq: n, T3: sample.Stamp{At: at, Origin: sample.InPacket}, T4: sample.Stamp{At: at.Add(time.Hour), Origin: sample.Kernel},
			Remote: sample.Bound{Reason: sample.OK},
		}}, a.conclude)
	}
	a.renumber(0, now)
	a.number(&stampfmt.ReflectorPacket{Seq: 0}, request{}, now, false)
	if v := a.rev; v.now.lost != 3 || v.ended.lost != 3 || v.now.received != 998 || !slices.Equal(sum.bursts, []int{3}) {
		t.Errorf("%d lost, %d of them in the old session, %d received, bursts of %d; want 3, 3, 998 and one burst of 3", v.now.lost, v.ended.lost, v.now.received, sum.bursts)
	}
}
