package ledger

import (
	"time"

	"oneway.example/exporter/core/bound"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/estimate/loss"
	"oneway.example/exporter/estimate/seqwin"
	"oneway.example/exporter/net/tstamp"
)

// VerdictKind is what a verdict is about.
type VerdictKind uint8

// Kinds of verdicts.
const (
	// PacketAnswered: a test packet has a reply, and its true T3 is known or no longer awaited.
	PacketAnswered VerdictKind = iota
	// PacketUnanswered: a test packet has no reply within the loss timeout.
	PacketUnanswered
	// RoundTripsDecided: round trips were received and lost.
	RoundTripsDecided
	// PacketsDecided: packets of one direction were received or lost, dropped by the receiving host, duplicated,
	// reordered or late.
	PacketsDecided
	// PacketsUndecided: the outcome of packets of one direction stays unknown; Decided is their number.
	PacketsUndecided
	// PacketOverdue: a packet that its receiver counted as received took longer than the loss timeout, and is lost.
	PacketOverdue
	// BurstEnded: a run of lost packets has ended; Lost is its length.
	BurstEnded
	// RemoteIdentified: the remote end is our reflector. RemoteRenumbered: its numbers begin anew.
	RemoteIdentified
	RemoteRenumbered
)

// Verdict is what an event decided. A receiver reports numbers of packets, in an order that is not always known; so a
// verdict about one direction has numbers.
type Verdict struct {
	// Kind is what it is about; Direction is of verdicts about one direction.
	Kind      VerdictKind
	Direction sample.Direction
	// Losses are the numbers of decided packets. Completed is valid until the next verdict.
	Losses loss.Delta
	// Packet is the sample of PacketAnswered. It is valid during the call, as is Sent.
	Packet *PendingReply
	// Sent is the sending of PacketUnanswered, numbered Seq.
	Sent *Outstanding
	Seq  uint64
}

// Accept applies the loss timeout and finds the request that a reply refers to. A reply without one is counted.
// The number of a reply that shares its numbers with others is ignored.
func (a *Account) Accept(r *Reply, now time.Duration) (q Request, ok bool) {
	a.lose(a.outstandingPackets.expire(now, a.opts.LossTimeout))
	q, why, ok := a.RequestOf(r)
	if !ok {
		a.Refuse(why, now)
	} else {
		a.unshare(r, q, now)
	}
	return q, ok
}

// Report takes what the reply to q contains besides its timestamps: the counts of our reflector, and the reply to a statistics
// query. present: the reply is of the remote end's current session.
func (a *Account) Report(r *Reply, q Request, now time.Duration) (present bool) {
	present = true
	switch {
	case q.Forgotten(): // only a 32-bit value identifies the session
		present = r.Receipt.Epoch == a.remote.epoch
	case r.counted():
		present = a.learn(r, now, a.fresh(r, q))
	case !q.StatsQuery && !r.Unnumbered && !r.Filled():
		present = a.atPort(r, now)
	}
	switch {
	case !q.StatsQuery:
	case r.Filled():
		a.statsQuery.answered(r.Receipt.Finish)
	default:
		a.foreignStatsQuery(r, now)
	}
	return present
}

// Judge decides about the reply to a test packet, whose sample is one; present: it is of the remote end's current session.
func (a *Account) Judge(in *tstamp.In, r *Reply, q Request, one *PendingReply, now time.Duration, present bool) {
	if f := q.Outstanding; f == nil { // the delays tell, by T1 in the reply
		one.Lost = a.overdue(one)
	} else {
		one.arrived, one.Expired = now, f.state != packetOutstanding
		if now-f.sent > a.opts.LossTimeout {
			one.Lost = a.overdue(one)
		}
		if one.Lost[sample.Reverse] && r.counted() { // the true T3 follows
			one.Lost[sample.Reverse], one.undecided = false, true
		}
	}
	a.countHops(in, r)
	a.countTrafficClass(in)
	n, where, first := a.take(r, q, now, one.Lost, present)
	if r.HasFollow && r.FollowUp.Mode != 0 && !r.Filled() {
		a.replies.settle(seqwin.Extend(n, r.FollowUp.Seq), r.Decode(r.FollowUp.T3, a.opts.TAIOffset, in.At), a.conclude)
	}
	one.Packet.ReverseSeq = n
	switch {
	case q.Outstanding == nil && where != seqwin.Duplicate:
		// Our reflector counted it as received, and reports when; of several copies the first counts.
		if r.counted() && q.Seq >= a.fwd.lastOverdue && !a.remoteLost(q.Seq) && one.Lost[sample.Forward] {
			a.fwd.tooLate(q.Seq)
		}
	case !first && (where == seqwin.Unique || where == seqwin.Reordered):
		one.Copy = true
		a.replies.put(one, a.conclude)
	case !first:
	case where == seqwin.Late:
		// It is lost in reverse; its forward delay is valid.
		one.Lost[sample.Reverse], one.undecided = true, false
		a.replies.pass(one, a.conclude)
	case !present:
		a.LastSuccess = in.At
		a.replies.pass(one, a.conclude) // its number is not of the present ones
	default:
		a.LastSuccess = in.At
		a.replies.put(one, a.conclude)
	}
}

// conclude decides about an answered packet, whose T3 is final.
func (a *Account) conclude(one *PendingReply) {
	p := &one.Packet
	one.widenT3(a.rev.told)
	if f := a.outstandingPackets.get(p.Seq); f != nil {
		p.T1 = f.SentAt() // its kernel timestamp may have arrived after the reply
	}
	if one.undecided {
		if one.Lost[sample.Reverse] = a.overdue(one)[sample.Reverse]; one.Lost[sample.Reverse] {
			a.rev.tooLate(p.ReverseSeq)
		}
	}
	a.decided(Verdict{Kind: PacketAnswered, Packet: one})
}

// Flush concludes the replies that arrived before the given time.
func (a *Account) Flush(before time.Duration) { a.replies.flush(before, a.conclude) }

// mostStampError is more than the errors of timestamps that make a short delay negative.
const mostStampError = 10 * time.Millisecond

// overdue reports in which directions the delay of a packet, whose round trip exceeded the loss timeout, certainly
// exceeded it as well; a wrong clock therefore causes no loss. If the clocks are not trusted, their bounds are
// too large, or a delay is negative beyond them, neither direction is reported.
func (a *Account) overdue(one *PendingReply) (lost [2]bool) {
	p := &one.Packet
	least, ok := a.surely(one.Clock.Bound, p.Remote, one.Shared)
	if !ok {
		return lost
	}
	forward, reverse := p.T2.At.Sub(p.T1.At), p.T4.At.Sub(p.T3.At)
	if known := p.T2.Present() && p.T3.Present(); known && min(forward, reverse) < a.opts.LossTimeout-least-mostStampError {
		return lost
	}
	lost[sample.Forward] = p.T2.Present() && forward > least
	lost[sample.Reverse] = p.T3.Present() && reverse > least
	return lost
}

// surely returns the least measured delay whose true value certainly exceeds the loss timeout, given the clocks
// local and remote; false if they are not trusted.
func (a *Account) surely(local, remote sample.Bound, shared bool) (least time.Duration, ok bool) {
	if shared && bound.SharedClock(local, remote) {
		return a.opts.LossTimeout, true
	}
	clocks := bound.Clocks(local, remote)
	return bound.Sum(a.opts.LossTimeout, clocks.Error), clocks.Reason == sample.OK
}
