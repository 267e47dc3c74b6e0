package ledger

import (
	"time"

	"oneway.example/exporter/core/sample"
)

// DirectionCounts are the packets of one direction, as far as they are known.
type DirectionCounts struct {
	// Sent = Received + Lost + Dropped (by the receiving host) + Undecided (whose outcome stays unknown) + Outstanding.
	Sent, Received, Lost, Dropped, Undecided, Outstanding Optional[uint64]
	// Duplicated, Reordered, Late and Corrupted packets are counted separately.
	Duplicated, Reordered, Late, Corrupted Optional[uint64]
}

// Epoch returns the session of our reflector; 0: unknown.
func (a *Account) Epoch() uint32 { return a.remote.epoch }

// Returned reports whether an earlier session of our reflector has replied to a packet that was sent after a reply of the present one
// arrived: several reflectors have the address, in turn or all. The next call returns false until it does so again.
func (a *Account) Returned() (returned bool) {
	returned, a.returned = a.returned, false
	return returned
}

// Silent returns the time since the last reply, or since the session began.
func (a *Account) Silent() time.Duration {
	if a.lastReply == 0 {
		return a.now - a.awaited
	}
	return a.now - a.lastReply
}

// Unheard returns for how long this host has run without a packet of the peer, whether a reply or not.
func (a *Account) Unheard() time.Duration {
	return a.now - max(a.awaited, a.Faults().lastRefused)
}

// Faults returns the counts of faults.
func (a *Account) Faults() (v Faults) {
	if a.faults != nil {
		v = *a.faults
	}
	return v
}

// Direction returns the known counts of one direction.
func (a *Account) Direction(dir sample.Direction) DirectionCounts {
	a.fwd.now.sent = a.outstandingPackets.next
	c, forward := &a.rev, dir == sample.Forward
	if forward {
		c = &a.fwd
	}
	n, exact := c.now, c.known && (a.Kind == RemoteOurs || !forward)
	counted := OptionalOf[uint64]
	return DirectionCounts{
		Sent:     counted(n.sent, c.known || forward),
		Received: counted(n.received, a.Kind != RemoteUnknown && (a.Kind != RemoteStateful || c.known)),
		Lost:     counted(n.lost, c.known), Outstanding: counted(n.outstanding(), c.known),
		Undecided:  counted(n.undecided, n.undecided > 0),
		Dropped:    counted(n.dropped, c.known && (!forward || a.remoteHost)),
		Duplicated: counted(n.duplicated, exact), Reordered: counted(n.reordered, exact),
		Late: counted(n.late, exact), Corrupted: counted(n.corrupted, exact),
	}
}
