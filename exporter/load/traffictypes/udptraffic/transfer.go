package udptraffic

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"oneway.example/exporter/core/bound"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/stream"
	"oneway.example/exporter/probe/endclock"
)

// Transfer is one stream with the records of both ends.
type Transfer struct {
	Direction sample.Direction `json:"-"`
	Plan      stream.Plan      `json:"plan"`
	Sent      *stream.Sent     `json:"sent"`
	Received  *stream.Received `json:"received"`
	// Packets are those that were tried, in the order of the plan: Packets[i] has number i.
	Packets []Packet `json:"-"`
	Counts  Counts   `json:"counts"`
	// Local and Remote are the clocks of this agent and of the load server.
	Local  endclock.Span `json:"local_clock"`
	Remote endclock.Span `json:"remote_clock"`
	// SharedClock: both ends run on one kernel and read one clock.
	SharedClock bool `json:"shared_clock"`
	// Cut is why the transfer ended early; empty: it did not.
	Cut string `json:"ended_early,omitempty"`

	bound sample.Bound
	ends  bound.Ends
	took  time.Duration // total time until the records were received
}

// Packet is one packet of a transfer.
type Packet struct {
	// Sent is absent if the sender's kernel refused the packet: it is then no loss of the path. Arrived
	// is the timestamp of the first intact copy, or of the first damaged one if none was intact;
	// absent if none arrived.
	Sent, Arrived sample.Stamp
	// Due is the planned time of sending.
	Due instant.Time
	// Seq is its number in the plan, Segment that of its segment.
	Seq     uint32
	Segment uint16
	// IPBytes is the size of the IP packet, header included.
	IPBytes uint32
	// Copies is the number of intact copies that arrived; above 1 it was duplicated (RFC 5560).
	Copies uint16
	// Damage of the first damaged copy.
	Damage stream.Damage
	// Reordered: a later packet arrived before it (RFC 4737 section 3).
	Reordered bool
}

// Lost returns whether the packet was sent and no intact copy arrived (RFC 7680 section 2.4).
func (p *Packet) Lost() bool { return p.Sent.Present() && p.Copies == 0 }

// Counts are numbers of packets. Sent = Arrived + Lost.
type Counts struct {
	Planned int `json:"planned_packets"`
	// NotTried were not sent because the transfer ended early; Refused by the sender's kernel.
	NotTried int `json:"not_tried_packets"`
	Refused  int `json:"send_failed_packets"`
	// Withheld were not sent by the load server for lack of consent.
	Withheld int `json:"withheld_packets,omitempty"`
	Sent     int `json:"sent_packets"`
	// Arrived counts sent packets with an intact copy, Lost the other sent ones.
	Arrived    int `json:"received_packets"`
	Lost       int `json:"lost_packets"`
	Duplicated int `json:"duplicated_packets"` // additional intact copies
	Reordered  int `json:"reordered_packets"`
	// Damaged copies, by kind.
	Damaged Damaged `json:"corrupted_packets"`
	// Unsent arrived but are not in the sender's records; they are not counted elsewhere.
	Unsent int `json:"unrecorded_packets"`
}

// Damaged counts copies by stream.Damage; that of stream.Intact is always 0.
type Damaged [5]int

// MarshalJSON returns an object of the kinds that occur, such as {"truncated": 2}.
func (d Damaged) MarshalJSON() ([]byte, error) {
	kinds := map[string]int{}
	for kind, n := range d {
		if n > 0 {
			kinds[stream.Damage(kind).String()] = n
		}
	}
	return json.Marshal(kinds)
}

// HostDropped returns how many of the lost packets the receiving host dropped, at its socket or before:
// the number that the kernel counted, at most Lost. They are no loss of the
// path.
func (t *Transfer) HostDropped() int {
	return int(min(t.Received.Dropped+t.Received.BacklogDropped, uint64(t.Counts.Lost)))
}

// LossRatio returns Lost/Sent; false if none was sent.
func (c *Counts) LossRatio() (float64, bool) {
	if c.Sent == 0 {
		return 0, false
	}
	return float64(c.Lost) / float64(c.Sent), true
}

// Underrun returns the share of the planned packets that the sender did not send, without Withheld.
func (c *Counts) Underrun() float64 {
	if c.Planned == 0 {
		return 0
	}
	return float64(c.Planned-c.Sent-c.Withheld) / float64(c.Planned)
}

// Lag returns an upper bound of the delay of the last packet: the total time of the transfer less the
// time of sending. It uses only this host's clock, and includes the time of control messages. False:
// a packet was lost, and waited for, or none was
// sent.
func (t *Transfer) Lag() (lag time.Duration, ok bool) {
	return max(0, t.took-t.Duration()), t.Counts.Sent > 0 && t.Counts.Lost == 0
}

// CutShort returns an error if the transfer ended before its plan.
func (t *Transfer) CutShort() error {
	if t.Cut == "" {
		return nil
	}
	return &loadtest.Failure{Reason: runreason.Timeout, Err: fmt.Errorf("%s transfer was cut short: %s", t.Direction, t.Cut)}
}

