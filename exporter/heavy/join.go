package heavy

import (
	"math"

	"oneway.example/exporter/sample"
	"oneway.example/exporter/stream"
)

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
