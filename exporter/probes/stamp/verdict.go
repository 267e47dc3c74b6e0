package stamp

import (
	"time"

	"oneway.example/exporter/core/bound"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/estimate/loss"
	"oneway.example/exporter/estimate/seqwin"
	"oneway.example/exporter/net/tstamp"
)

// verdictKind is what a verdict is about.
type verdictKind uint8

const (
	// packetAnswered: a test packet has a reply, and its true T3 is known or no longer awaited.
	packetAnswered verdictKind = iota
	// packetUnanswered: a test packet has no reply within the loss timeout.
	packetUnanswered
	// roundTripsDecided: round trips were received and lost.
	roundTripsDecided
	// packetsDecided: packets of one direction were received or lost, dropped by the receiving host, duplicated,
	// reordered or late.
	packetsDecided
	// packetOverdue: a packet that its receiver counted as received took longer than the loss timeout, and is lost.
	packetOverdue
	// burstEnded: a run of lost packets has ended; Lost is its length.
	burstEnded
	// remoteIdentified: the remote end is our reflector. remoteRenumbered: its numbers begin anew.
	remoteIdentified
	remoteRenumbered
)

// verdict is what an event decided. A receiver reports numbers of packets, in an order that is not always known; so a
// verdict about one direction has numbers.
type verdict struct {
	kind      verdictKind
	direction sample.Direction
	// losses are the numbers of decided packets. Completed is valid until the next verdict.
	losses loss.Delta
	// packet is the sample of packetAnswered. It is valid during the call, as is sent.
	packet *pendingReply
	// sent is the sending of packetUnanswered, numbered seq.
	sent *outstanding
	seq  uint64
}

// accept applies the loss timeout and finds the request that a reply refers to. A reply without one is counted.
func (a *account) accept(r *reply, now time.Duration) (q request, ok bool) {
	a.lose(a.outstandingPackets.expire(now, a.opts.LossTimeout))
	q, why, ok := a.requestOf(r)
	if !ok {
		a.refuse(why, now)
	}
	return q, ok
}

// report takes what the reply to q contains besides its timestamps: the counts of our reflector, and the reply to a statistics
// query. present: the reply is of the remote end's current session.
func (a *account) report(r *reply, q request, now time.Duration) (present bool) {
	present = true
	switch {
	case q.forgotten(): // only a 32-bit value identifies the session
		present = r.receipt.Epoch == a.remote.epoch
	case r.filled():
		present = a.learn(r, now, a.fresh(r, q))
	}
	switch {
	case !q.statsQuery:
	case r.filled():
		a.statsQuery.answered(r.receipt.Finish)
	default:
		a.foreignStatsQuery(r, now)
	}
	return present
}

// judge decides about the reply to a test packet, whose sample is one; present: it is of the remote end's current session.
func (a *account) judge(in *tstamp.In, r *reply, q request, one *pendingReply, now time.Duration, present bool) {
	if f := q.outstanding; f != nil {
		one.arrived, one.expired = now, f.state != packetOutstanding
		if now-f.sent > a.opts.LossTimeout {
			one.lost = a.overdue(one)
		}
		if one.lost[sample.Reverse] && r.filled() { // the true T3 follows
			one.lost[sample.Reverse], one.undecided = false, true
		}
	}
	a.countHops(in, r)
	a.countTrafficClass(in)
	n, where, first := a.take(&r.packet, q, now, one.lost, present)
	if r.hasFollow && r.followUp.Mode != 0 && !r.filled() {
		a.replies.settle(seqwin.Extend(n, r.followUp.Seq), r.decode(r.followUp.T3, a.opts.TAIOffset, in.At), a.conclude)
	}
	one.packet.ReverseSeq = n
	switch {
	case q.outstanding == nil && where != seqwin.Duplicate:
		// Our reflector counted it as received, and reports when; of several copies the first counts.
		if r.filled() && q.seq >= a.fwd.lastOverdue && !a.remoteLost(q.seq) && a.overdue(one)[sample.Forward] {
			a.fwd.tooLate(q.seq)
		}
	case !first:
	case where == seqwin.Late:
		// It is lost in reverse; its forward delay is valid.
		one.lost[sample.Reverse], one.undecided = true, false
		a.replies.pass(one, a.conclude)
	default:
		a.lastSuccess = in.At
		a.replies.put(one, a.conclude)
	}
}

// conclude decides about an answered packet, whose T3 is final.
func (a *account) conclude(one *pendingReply) {
	p := &one.packet
	if f := a.outstandingPackets.get(p.Seq); f != nil {
		p.T1 = f.sentAt() // its kernel timestamp may have arrived after the reply
	}
	if one.undecided {
		if one.lost[sample.Reverse] = a.overdue(one)[sample.Reverse]; one.lost[sample.Reverse] {
			a.rev.tooLate(p.ReverseSeq)
		}
	}
	a.decided(verdict{kind: packetAnswered, packet: one})
}

// flush concludes the replies that arrived before the given time.
func (a *account) flush(before time.Duration) { a.replies.flush(before, a.conclude) }

// overdue reports in which directions the delay of a packet, whose round trip exceeded the loss timeout, certainly
// exceeded it as well; a wrong clock therefore causes no loss. If the clocks are not trusted, or their bounds are
// too large, neither direction is reported.
func (a *account) overdue(one *pendingReply) (lost [2]bool) {
	p := &one.packet
	least, ok := a.surely(one.clock.bound, p.Remote, one.shared)
	if !ok {
		return lost
	}
	lost[sample.Forward] = p.T2.Present() && p.T2.At.Sub(p.T1.At) > least
	lost[sample.Reverse] = p.T3.Present() && p.T4.At.Sub(p.T3.At) > least
	return lost
}

// surely returns the least measured delay whose true value certainly exceeds the loss timeout, given the clocks
// local and remote; false if they are not trusted.
func (a *account) surely(local, remote sample.Bound, shared bool) (least time.Duration, ok bool) {
	if shared && bound.SharedClock(local, remote) {
		return a.opts.LossTimeout, true
	}
	clocks := bound.Clocks(local, remote)
	return bound.Sum(a.opts.LossTimeout, clocks.Error), clocks.Reason == sample.OK
}
