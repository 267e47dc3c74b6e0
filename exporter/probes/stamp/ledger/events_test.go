package ledger

import (
	"slices"
	"testing"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/estimate/seqwin"
	"oneway.example/exporter/net/wire/stampfmt"
)

func outstandingPacketsOf(interval, timeout time.Duration) outstandingPackets {
	return newOutstandingPackets(&Options{Interval: interval, LossTimeout: timeout})
}

func TestOutstandingPacketsExpireOnceAndOnlyTheUnanswered(t *testing.T) {
	f := outstandingPacketsOf(100*time.Millisecond, time.Second)
	for seq := range uint64(10) {
		f.add(seq, time.Duration(seq)*100*time.Millisecond, 1, ClockThen{})
	}
	f.get(3).state = packetReplied
	if lost := f.expire(1500*time.Millisecond, time.Second); lost != 4 {
		t.Errorf("%d lost, want 0, 1, 2 and 4", lost)
	}
	if lost := f.expire(1500*time.Millisecond, time.Second); lost != 0 {
		t.Errorf("%d lost a second time", lost)
	}
	if n := f.outstanding(); n != 9 {
		t.Errorf("%d outstanding, want 9: four may still get a late reply", n)
	}
	f.get(1).state = packetRepliedLate
	if lost := f.expire(2250*time.Millisecond, time.Second); lost != 5 || f.outstanding() != 6 {
		t.Errorf("%d lost, want 5; %d outstanding, want 6: without 0 and 2", lost, f.outstanding())
	}
	if lost := f.expire(time.Hour, time.Second); lost != 0 || f.outstanding() != 0 {
		t.Errorf("%d lost; %d outstanding", lost, f.outstanding())
	}
}

func TestOutstandingPacketsPushedOutOfTheRingAreGivenUp(t *testing.T) {
	f := outstandingPacketsOf(time.Second, time.Second)
	lost := 0
	for seq := range uint64(fullOutstandingPackets + 5) {
		lost += f.add(seq, 0, 1, ClockThen{})
	}
	if lost != 5 || f.outstanding() != fullOutstandingPackets || f.get(4) != nil || f.get(5) == nil {
		t.Errorf("%d lost, %d outstanding; 4: %v, 5: %v", lost, f.outstanding(), f.get(4), f.get(5))
	}
}

func TestWithdrawnNumberIsUsedAgain(t *testing.T) {
	f := outstandingPacketsOf(time.Second, time.Second)
	f.add(0, 0, 1, ClockThen{})
	f.add(1, 0, 1, ClockThen{})
	f.withdraw(1)
	if f.next != 1 || f.get(1) != nil || f.outstanding() != 1 {
		t.Errorf("next %d, outstanding %d", f.next, f.outstanding())
	}
	f.withdraw(7) // not the newest: ignored
	if f.next != 1 {
		t.Errorf("next %d", f.next)
	}
}

// TestClockIsTakenAtItsWorst: a daemon's correction after a packet was timestamped does not improve that timestamp.
func TestClockIsTakenAtItsWorst(t *testing.T) {
	good := clock.Quality{Bound: sample.Bound{Error: 10, Reason: sample.OK}, Steps: 3}
	wide := clock.Quality{Bound: sample.Bound{Error: 900, Reason: sample.OK}, Steps: 3}
	bad := clock.Quality{Bound: sample.Bound{Reason: sample.LocalUnsynchronized}, Steps: 3}
	stepped := clock.Quality{Bound: sample.Bound{Error: 10, Reason: sample.OK}, Steps: 4}
	for _, c := range []struct {
		then []clock.Quality
		want sample.Bound
	}{
		{[]clock.Quality{good, good}, good.Bound},
		{[]clock.Quality{wide, good}, wide.Bound},
		{[]clock.Quality{good, wide}, wide.Bound},
		{[]clock.Quality{bad, good}, bad.Bound},
		{[]clock.Quality{good, bad, good}, bad.Bound},
		{[]clock.Quality{good, stepped}, sample.Bound{Reason: sample.LocalStepped}},
		{[]clock.Quality{good, stepped, stepped}, sample.Bound{Reason: sample.LocalStepped}},
	} {
		got := ThenOf(c.then[0])
		for _, q := range c.then[1:] {
			got = got.And(q)
		}
		if got.Bound != c.want {
			t.Errorf("%+v: %+v, want %+v", c.then, got.Bound, c.want)
		}
	}
}

