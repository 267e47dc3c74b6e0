package udp

import (
	"encoding/json"
	"math"
	"time"

	"oneway.example/exporter/bound"
	"oneway.example/exporter/instant"
	"oneway.example/exporter/sample"
	"oneway.example/exporter/stream"
)

// Transfer is one stream, as both ends saw it.
type Transfer struct {
	Direction sample.Direction `json:"-"`
	Plan      stream.Plan      `json:"plan"`
	Sent      *stream.Sent     `json:"sent"`
	Received  *stream.Received `json:"received"`
	// Packets are those that were tried, in the order of the plan: Packets[i] is number i.
	Packets []Packet `json:"-"`
	Counts  Counts   `json:"counts"`
	// Local and Remote are the clocks of this agent and of the load server, before and after.
	Local  Clocks `json:"local_clock"`
	Remote Clocks `json:"remote_clock"`
	// Shared: both ends run on one kernel, and so read one clock.
	Shared bool `json:"one_clock"`
	// Cut says in words why it ended early; empty: it did not.
	Cut string `json:"cut,omitempty"`

	bound sample.Bound
	ends  bound.Ends
	took  time.Duration // all of it, until the records were here
}

// Packet is one packet of a transfer.
type Packet struct {
	// Sent is absent if the sender's kernel refused it: then it is no loss of the path.
	// Arrived is the first intact copy's stamp, or of the first damaged one if none was
	// intact; absent if there was none.
	Sent, Arrived sample.Stamp
	// Due is when it was to leave.
	Due instant.Time
	// Seq is its number in the plan, Segment that of its segment.
	Seq     uint32
	Segment uint16
	// IPBytes is the IP packet's size, header included.
	IPBytes uint32
	// Copies are the intact ones that arrived; above 1 it was duplicated (RFC 5560).
	Copies uint16
	// Damage is that of the first damaged copy.
	Damage stream.Damage
	// Reordered: a later packet arrived before it (RFC 4737 section 3).
	Reordered bool
}

// Lost tells whether no intact copy arrived of a packet that was sent (RFC 7680 section 2.4).
func (p *Packet) Lost() bool { return p.Sent.Present() && p.Copies == 0 }

// Clocks is one clock at the beginning and the end of a transfer.
type Clocks struct {
	Before Clock `json:"before"`
	After  Clock `json:"after"`
	// Largest is the largest bound seen between the two, where it was looked at.
	Largest time.Duration `json:"largest_bound_ns,omitempty"`
}

// Counts are whole numbers of packets. Sent = Arrived + Lost.
type Counts struct {
	Planned int `json:"planned_packets"`
	// NotTried were not sent because the transfer was cut; Refused by the sender's kernel.
	NotTried int `json:"not_tried_packets"`
	Refused  int `json:"refused_packets"`
	// Withheld were not sent by the load server because it heard nothing of this end.
	Withheld int `json:"withheld_packets,omitempty"`
	Sent     int `json:"sent_packets"`
	// Arrived counts packets of which an intact copy came, Lost the others of those sent.
	Arrived    int `json:"arrived_packets"`
	Lost       int `json:"lost_packets"`
	Duplicated int `json:"duplicated_packets"` // additional intact copies
	Reordered  int `json:"reordered_packets"`
	// Damaged copies, by kind.
	Damaged Damaged `json:"damaged_packets"`
	// Unsent arrived, and by the sender's account were never sent: none of them counts.
	Unsent int `json:"unsent_packets"`
}

// Damaged counts copies by stream.Damage; that of stream.Intact is 0 always.
type Damaged [5]int

// MarshalJSON is an object of the kinds that occur, such as {"truncated": 2}.
func (d Damaged) MarshalJSON() ([]byte, error) {
	kinds := map[string]int{}
	for kind, n := range d {
		if n > 0 {
			kinds[stream.Damage(kind).String()] = n
		}
	}
	return json.Marshal(kinds)
}

// HostDropped is how many of the packets lost the receiving host itself has dropped, at its
// socket or before it: as many as it counted, and no more than were lost. They are no loss of
// the path.
func (t *Transfer) HostDropped() int {
	return int(min(t.Received.Dropped+t.Received.BacklogDropped, uint64(t.Counts.Lost)))
}

