package ledger

import (
	"slices"
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/estimate/loss"
	"oneway.example/exporter/estimate/seqwin"
	"oneway.example/exporter/net/sched"
	"oneway.example/exporter/net/tstamp"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/exporter/net/wire/timefmt"
)

// idleAccount is an account without a session, made now.
func idleAccount() *Account { return idleAccountOf(sched.Now()) }

// idleAccountOf is an account without a session, made at a monotonic time of the test.
func idleAccountOf(made time.Duration) *Account {
	o := Options{Interval: 2 * time.Millisecond, LossTimeout: 500 * time.Millisecond, TAIOffset: timefmt.TAIOffset, TTL: 255}
	return New(o, made, func(Verdict) {}, nil)
}

// testStart is the time of day at which simulated sessions begin.
var testStart = instant.FromUnix(1_800_000_000, 0)

// pendingOf joins the timestamps of a reply, whose remote clock is as its Error Estimate reports, with a local clock of 50 us.
func pendingOf(in *tstamp.In, r *Reply, q Request) PendingReply {
	decode := func(raw uint64) sample.Stamp {
		return sample.Stamp{At: timefmt.NTP.Decode(raw, 0, in.At), Origin: sample.InPacket}
	}
	a := PendingReply{Clock: ClockThen{Bound: sample.Bound{Error: 50 * time.Microsecond, Reason: sample.OK}}, Packet: sample.Packet{
		Seq: q.Seq, T2: decode(r.Packet.T2), T3: decode(r.Packet.T3), T4: in.Stamp, Remote: sample.Bound{Reason: sample.RemoteUnsynchronized},
	}}
	if q.Outstanding != nil {
		a.Packet.T1 = q.Outstanding.SentAt()
	}
	if e := r.Packet.Error; e.Synchronized() && e.Valid() {
		a.Packet.Remote = sample.Bound{Error: e.Bound(), Reason: sample.OK}
	}
	return a
}

// tally sums verdicts about one direction.
type tally struct {
	losses loss.Window
	bursts []int
}

func (c *tally) take(v Verdict) {
	switch v.Kind {
	case BurstEnded:
		c.bursts = append(c.bursts, int(v.Losses.Lost))
	case PacketsDecided, PacketOverdue:
		c.losses.Add(v.Losses)
	default:
	}
}

// countsOf returns counts of one direction, and the sum of their verdicts.
func countsOf(d sample.Direction) (*counts, *tally) {
	sum := &tally{}
	return &counts{dir: d, decided: sum.take}, sum
}

func asks(s *Account, n uint64) {
	for s.outstandingPackets.next < n {
		s.outstandingPackets.add(s.outstandingPackets.next, 0, 1, ClockThen{})
	}
}

func allReceived() (w [stampfmt.MaxReceiptWords]uint64) {
	for i := range w {
		w[i] = ^uint64(0)
	}
	return w
}

// TestHostDropsAreNotLostToo: the remote host drops 50 packets; then the reflector restarts.
func TestHostDropsAreNotLostToo(t *testing.T) {
	s := idleAccount()
	asks(s, 1000)
	told := func(rc stampfmt.Receipt) {
		rc.Filled, rc.Words = true, 4
		s.learn(&Reply{Receipt: rc, HasReceipt: true}, sched.Now(), true)
	}
	told(stampfmt.Receipt{Epoch: 5, Next: 500, Base: 500, Received: 500, Tx: 500, Host: true, SocketDrops: 0, Recent: allReceived()})
	told(stampfmt.Receipt{Epoch: 5, Next: 800, Base: 800, Received: 750, Lost: 50, Bursts: 1, Tx: 750, Host: true, SocketDrops: 50, Recent: allReceived()})
	if d := s.fwd.now; d.dropped != 50 || d.lost != 0 {
		t.Fatalf("setup: %+v", d)
	}
	told(stampfmt.Receipt{Epoch: 6, Next: 1000, Base: 1000, Received: 200, Tx: 200, Host: true, SocketDrops: 0, Recent: [4]uint64{^uint64(0), ^uint64(0), ^uint64(0), 0xff}})
	s.fwd.now.sent = s.outstandingPackets.next
	d := s.fwd.now
	t.Logf("sent %d received %d lost %d dropped %d outstanding %d; unknown direction %d", d.sent, d.received, d.lost, d.dropped, d.outstanding(), s.Faults().LowConfidence[LowConfidenceRemoteRestart])
	if d.lost != 0 || d.sent != d.received+d.lost+d.dropped+d.outstanding() {
		t.Errorf("got lost %d, true 0; %d sent != %d received + %d lost + %d dropped + %d outstanding", d.lost, d.sent, d.received, d.lost, d.dropped, d.outstanding())
	}
}

// TestOvertakenReplyDoesNotDoubleTheDrops: a reply overtaken by later ones carries an older total of drops.
func TestOvertakenReplyDoesNotDoubleTheDrops(t *testing.T) {
	s := idleAccount()
	asks(s, 1000)
	told := func(rc stampfmt.Receipt) {
		rc.Filled, rc.Words, rc.Epoch, rc.Host = true, 3, 5, true
		rc.Recent = allReceived()
		s.learn(&Reply{Receipt: rc, HasReceipt: true}, sched.Now(), true)
	}
	told(stampfmt.Receipt{Next: 100, Base: 100, Received: 100, Tx: 100, SocketDrops: 0})
	for i := uint32(1); i <= 10; i++ { // 10 pairs of reordered replies; 5 packets dropped once
		told(stampfmt.Receipt{Next: 100 + 2*i, Base: 100, Received: 100, Tx: 100 + 2*i, SocketDrops: 5})
		told(stampfmt.Receipt{Next: 99 + 2*i, Base: 100, Received: 100, Tx: 99 + 2*i, SocketDrops: 0})
	}
	told(stampfmt.Receipt{Next: 200, Base: 200, Received: 140, Lost: 60, Bursts: 60, Tx: 200, SocketDrops: 5})
	d := s.fwd.now
	if d.dropped > 5 {
		t.Errorf("the remote end's socket dropped 5 packets in all; got host_dropped %d, want at most 5; got lost %d, want at least 55", d.dropped, d.lost)
	}
}