func TestRepliesWaitForTheirTrueT3(t *testing.T) {
	var done []sample.Packet
	keep := func(a *PendingReply) { done = append(done, a.Packet) }
	var a replies
	put := func(n uint64) {
		a.put(&PendingReply{Packet: sample.Packet{ReverseSeq: n, T3: sample.Stamp{At: 1, Origin: sample.InPacket}}, arrived: time.Duration(n)}, keep)
	}
	put(0)
	put(1)
	a.settle(0, 77, keep)
	if len(done) != 1 || done[0].T3.Origin != sample.FollowUp || done[0].T3.At != 77 {
		t.Fatalf("%+v", done)
	}
	a.settle(0, 78, keep) // settled twice: concluded once
	a.settle(9, 78, keep) // never received
	a.left(1, stampfmt.ReplyTX{}, keep)
	if len(done) != 1 {
		t.Fatalf("%d concluded", len(done))
	}
	for n := uint64(2); n < 6; n++ {
		put(n)
	}
	// T3 of reply 1 cannot arrive any more: only the three replies after it carry it.
	if len(done) != 2 || done[1].ReverseSeq != 1 || done[1].T3.Origin != sample.InPacket {
		t.Fatalf("%+v", done)
	}
	a.flush(1<<62, keep)
	got := []uint64{}
	for _, p := range done {
		got = append(got, p.ReverseSeq)
	}
	if !slices.Equal(got, []uint64{0, 1, 2, 3, 4, 5}) {
		t.Errorf("concluded %v", got)
	}
}