// Duration is the time from the first sent packet to the last.
func (t *Transfer) Duration() time.Duration { return max(0, t.Sent.End.Sub(t.Sent.Begin)) }

// join joins the two ends' records of one stream by the packets' numbers. The records are not trusted:
// a received number that was not sent is counted in Unsent
// only.
func join(p stream.Plan, overhead int, sent *stream.Sent, received *stream.Received) ([]Packet, Counts) {
	packets, c := departures(p, overhead, sent)
	next := uint32(0) // NextExp of RFC 4737 section 3.3
	for i := range received.Packets {
		r := &received.Packets[i]
		if r.Damage != stream.Intact {
			c.Damaged[min(int(r.Damage), len(c.Damaged)-1)]++
		}
		if r.Damage == stream.BadHeader {
			continue // its number may be damaged
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
		case one.Copies > 0: // duplicates are dropped before reordering is determined (RFC 4737 section 3.3)
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

// unlisted returns the number of duplicates for which the receiver had no space: of Overflow, the rest
// was damaged.
func unlisted(received *stream.Received, listed *Damaged) int {
	damaged := received.CorruptPackets
	for _, n := range listed {
		damaged -= n
	}
	return max(0, int(min(received.Overflow, 1<<30))-max(0, damaged))
}

// departures converts the sender's records.
func departures(p stream.Plan, overhead int, sent *stream.Sent) ([]Packet, Counts) {
	planned := p.Packets()
	if p.Feedback > 0 { // the plan is an upper limit
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

// stamped returns whether the packet has a delay: an intact copy and both timestamps.
func (p *Packet) stamped() bool {
	return p.Copies > 0 && p.Sent.Origin != sample.Absent && p.Arrived.Origin != sample.Absent
}

// Bound returns the error bound of both clocks during the transfer, without timestamp errors.
func (t *Transfer) Bound() sample.Bound { return t.bound }

// Stepped returns whether a clock was stepped during the transfer: then also differences between delays
// are invalid.
func (t *Transfer) Stepped() bool {
	return t.bound.Reason == sample.LocalStepped || t.bound.Reason == sample.RemoteStepped
}

// crystal is the largest drift between two free-running clocks: 50 ppm each, the tolerance of ordinary
// oscillators.
const crystal = 100e-6

// Drift returns how much the offset between both clocks may change during the transfer, as a ratio of
// time: at most that of two free-running oscillators, and at most twice the clock error bound over the
// duration.
func (t *Transfer) Drift() float64 {
	if t.SharedClock && !t.Stepped() {
		return 0
	}
	took := t.Duration()
	if t.bound.Reason != sample.OK || took <= 0 {
		return crystal
	}
	return min(crystal, 2*float64(t.bound.Error)/float64(took))
}

// Delay returns the one-way delay of packet i, with its bound: both clocks and both timestamps. The
// reason is sample.NoStamp for a packet that did not arrive intact or has no timestamp; with any other
// reason there is a value, which may be invalid.
func (t *Transfer) Delay(i int) sample.Delay {
	p := &t.Packets[i]
	if !p.stamped() {
		return sample.Delay{Reason: sample.NoStamp}
	}
	d, _ := t.ends.Delay(t.Direction, p.Sent, p.Arrived, t.bound)
	return d
}

// disproved reports whether a packet arrived before it was sent, or later than a packet of this transfer can, beyond its error bound.
func (t *Transfer) disproved() bool {
	longest := t.took + t.Plan.Duration()
	for i := range t.Packets {
		p := &t.Packets[i]
		if d, proof := t.ends.Delay(t.Direction, p.Sent, p.Arrived, t.bound); proof || d.OK() && d.Value > longest+d.Bound {
			return true
		}
	}
	return false
}

// LargestBound returns the largest error bound of the rows' delays, which are not corrected by a calibration, or the reason of the
// first delay that is invalid.
func (t *Transfer) LargestBound() sample.Bound {
	all := sample.Bound{Reason: t.bound.Reason}
	for i := range t.Packets {
		switch d := t.Delay(i); {
		case d.OK():
			p := &t.Packets[i]
			all.Error = max(all.Error, d.Bound+(p.Arrived.At.Sub(p.Sent.At)-d.Value).Abs())
		case d.Reason != sample.NoStamp:
			return sample.Bound{Reason: d.Reason}
		}
	}
	return all
}

// StampError returns the largest error of a delay of this transfer due to the timestamps of both
// ends, for packets without TX uncertainty.
func (t *Transfer) StampError() (most time.Duration) {
	for i := range t.Packets {
		if p := &t.Packets[i]; p.stamped() {
			sent := p.Sent
			sent.TXUncertainty = 0
			most = max(most, t.ends.StampError(t.Direction, sent, p.Arrived))
		}
	}
	return most
}

// SpacingError returns the largest error of the time between two arrivals of this transfer due to the
// receiver's timestamps. The error of the remote end's interface is unknown here.
func (t *Transfer) SpacingError() (most time.Duration) {
	for i := range t.Packets {
		if p := &t.Packets[i]; p.stamped() {
			most = max(most, t.ends.SpacingError(t.Direction, p.Arrived))
		}
	}
	return most
}
