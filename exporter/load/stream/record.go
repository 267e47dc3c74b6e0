package stream

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
)

// HeaderBytes is the length of the header of each test packet; the rest of the payload is a pattern that
// depends on the packet's number (package wire/load).
const HeaderBytes = 32

// Sent has the records of a plan at the sender. Packet i of the plan has number i; Packets has one entry
// for each packet that was tried.
type Sent struct {
	Packets []SentPacket `json:"-"`
	// Planned is the number of packets of the plan; those after len(Packets) were not tried, as the
	// run ended early. For a plan with feedback it is the number tried.
	Planned int `json:"planned_packets"`
	// Refused were not accepted by the kernel: they were not sent, and are no loss of the path.
	Refused int `json:"send_failed_packets"`
	// TooLarge are those of Refused that exceed the MTU of the sending host's interface or the known one of the path: a
	// search for the path's MTU sends such packets.
	TooLarge int `json:"too_large_packets,omitempty"`
	// PathMTU is the smallest MTU, in bytes with the IP header, that routers reported during the stream, as its packets were
	// larger; zero: none did. If all packets of the plan are larger, and may not be fragmented, the stream ended early.
	PathMTU int `json:"path_mtu_bytes,omitempty"`
	// Late were sent more than 1 ms after they were due.
	Late int `json:"late_packets"`
	// Begin and End are the times of the first and the last packet sent.
	Begin instant.Time `json:"begin_ns"`
	End   instant.Time `json:"end_ns"`
}

// LateAfter is the delay of sending above which a packet is late.
const LateAfter = time.Millisecond

// SentPacket is the sender's record of a packet.
type SentPacket struct {
	// Stamp is the time of sending, absent if the packet was refused, or withheld without consent
	// (SendOptions.Consent); its origin is User in an Unstamped plan.
	Stamp sample.Stamp
	// Due is the planned time of sending.
	Due instant.Time
}

// Received has the records of a stream at the receiver.
type Received struct {
	Packets []ReceivedPacket `json:"-"`
	// Dropped were dropped by the receiver's kernel for lack of buffer space: they are no loss of the
	// path. For an Unstamped plan it is an upper bound, as the kernel counts coalesced packets
	// as one.
	Dropped uint64 `json:"socket_dropped_packets"`
	// BacklogDropped were dropped on the whole host before any socket, for lack of space in the
	// backlog of a CPU (/proc/net/softnet_stat): up to so many lost packets are no loss of the path
	// either.
	BacklogDropped uint64 `json:"backlog_dropped_packets,omitempty"`
	// ChecksumErrors is the increase of UDP checksum errors on the whole host (InCsumErrors of
	// /proc/net/snmp and snmp6).
	ChecksumErrors uint64 `json:"kernel_checksum_errors"`
	// Corrupt are the first damaged packets, at most 16; CorruptPackets
	// counts all.
	Corrupt        []Corrupt `json:"corrupted_samples,omitempty"`
	CorruptPackets int       `json:"corrupted_packets"`
	// Overflow counts duplicates and damaged headers above the space in Packets: 1024 plus a 64th of
	// the plan.
	Overflow uint64 `json:"overflow_packets,omitempty"`
}

// ReceivedPacket is the receiver's record of a packet, in the order of arrival; a duplicate has its own
// entry.
type ReceivedPacket struct {
	Seq   uint32
	Stamp sample.Stamp
	// PayloadBytes is the UDP payload that arrived.
	PayloadBytes uint16
	Damage       Damage
}

// Damage is the kind of damage of a packet's content (Woo 2010, figure 5.5).
type Damage uint8

// The kinds of damage.
const (
	Intact Damage = iota
	// Truncated: shorter than the header's length, with correct content.
	Truncated
	// Overwritten: correct up to some byte, and different from there to the end.
	Overwritten
	// BitErrors: single bytes differ.
	BitErrors
	// BadHeader: the header is damaged; nothing else is known, and Seq is the damaged
	// value.
	BadHeader
)

// MaxCorrupt is the number of damaged packets that are kept, CorruptBytes the length kept of each.
const (
	MaxCorrupt   = 16
	CorruptBytes = 256
)

// Corrupt is a sample of a damaged packet.
type Corrupt struct {
	Seq    uint32 `json:"seq"`
	Damage string `json:"kind"`
	// PayloadBytes of WantBytes arrived. First is the offset of the first byte that differs, and
	// Differing the number of bytes that differ.
	PayloadBytes int `json:"payload_bytes"`
	WantBytes    int `json:"expected_payload_bytes"`
	First        int `json:"first_differing_byte"`
	Differing    int `json:"differing_bytes"`
	// Got is the received content from First on, and Want the expected one.
	Got  []byte `json:"received_content"`
	Want []byte `json:"expected_content"`
}

// Totals returns the number of packets sent and their UDP payload.
func (s *Sent) Totals(p Plan) (packets int, payload int64) {
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

// Withheld returns the number of packets that were due without consent, and so not sent.
func (s *Sent) Withheld() int {
	n := -s.Refused
	for i := range s.Packets {
		if !s.Packets[i].Stamp.Present() {
			n++
		}
	}
	return max(n, 0)
}

// String returns the name in reports and labels.
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

// Records of packets in binary form, for the other end: a version, the number of packets as a varint,
// and each packet. Times are differences from a prediction by the previous packet, as signed varints
// (encoding/binary), so that an evenly paced packet takes about eight bytes at each
// end.
const (
	sentVersion     = 1
	receivedVersion = 2

	// The first byte of a packet: origin of the timestamp, damage, and flags of optional fields.
	originBits     = 7
	damageShift    = 3
	damageBits     = 7 << damageShift
	hasUncertainty = 1 << 6
	hasBytes       = 1 << 6

	// The least bytes of a packet bound the memory for a claimed number of packets.
	minSentBytes, minReceivedBytes = 2, 2
)

// ErrRecords is wrapped by the errors of ParseSent and ParseReceived.
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
			flags |= hasUncertainty
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

// ParseSent parses the format of Sent.AppendTo, of a stream with so many planned packets. For any b it allocates memory for these, and
// at most about 16 times the length of b.
func ParseSent(b []byte, planned int) ([]SentPacket, error) {
	r := reader{b: b}
	packets := make([]SentPacket, r.begin(sentVersion, minSentBytes, planned))
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
		if flags&hasUncertainty != 0 {
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

// ParseReceived parses the format of Received.AppendTo, of a stream with so many planned packets. For any b it allocates memory for
// these with the extra entries of a Reception, and at most about 20 times the length of b.
func ParseReceived(b []byte, planned int) ([]ReceivedPacket, error) {
	r := reader{b: b}
	packets := make([]ReceivedPacket, r.begin(receivedVersion, minReceivedBytes, planned+extra(planned)))
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

// reader parses records; the first error sets bad, after which all values are
// zero.
type reader struct {
	b   []byte
	bad bool
}

// begin reads the version and the number of packets, most at most; least is the fewest bytes of a
// packet.
func (r *reader) begin(version byte, least, most int) int {
	if r.oneByte() != version {
		r.bad = true
	}
	n := r.uvarint()
	if r.bad || n > uint64(most) || n > uint64(len(r.b)/least) {
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
