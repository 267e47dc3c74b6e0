package ledger

import (
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
)

// Next returns the number of the next test packet: so many were sent.
func (a *Account) Next() uint64 { return a.outstandingPackets.next }

// Send records that a test packet is being sent at the monotonic time now, with the T1 user, and returns its number. It
// allocates only when more packets are outstanding than before.
func (a *Account) Send(now time.Duration, user instant.Time, then ClockThen) (seq uint64) {
	seq = a.outstandingPackets.next
	a.lose(a.outstandingPackets.add(seq, now, user, then))
	return seq
}

// Withdraw records that the newest packet, numbered seq, never left this host: its number is used again.
func (a *Account) Withdraw(seq uint64, why SkipReason) {
	a.outstandingPackets.withdraw(seq)
	a.Skip(why, 1)
}

// Transmitted takes the timestamp of packet seq. It returns the T1 in the packet; taken is false if the packet is no longer
// remembered, or has a better timestamp.
func (a *Account) Transmitted(seq uint64, t1 sample.Stamp) (user instant.Time, taken bool) {
	f := a.outstandingPackets.get(seq)
	if f == nil || f.origin > t1.Origin {
		return 0, false
	}
	f.stamped(t1)
	return f.user, true
}

// Outstanding counts the packets that may still get a reply.
func (a *Account) Outstanding() uint64 { return a.outstandingPackets.outstanding() }

// Awaited counts the packets whose reply may still come in time.
func (a *Account) Awaited() uint64 { return a.outstandingPackets.awaited() }

// Tick does the periodic work at the monotonic time now. All packets that arrived before heard were taken.
func (a *Account) Tick(now, heard time.Duration) {
	a.SetLate(now - heard)
	a.expire(heard)
	a.Flush(heard - a.opts.replyWait())
}
