package stream

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
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
	// (How.Consent); of a plan that is Unstamped, User.
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
	// Overwritten: right up to some byte, and from there on to its end something else.
	Overwritten
	// BitErrors: single bytes differ.
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
	// PayloadBytes arrived of WantBytes. First is the offset of the first byte that
	// differs, and Differing how many do.
	PayloadBytes int `json:"payload_bytes"`
	WantBytes    int `json:"want_bytes"`
	First        int `json:"first_octet"`
	Differing    int `json:"differing_octets"`
	// Got is what was there from First on, and Want what should have been.
	Got  []byte `json:"got"`
	Want []byte `json:"want"`
}

// Moved is how many packets of the plan left their host, and their UDP payload.
func (s *Sent) Moved(p Plan) (packets int, payload int64) {
	sent := s.Packets
	for _, segment := range p.Segments {
		n := min(segment.Packets(), len(sent))
		for i := range sent[:n] {
			if sent[i].Stamp.Present() {
				packets++
				payload += int64(segment.PayloadBytes)
			}
		}
		sent = sent[n:]
	}
	return packets, payload
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

// Damages lists all values in order.
func Damages() []Damage { return []Damage{Intact, Truncated, Overwritten, BitErrors, BadHeader} }

// String is the word for it in reports and labels.
func (d Damage) String() string {
	words := [...]string{
		Intact: "intact", Truncated: "truncated", Overwritten: "overwritten", BitErrors: "bit_errors",
		BadHeader: "bad_header",
	}
	if int(d) >= len(words) || words[d] == "" {
		return "invalid"
	}
	return words[d]
}

// The records of packets as bytes, for the other end: a version, the number of
// packets as a varint, and then each packet. Times are differences to what the packet
// before it makes expect, as signed varints (encoding/binary), so that an evenly paced
// packet takes some eight bytes on each side.
const (
	sentVersion     = 1
	receivedVersion = 2

	// The first byte of a packet: the stamp's origin, the damage, and what follows.
	originBits  = 7
	damageShift = 3
	damageBits  = 7 << damageShift
	hasHeld     = 1 << 6
	hasBytes    = 1 << 6

	// The fewest bytes of a packet bound what a claimed number of them costs.
	leastSent, leastReceived = 2, 2
)

// ErrRecords is wrapped by what ParseSent and ParseReceived find wrong.
var ErrRecords = errors.New("stream: malformed records")

// AppendTo appends the records of s.Packets to b.
func (s *Sent) AppendTo(b []byte) []byte {
	b = append(b, sentVersion)
	b = binary.AppendUvarint(b, uint64(len(s.Packets)))
	var due, step, wait int64
	for i := range s.Packets {
		p := &s.Packets[i]
		flags := byte(p.Stamp.Origin) & originBits
		if p.Stamp.TXUncertainty > 0 {
			flags |= hasHeld
		}
		b = append(b, flags)
		b = binary.AppendVarint(b, int64(p.Due)-due-step)
		due, step = int64(p.Due), int64(p.Due)-due
		if p.Stamp.Present() {
			after := int64(p.Stamp.At) - due
			b = binary.AppendVarint(b, after-wait)
			wait = after
		}
		if p.Stamp.TXUncertainty > 0 {
			b = binary.AppendUvarint(b, uint64(p.Stamp.TXUncertainty))
		}
	}
	return b
}

// ParseSent reads what AppendTo of a Sent has written. It allocates no more than some
// 16 times the length of b, whatever b says.
func ParseSent(b []byte) ([]SentPacket, error) {
	r := reader{b: b}
	packets := make([]SentPacket, r.begin(sentVersion, leastSent))
	var due, step, wait int64
	for i := range packets {
		flags := r.oneByte()
		next := due + step + r.varint()
		due, step = next, next-due
		p := &packets[i]
		p.Due, p.Stamp.Origin = instant.Time(due), r.origin(flags)
		if p.Stamp.Present() {
			wait += r.varint()
			p.Stamp.At = instant.Time(due + wait)
		}
		if flags&hasHeld != 0 {
			p.Stamp.TXUncertainty = r.duration()
		}
		if flags&damageBits != 0 {
			r.bad = true
		}
	}
	return packets, r.end()
}

// AppendTo appends the records of r.Packets to b.
func (r *Received) AppendTo(b []byte) []byte {
	b = append(b, receivedVersion)
	b = binary.AppendUvarint(b, uint64(len(r.Packets)))
	var seq, at int64
	var size uint16
	for i := range r.Packets {
		p := &r.Packets[i]
		flags := byte(p.Stamp.Origin)&originBits | byte(p.Damage)<<damageShift&damageBits
		if p.PayloadBytes != size {
			flags |= hasBytes
		}
		b = append(b, flags)
		b = binary.AppendVarint(b, int64(p.Seq)-seq)
		seq = int64(p.Seq) + 1
		if p.Stamp.Present() {
			b = binary.AppendVarint(b, int64(p.Stamp.At)-at)
			at = int64(p.Stamp.At)
		}
		if p.PayloadBytes != size {
			b = binary.AppendUvarint(b, uint64(p.PayloadBytes))
			size = p.PayloadBytes
		}
	}
	return b
}

// ParseReceived reads what AppendTo of a Received has written. It allocates no more
// than some 20 times the length of b, whatever b says.
func ParseReceived(b []byte) ([]ReceivedPacket, error) {
	r := reader{b: b}
	packets := make([]ReceivedPacket, r.begin(receivedVersion, leastReceived))
	var seq, at int64
	var size uint16
	for i := range packets {
		flags := r.oneByte()
		p := &packets[i]
		seq += r.varint()
		if seq < 0 || seq > math.MaxUint32 {
			r.bad = true
		}
		p.Seq, p.Damage, p.Stamp.Origin = uint32(seq), Damage(flags&damageBits>>damageShift), r.origin(flags)
		seq++
		if p.Damage > BadHeader {
			r.bad = true
		}
		if p.Stamp.Present() {
			at += r.varint()
			p.Stamp.At = instant.Time(at)
		}
		if flags&hasBytes != 0 {
			size = r.size()
		}
		p.PayloadBytes = size
	}
	return packets, r.end()
}

// reader takes records apart; bad is set by the first thing that is wrong, and from then
// on everything is zero.
type reader struct {
	b   []byte
	bad bool
}

// begin reads the version and the number of packets; least is the bytes that each has
// at the least.
func (r *reader) begin(version byte, least int) int {
	if r.oneByte() != version {
		r.bad = true
	}
	n := r.uvarint()
	if r.bad || n > MaxPackets || n > uint64(len(r.b)/least) {
		r.bad = true
		return 0
	}
	return int(n)
}

func (r *reader) oneByte() byte {
	if r.bad || len(r.b) == 0 {
		r.bad = true
		return 0
	}
	o := r.b[0]
	r.b = r.b[1:]
	return o
}

func (r *reader) origin(flags byte) sample.Origin {
	o := sample.Origin(flags & originBits)
	if o > sample.FollowUp {
		r.bad = true
	}
	return o
}

func (r *reader) varint() int64 {
	if r.bad {
		return 0
	}
	v, n := binary.Varint(r.b)
	return int64(r.took(uint64(v), n))
}

func (r *reader) uvarint() uint64 {
	if r.bad {
		return 0
	}
	v, n := binary.Uvarint(r.b)
	return r.took(v, n)
}

func (r *reader) took(v uint64, n int) uint64 {
	if n <= 0 {
		r.bad = true
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) duration() time.Duration {
	v := r.uvarint()
	if v == 0 || v > math.MaxInt64 {
		r.bad = true
		return 0
	}
	return time.Duration(v)
}

func (r *reader) size() uint16 {
	v := r.uvarint()
	if v > math.MaxUint16 {
		r.bad = true
	}
	return uint16(v)
}

func (r *reader) end() error {
	switch {
	case r.bad:
		return ErrRecords
	case len(r.b) > 0:
		return fmt.Errorf("%w: %d bytes too many", ErrRecords, len(r.b))
	}
	return nil
}
