package stamp

import (
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
)

// next returns the number of the next test packet: so many were sent.
func (a *account) next() uint64 { return a.outstandingPackets.next }

// send records that a test packet is being sent at the monotonic time now, with the T1 user, and returns its number. It
// allocates only when more packets are outstanding than before.
func (a *account) send(now time.Duration, user instant.Time, then clockThen) (seq uint64) {
	seq = a.outstandingPackets.next
	a.lose(a.outstandingPackets.add(seq, now, user, then))
	return seq
}

// withdraw records that the newest packet, numbered seq, never left this host: its number is used again.
func (a *account) withdraw(seq uint64, why skipReason) {
	a.outstandingPackets.withdraw(seq)
	a.skip(why, 1)
}

// transmitted takes the timestamp of packet seq. It returns the T1 in the packet; taken is false if the packet is no longer
// remembered, or has a better timestamp.
func (a *account) transmitted(seq uint64, t1 sample.Stamp) (user instant.Time, taken bool) {
	f := a.outstandingPackets.get(seq)
	if f == nil || f.origin > t1.Origin {
		return 0, false
	}
	f.stamped(t1)
	return f.user, true
}

// outstanding counts the packets that may still get a reply.
func (a *account) outstanding() uint64 { return a.outstandingPackets.outstanding() }

// tick does the periodic work at the monotonic time now. All packets that arrived before heard were taken.
func (a *account) tick(now, heard time.Duration) {
	a.setLate(now - heard)
	a.expire(heard)
	a.flush(heard - a.opts.replyWait())
}

// corrupt counts a damaged reply.
func (a *account) corrupt() { a.rev.now.corrupted++ }

// epoch returns the session of our reflector; 0: unknown.
func (a *account) epoch() uint32 { return a.remote.epoch }

// silent returns the time since the last reply, or since the session began.
func (a *account) silent() time.Duration { return a.now - max(a.started, a.lastReply) }

// refusal returns why the packets since the last reply were no replies, if there were any.
func (a *account) refusal() maybe[discardReason] {
	return maybe[discardReason]{a.refused, a.lastRefused > a.lastReply && (!a.refused.ofKey() || a.keyRefused(a.now))}
}

// faultCounts returns the counts of faults.
func (a *account) faultCounts() (v faults) {
	if a.faults != nil {
		v = *a.faults
	}
	return v
}

// direction returns the known counts of one direction.
func (a *account) direction(dir sample.Direction) knownCounts {
	a.fwd.now.sent = a.outstandingPackets.next
	c, forward := &a.rev, dir == sample.Forward
	if forward {
		c = &a.fwd
	}
	n, exact := c.now, c.known && (a.kind == remoteOurs || !forward)
	counted := func(n uint64, known bool) maybe[uint64] { return maybe[uint64]{n, known} }
	return knownCounts{
		sent:     counted(n.sent, c.known || forward),
		received: counted(n.received, a.kind != remoteUnknown && (a.kind != remoteStateful || c.known)),
		lost:     counted(n.lost, c.known), outstanding: counted(n.outstanding(), c.known),
		dropped:    counted(n.dropped, c.known && (!forward || a.remoteHost)),
		duplicated: counted(n.duplicated, exact), reordered: counted(n.reordered, exact),
		late: counted(n.late, exact), corrupted: counted(n.corrupted, exact),
	}
}