// LossRatio is Lost of Sent; false if none was sent.
func (c *Counts) LossRatio() (float64, bool) {
	if c.Sent == 0 {
		return 0, false
	}
	return float64(c.Lost) / float64(c.Sent), true
}

// Underrun is the share of the planned packets that the sender did not send, and might have.
func (c *Counts) Underrun() float64 {
	if c.Planned == 0 {
		return 0
	}
	return float64(c.Planned-c.Sent-c.Withheld) / float64(c.Planned)
}

// Lag is longer than the last packet took to arrive: how long the transfer has taken, less
// the time in which it was sent. It needs no clock but this host's, and counts in what
// both ends had to say to each other. False: something was lost, and waited for, or nothing
// was sent.
func (t *Transfer) Lag() (lag time.Duration, ok bool) {
	return max(0, t.took-t.Duration()), t.Counts.Sent > 0 && t.Counts.Lost == 0
}

// Duration is from the first packet that was sent to the last.
func (t *Transfer) Duration() time.Duration { return max(0, t.Sent.End.Sub(t.Sent.Begin)) }

// join brings the two ends' records of one stream together, by the packets' numbers.
// Neither record is trusted: what arrived of a number that the sender never sent is
// counted and otherwise ignored.
func join(p stream.Plan, overhead int, sent *stream.Sent, received *stream.Received) ([]Packet, Counts) {
	packets, c := departures(p, overhead, sent)
	next := uint32(0) // NextExp of RFC 4737 section 3.3
	for i := range received.Packets {
		r := &received.Packets[i]
		if r.Damage != stream.Intact {
			c.Damaged[min(int(r.Damage), len(c.Damaged)-1)]++
		}
		if r.Damage == stream.BadHeader {
			continue // its number may be any packet's
		}
		if int64(r.Seq) >= int64(len(packets)) || !packets[r.Seq].Sent.Present() {
			c.Unsent++
			continue
		}
		one := &packets[r.Seq]
		switch {
		case r.Damage != stream.Intact:
			if one.Copies == 0 && one.Damage == stream.Intact {
				one.Arrived, one.Damage = r.Stamp, r.Damage
			}
			if one.Damage == stream.Intact {
				one.Damage = r.Damage
			}
			continue
		case one.Copies > 0: // duplicates are dropped before order is looked at (RFC 4737 section 3.3)
			c.Duplicated++
		default:
			one.Arrived = r.Stamp
			if one.Reordered = r.Seq < next; one.Reordered {
				c.Reordered++
			} else {
				next = r.Seq + 1
			}
			c.Arrived++
		}
		if one.Copies < math.MaxUint16 {
			one.Copies++
		}
	}
	c.Duplicated += unlisted(received, &c.Damaged)
	c.Lost = c.Sent - c.Arrived
	return packets, c
}

// unlisted is how many duplicates came for which the receiver had no room: of what it counts as
// such, the rest was damaged.
func unlisted(received *stream.Received, listed *Damaged) int {
	damaged := received.CorruptPackets
	for _, n := range listed {
		damaged -= n
	}
	return max(0, int(min(received.Overflow, math.MaxInt32))-max(0, damaged))
}

// departures are the packets as the sender tells of them.
func departures(p stream.Plan, overhead int, sent *stream.Sent) ([]Packet, Counts) {
	planned := p.Packets()
	if p.Feedback > 0 { // which is the most, and no promise
		planned = min(planned, len(sent.Packets))
	}
	packets := make([]Packet, min(len(sent.Packets), planned))
	c := Counts{Planned: planned, NotTried: planned - len(packets)}
	i := 0
	for segment, s := range p.Segments {
		for range min(s.Packets(), len(packets)-i) {
			from := sent.Packets[i]
			packets[i] = Packet{
				Sent: from.Stamp, Due: from.Due, Seq: uint32(i), Segment: uint16(segment),
				IPBytes: uint32(s.PayloadBytes + overhead),
			}
			if from.Stamp.Present() {
				c.Sent++
			} else {
				c.Refused++
			}
			i++
		}
	}
	c.Withheld = min(sent.Withheld(), c.Refused)
	c.Refused -= c.Withheld
	return packets, c
}

// stamped tells whether the packet has a delay: an intact copy, and both stamps.
func (p *Packet) stamped() bool {
	return p.Copies > 0 && p.Sent.Origin != sample.Absent && p.Arrived.Origin != sample.Absent
}