func TestOurReflectorTellsHowLongAReplyWasHeld(t *testing.T) {
	var a replies
	a.put(&PendingReply{Packet: sample.Packet{ReverseSeq: 3, T3: sample.Stamp{At: 1000, Origin: sample.InPacket}}}, nil)
	var got sample.Stamp
	a.left(3, stampfmt.ReplyTX{Known: true, After: 70, TXUncertainty: 500}, func(w *PendingReply) { got = w.Packet.T3 })
	if want := (sample.Stamp{At: 1070, Origin: sample.FollowUp, TXUncertainty: 500}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestReplyThatWaitedInItsHostIsUncertain: our reflector sends three more replies and does not know when the first one left, as with a queue of its own
// interface that is longer than the interval. A reflector that never tells has no such timestamps, and where no other reply arrived, nothing is shown.
func TestReplyThatWaitedInItsHostIsUncertain(t *testing.T) {
	for name, c := range map[string]struct {
		told    bool
		reports int
		want    time.Duration
	}{"told of others": {true, 3, 234}, "never told": {false, 3, 0}, "no later reply": {true, 0, 0}} {
		var a replies
		a.put(&PendingReply{Packet: sample.Packet{ReverseSeq: 3, T3: sample.Stamp{At: 1000, Origin: sample.InPacket}, T4: sample.Stamp{At: 1234, Origin: sample.Kernel}}}, nil)
		for range c.reports {
			a.left(3, stampfmt.ReplyTX{}, nil)
		}
		a.flush(1<<62, func(w *PendingReply) {
			if w.widenT3(c.told); w.Packet.T3.TXUncertainty != c.want || w.Packet.T3.At != 1000 {
				t.Errorf("%s: %+v, want an uncertainty of %d", name, w.Packet.T3, c.want)
			}
		})
	}
}

// TestReceiptTellsThatStampsCome: the replies wait in a queue of the reflector's host from the first one on, so that no Receipt has their times.
func TestReceiptTellsThatStampsCome(t *testing.T) {
	f := known(t, RemoteOurs)
	rc := stampfmt.Receipt{Filled: true, Words: 3, Epoch: 5, TellsTX: true}
	if f.s.learn(&Reply{HasReceipt: true, Receipt: rc}, f.now, true); !f.s.rev.told {
		t.Error("it is not known that the reflector tells when replies left")
	}
}

func TestStampOfAnOvertakenReplyIsRemembered(t *testing.T) {
	var a replies
	var got []sample.Stamp
	keep := func(w *PendingReply) { got = append(got, w.Packet.T3) }
	put := func(n uint64) {
		a.put(&PendingReply{Packet: sample.Packet{ReverseSeq: n, T3: sample.Stamp{At: 1000, Origin: sample.InPacket}}}, keep)
	}
	a.left(0, stampfmt.ReplyTX{Known: true, After: 70}, keep)
	a.settle(1, 2000, keep)
	a.left(2, stampfmt.ReplyTX{Known: true, After: 72}, keep)
	put(10)
	if len(got) != 0 {
		t.Fatalf("concluded %+v: 10 takes the place of 2, which has no T3", got)
	}
	put(0)
	put(1)
	want := []sample.Stamp{{At: 1070, Origin: sample.FollowUp}, {At: 2000, Origin: sample.FollowUp}}
	if !slices.Equal(got, want) {
		t.Errorf("concluded %+v, want %+v", got, want)
	}
}

func TestRemoteIgnoresOvertakenReceiptsAndSeesRestarts(t *testing.T) {
	var r remote
	if got := r.update(&stampfmt.Receipt{Epoch: 5, Next: 10, Base: 10, Received: 10, Tx: 10}); got != receiptFirst {
		t.Fatalf("first: %v", got)
	}
	if got := r.update(&stampfmt.Receipt{Epoch: 5, Next: 9, Base: 9, Received: 9, Tx: 9}); got != receiptStale || r.counts.Next != 10 {
		t.Errorf("overtaken: %v, next %d", got, r.counts.Next)
	}
	if got := r.update(&stampfmt.Receipt{Epoch: 6, Next: 12, Base: 12, Received: 1, Tx: 1}); got != receiptRestart || r.counts.Received != 1 {
		t.Errorf("restart: %v, %+v", got, r.counts)
	}
	if got := r.update(&stampfmt.Receipt{Epoch: 5, Next: 11, Base: 11, Received: 11, Tx: 11}); got != receiptFormer || r.epoch != 6 {
		t.Errorf("reply of the previous session: %v", got)
	}
}

func TestRemoteOutlivesThirtyTwoBits(t *testing.T) {
	r := remote{known: true, epoch: 1}
	for _, n := range []uint64{1<<31 - 1, 1<<32 - 2, 1<<32 + 3, 1<<32 + 1<<31} {
		w := uint32(n)
		if got := r.update(&stampfmt.Receipt{Epoch: 1, Next: w, Base: w, Received: w, Tx: w}); got != receiptNewer {
			t.Fatalf("%d: %v", n, got)
		}
		if r.counts.Next != n || r.counts.Received != n || r.tx != n {
			t.Errorf("%d: %+v", n, r.counts)
		}
	}
}

func TestRestartKeepsTheBooksBalanced(t *testing.T) {
	d, _ := countsOf(sample.Forward)
	none := func(uint64) uint64 { return 0 }
	d.now.sent = 10
	d.count(seqwin.Counts{Base: 8, Next: 8, Received: 7, Lost: 1}, seqwin.RecentBits, none)
	d.now.dropped++
	d.undecide(1)
	d.restart()
	d.now.sent = 15
	d.count(seqwin.Counts{Base: 14, Next: 14, Received: 4}, seqwin.RecentBits, none)
	if d.now.received != 11 || d.now.lost != 1 || d.now.dropped != 1 || d.now.undecided != 1 || d.now.outstanding() != 1 {
		t.Errorf("%+v, outstanding %d", d.now, d.now.outstanding())
	}
}

func TestFirstNumberIsFoundFromTheCounts(t *testing.T) {
	for _, first := range []uint64{0, 7, 100_000} {
		var w seqwin.Window
		w.Start(first)
		for i := range uint64(200) {
			if i%7 != 3 {
				w.Add(first+i, time.Duration(i)*time.Millisecond)
			}
			w.Expire(time.Duration(i)*time.Millisecond, 50*time.Millisecond)
			if c := w.Counts(); i > 0 && firstOf(&c, seqwin.RecentWords) != first {
				t.Fatalf("first %d, packet %d: %d from %+v", first, i, firstOf(&c, seqwin.RecentWords), c)
			}
		}
	}
}
