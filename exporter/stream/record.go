package stream

import (
	"time"

	"oneway.example/exporter/instant"
	"oneway.example/exporter/sample"
)

// HeaderBytes is what each test packet begins with; the rest of the payload is a pattern
// that depends on the packet's number (package wire/load).
const HeaderBytes = 32

// Sent is what became of a plan at the sender. Packet i of the plan has number i; Packets
// has one entry for each that was tried.
type Sent struct {
	Packets []SentPacket `json:"-"`
	// Planned is the number of packets of the plan; those after len(Packets) were not
	// tried, because the run was ended. Of a plan with feedback it is what was tried.
	Planned int `json:"planned_packets"`
	// Refused were not taken by the kernel: they never left, and are no loss of the path.
	Refused int `json:"refused_packets"`
	// Late left more than LateAfter after their time.
	Late int `json:"late_packets"`
	// Begin and End are the times of the first and the last packet.
	Begin instant.Time `json:"begin_ns"`
	End   instant.Time `json:"end_ns"`
}

// LateAfter is how late a packet may leave and still be punctual.
const LateAfter = time.Millisecond

// SentPacket is a packet at the sender.
type SentPacket struct {
	// Stamp is when it left, absent for one that was refused, or withheld for want of consent
	// (SendWhile); of a plan that is Unstamped, User.
	Stamp sample.Stamp
	// Due is when it was to leave.
	Due instant.Time
}

// Received is what came of a stream at the receiver.
type Received struct {
	Packets []ReceivedPacket `json:"-"`
	// Dropped were dropped by the receiver's own kernel for want of buffer: they look
	// like loss and are not the path's. Of a plan that is Unstamped it is how many they
	// were at the most: the kernel counts packets that it has coalesced as one.
	Dropped uint64 `json:"socket_dropped_packets"`
	// BacklogDropped were dropped by the kernel before any socket, for want of room in
	// a processor's backlog (/proc/net/softnet_stat), on the whole host: up to so many
	// are no loss of the path either.
	BacklogDropped uint64 `json:"backlog_dropped_packets,omitempty"`
	// ChecksumErrors is by how much the kernel's own count of UDP checksum errors grew
	// on the whole host (InCsumErrors of /proc/net/snmp and snmp6).
	ChecksumErrors uint64 `json:"kernel_checksum_errors"`
	// Corrupt are the first damaged packets, MaxCorrupt at the most; CorruptPackets
	// counts all.
	Corrupt        []Corrupt `json:"corrupt,omitempty"`
	CorruptPackets int       `json:"corrupt_packets"`
	// Overflow counts duplicates and damaged headers for which there was no room in Packets:
	// 1024 and a 64th of the plan have it.
	Overflow uint64 `json:"overflow_packets,omitempty"`
}

// ReceivedPacket is a packet at the receiver, in the order of arrival; a duplicate has an
// entry of its own.
type ReceivedPacket struct {
	Seq   uint32
	Stamp sample.Stamp
	// PayloadBytes is what arrived of its UDP payload.
	PayloadBytes uint16
	Damage       Damage
}

// Damage is what is wrong with a packet's content (Woo 2010, figure 5.5).
type Damage uint8

// The kinds of damage. The zero value is none.
const (
	Intact Damage = iota
	// Truncated: it is shorter than its header says, and what is there is right.
	Truncated
	// Overwritten: right up to some octet, and from there on to its end something else.
	Overwritten
	// BitErrors: single octets differ.
	BitErrors
	// BadHeader: the header itself is damaged; nothing more is known of it, and its Seq is
	// what stood there.
	BadHeader
)

// MaxCorrupt is how many damaged packets are kept, CorruptBytes how much of each.
const (
	MaxCorrupt   = 16
	CorruptBytes = 256
)

// Corrupt is a sample of a damaged packet.
type Corrupt struct {
	Seq    uint32 `json:"seq"`
	Damage string `json:"damage"`
	// PayloadBytes arrived of WantBytes. First is the offset of the first octet that
	// differs, and Differing how many do.
	PayloadBytes int `json:"payload_bytes"`
	WantBytes    int `json:"want_bytes"`
	First        int `json:"first_octet"`
	Differing    int `json:"differing_octets"`
	// Got is what was there from First on, and Want what should have been.
	Got  []byte `json:"got"`
	Want []byte `json:"want"`
}

// Withheld is how many packets were due while there was no consent, and never left.
func (s *Sent) Withheld() int {
	n := -s.Refused
	for i := range s.Packets {
		if !s.Packets[i].Stamp.Present() {
			n++
		}
	}
	return max(n, 0)
}