// TestDropsOfAnHourDoNotExplainAnOutageOfThePath: one drop every 2 s, of any session's packets, precedes an outage.
func TestDropsOfAnHourDoNotExplainAnOutageOfThePath(t *testing.T) {
	var d Drops
	const keep = 4 * time.Second
	now := time.Duration(0)
	d.Update(0, now)
	for i := uint64(1); i <= 1800; i++ {
		now += 2 * time.Second
		d.Update(i, now)
		d.Take(0, now, keep)
	}
	if n := d.Take(1800, now+time.Second, keep); n > 3 {
		t.Errorf("%d losses of a path outage attributed to the host, want 2 or 3, the packets dropped within %v", n, keep)
	}
}

// TestDropsToldAreModulo32Bits: the Receipt has their total modulo 2^32 (receipt.go).
func TestDropsToldAreModulo32Bits(t *testing.T) {
	s := idleAccount()
	asks(s, 1000)
	for _, total := range []uint32{0, 0x7fffffff, 0xfffffff0, 0x10} { // 32 dropped in the last step
		s.remoteDrops.Take(1<<40, sched.Now(), time.Hour)
		s.learn(&Reply{Receipt: stampfmt.Receipt{Filled: true, Words: 3, Epoch: 5, Host: true, SocketDrops: total, Recent: allReceived()}, HasReceipt: true}, sched.Now(), true)
	}
	if n := s.remoteDrops.Take(100, sched.Now(), time.Second); n != 32 {
		t.Errorf("%d losses attributed to drops, want 32", n)
	}
}

// TestRunOfOverduePacketsIsABurst: overdue packets are lost.
func TestRunOfOverduePacketsIsABurst(t *testing.T) {
	d, sum := countsOf(sample.Forward)
	var w seqwin.Window
	none := func(uint64) uint64 { return 0 }
	for n := range uint64(100) {
		w.Add(n, 0)
		d.count(w.Counts(), seqwin.RecentBits, none)
		if n >= 40 && n < 60 {
			d.tooLate(n)
		}
	}
	if !slices.Equal(sum.bursts, []int{20}) {
		t.Errorf("bursts of %v packets, want one of 20 (lost %d)", sum.bursts, d.now.lost)
	}
}

// TestOverdueAndLostSideBySideAreOneRun: every second packet of a stall is lost, the others are overdue.
func TestOverdueAndLostSideBySideAreOneRun(t *testing.T) {
	d, sum := countsOf(sample.Forward)
	var w seqwin.Window
	none := func(uint64) uint64 { return 0 }
	now := time.Duration(0)
	for n := range uint64(100) {
		now += time.Millisecond
		if n >= 40 && n < 60 && n%2 == 0 {
			continue // lost in the stall
		}
		w.Add(n, now)
		w.Expire(now, 3*time.Millisecond)
		d.count(w.Counts(), seqwin.RecentBits, none)
		if n >= 40 && n < 60 {
			d.tooLate(n)
		}
	}
	got, ok := sum.losses.BurstRatio()
	if want := 20. * (1 - 20./100); !ok || got < want*0.99 || got > want*1.01 {
		t.Errorf("one run of 20 in 100: got BurstR %.2f (%v), want %.2f; lost %d bursts %d decided %d", got, ok, want, sum.losses.Lost(), sum.losses.Bursts(), sum.losses.Decided())
	}
}

// TestReplyOfAFormerLifeHasNoNumberInThePresentOne: the reply arrives after the first one of the new session,
// reordered or as a duplicate.
func TestReplyOfAFormerLifeHasNoNumberInThePresentOne(t *testing.T) {
	s := idleAccount()
	asks(s, 1000)
	now := time.Second
	in := func(epoch, tx, next uint32) {
		rc := stampfmt.Receipt{Filled: true, Words: 4, Epoch: epoch, Next: next, Base: next, Received: tx, Tx: tx, Recent: allReceived()}
		r := Reply{Receipt: rc, HasReceipt: true}
		r.Packet.Seq, r.Packet.SenderSeq = tx-1, next-1
		if s.learn(&r, now, true) {
			s.number(&r.Packet, Request{}, now, false)
		}
		now += 2 * time.Millisecond
	}
	for i := uint32(1); i <= 500; i++ {
		if i != 500 {
			in(5, i, i)
		}
	}
	in(6, 1, 502)
	in(5, 500, 500) // overtaken by the new session's reply
	for i := uint32(2); i <= 300; i++ {
		in(6, i, 501+i)
	}
	now += 10 * time.Second
	s.reverse.Expire(now, s.opts.LossTimeout)
	s.countReverse()
	if v := s.rev.now; v.lost > 1 || v.duplicated > 0 {
		t.Errorf("got %+v, want every reply received", v)
	}
}
