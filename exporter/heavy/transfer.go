package heavy

import (
	"encoding/json"
	"time"

	"oneway.example/exporter/bound"
	"oneway.example/exporter/control"
	"oneway.example/exporter/instant"
	"oneway.example/exporter/sample"
	"oneway.example/exporter/stream"
)

// Transfer is one stream, as both ends saw it.
type Transfer struct {
	Direction sample.Direction
	Plan      stream.Plan
	Sent      *stream.Sent
	Received  *stream.Received
	// Packets are those that were tried, in the order of the plan: Packets[i] is number i.
	Packets []Packet
	Counts  Counts
	// Near and Far are the clocks of this agent and of the responder, before and after.
	Near, Far Clocks
	// Shared: both ends run on one kernel, and so read one clock.
	Shared bool
	// Cut says in words why it ended early; empty: it did not.
	Cut string

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
	Before control.Clock `json:"before"`
	After  control.Clock `json:"after"`
	// Largest is the largest bound seen between the two, where it was looked at.
	Largest time.Duration `json:"largest_bound_ns,omitempty"`
}

// Counts are whole numbers of packets. Sent = Arrived + Lost.
type Counts struct {
	Planned int `json:"planned_packets"`
	// NotTried were not sent because the transfer was cut; Refused by the sender's kernel.
	NotTried int `json:"not_tried_packets"`
	Refused  int `json:"refused_packets"`
	// Withheld were not sent by the responder because it heard nothing of this end.
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

// Shortfall is the share of the planned packets that the sender did not send, and might have.
func (c *Counts) Shortfall() float64 {
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
