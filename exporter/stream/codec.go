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

// The records of packets as octets, for the other end: a version, the number of
// packets as a varint, and then each packet. Times are differences to what the packet
// before it makes expect, as signed varints (encoding/binary), so that an evenly paced
// packet takes some eight octets on each side.
const (
	sentVersion     = 1
	receivedVersion = 2

	// The first octet of a packet: the stamp's origin, the damage, and what follows.
	originBits  = 7
	damageShift = 3
	damageBits  = 7 << damageShift
	hasHeld     = 1 << 6
	hasBytes    = 1 << 6

	// The fewest octets of a packet bound what a claimed number of them costs.
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
		if p.Stamp.Held > 0 {
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
		if p.Stamp.Held > 0 {
			b = binary.AppendUvarint(b, uint64(p.Stamp.Held))
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
		flags := r.octet()
		next := due + step + r.varint()
		due, step = next, next-due
		p := &packets[i]
		p.Due, p.Stamp.Origin = instant.Time(due), r.origin(flags)
		if p.Stamp.Present() {
			wait += r.varint()
			p.Stamp.At = instant.Time(due + wait)
		}
		if flags&hasHeld != 0 {
			p.Stamp.Held = r.duration()
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
		flags := r.octet()
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

// begin reads the version and the number of packets; least is the octets that each has
// at the least.
func (r *reader) begin(version byte, least int) int {
	if r.octet() != version {
		r.bad = true
	}
	n := r.uvarint()
	if r.bad || n > MaxPackets || n > uint64(len(r.b)/least) {
		r.bad = true
		return 0
	}
	return int(n)
}

func (r *reader) octet() byte {
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
		return fmt.Errorf("%w: %d octets too many", ErrRecords, len(r.b))
	}
	return nil
}