// reasonNamed is the reason of a word; an unknown word is an unknown clock.
func reasonNamed(word string) sample.Reason {
	for _, r := range sample.Reasons() {
		if r.String() == word {
			return r
		}
	}
	return sample.Unknown
}

// judgeClocks says what both clocks together are worth for this transfer. A clock's error
// is the larger of its bounds before and after, and of what was seen between; the remote
// clock's is not seen between, where it can only have grown as a clock's bound does, some
// microseconds a minute.
func (t *Transfer) judgeClocks() {
	local, remote := t.Local.verdict(), t.Remote.verdict()
	switch remote.Reason { // as that of the remote end
	case sample.OK, sample.BoundTooLarge:
	case sample.LocalStepped:
		remote.Reason = sample.RemoteStepped
	default:
		remote.Reason = sample.RemoteUnsynchronized
	}
	t.bound = bound.Clocks(local, remote)
	if t.Shared && bound.SharedClock(local, remote) {
		t.bound = sample.Bound{Reason: sample.OK}
	}
}

// verdict is that of one clock, as if it were the local one.
func (c Clocks) verdict() sample.Bound {
	before, after := reasonNamed(c.Before.Reason), reasonNamed(c.After.Reason)
	switch {
	case c.Before.Steps != c.After.Steps || before == sample.LocalStepped || after == sample.LocalStepped:
		return sample.Bound{Reason: sample.LocalStepped}
	case before != sample.OK:
		return sample.Bound{Reason: before}
	case after != sample.OK:
		return sample.Bound{Reason: after}
	case min(c.Before.Bound, c.After.Bound, c.Largest) < 0:
		return sample.Bound{Reason: sample.BoundTooLarge} // no error is negative
	}
	return sample.Bound{Error: max(c.Before.Bound, c.After.Bound, c.Largest), Reason: sample.OK}
}

// Bound is what both clocks together may be off by during the transfer, stamps apart.
func (t *Transfer) Bound() sample.Bound { return t.bound }

// Stepped tells whether a clock was stepped between the beginning and the end: then not
// even the differences between delays mean anything.
func (t *Transfer) Stepped() bool {
	return t.bound.Reason == sample.LocalStepped || t.bound.Reason == sample.RemoteStepped
}

// crystal is how fast two clocks that nothing disciplines drift apart at the most: 50 ppm
// each, the tolerance of ordinary oscillators.
const crystal = 100e-6

// Drift is how far, as a ratio of time, the difference of both clocks may change while the
// transfer lasts: by no more than two oscillators' worth, and of clocks within their
// bounds by no more than from one end of both to the other.
func (t *Transfer) Drift() float64 {
	if t.Shared && !t.Stepped() {
		return 0
	}
	took := t.Duration()
	if t.bound.Reason != sample.OK || took <= 0 {
		return crystal
	}
	return min(crystal, 2*float64(t.bound.Error)/float64(took))
}

// Delay is the one-way delay of packet i, with its bound: both clocks, and both stamps.
// Its reason is sample.NoStamp for a packet that did not arrive intact, or lacks a stamp;
// with any other reason there is a value, if not always a valid one.
func (t *Transfer) Delay(i int) sample.Delay {
	p := &t.Packets[i]
	if !p.stamped() {
		return sample.Delay{Reason: sample.NoStamp}
	}
	d, _ := t.ends.Delay(t.Direction, p.Sent, p.Arrived, t.bound)
	return d
}

// StampError is how far a delay of this transfer may be off for the stamps of both ends,
// of packets that were not held: the largest of the origins that occur.
func (t *Transfer) StampError() (most time.Duration) {
	for i := range t.Packets {
		if p := &t.Packets[i]; p.stamped() {
			sent := p.Sent
			sent.TXUncertainty = 0
			most = max(most, t.ends.Stamps(t.Direction, sent, p.Arrived))
		}
	}
	return most
}

// SpacingError is how far the time between two arrivals of this transfer may be off for the
// receiver's stamps: the largest of the origins that occur. What the remote end's interface holds back is not known here.
func (t *Transfer) SpacingError() (most time.Duration) {
	for i := range t.Packets {
		if p := &t.Packets[i]; p.stamped() {
			most = max(most, t.ends.Spacing(t.Direction, p.Arrived))
		}
	}
	return most
}
