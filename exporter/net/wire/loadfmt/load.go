// Package loadfmt is the format of the test packets of load tests: a header that identifies the packet, and a content
// that both ends can compute, so that the receiver detects any change on the path.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                        magic, "OWLD"                          |
//	|version|  type |     flags     |           transfer            |
//	|                           session                             |
//	|                                                               |
//	|                           sequence                            |
//	|        payload octets         |          reserved (0)         |
//	|             send time, or 0: see Header.Micros                |
//	|                CRC-32C of the 28 octets before                |
//	|     content: see Fill, or a cookie, a Status, a Pace ...      |
//
// All numbers are in network byte order. The package has no sockets and no clocks.
package loadfmt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/bits"
	"sync"
)

// HeaderBytes is the length of the header.
const HeaderBytes = 32

// Version is that of the format, 0..15. Packets of other versions are foreign.
const Version = 1

// Type is the purpose of a packet.
type Type uint8

// The types, 1..15. None is zero.
const (
	// Data is a packet of a stream; its content is the pattern of Fill.
	Data Type = 1
	// Hello shows the other end the source address of packets from here, as it arrives there.
	Hello Type = 2
	// Challenge requests the return of its content, a cookie: it is the reply to a Hello or, in a session, without one.
	Challenge Type = 3
	// Report is the reply to the Data of a plan with feedback; its content is a Status.
	Report Type = 4
	// Order requests another rate from the sender of such a plan; its content is a Pace.
	Order Type = 5
)

// Flags.
const (
	// KeepAlive is the flag of a Hello that requests no Challenge.
	KeepAlive uint8 = 1
	// Unrequested is the flag of a Challenge that is no reply. The next Hello returns its cookie.
	Unrequested uint8 = 1
)

// Header is the start of a packet.
type Header struct {
	Type  Type
	Flags uint8
	// Transfer distinguishes the streams of a session.
	Transfer uint16
	// Session is a random number that only both ends know.
	Session uint64
	// Seq is the packet's number in its stream, from 0.
	Seq uint32
	// PayloadBytes is the length of the UDP payload as sent, this header included: HeaderBytes to 65,507 (65,527 with
	// IPv6).
	PayloadBytes uint16
	// Micros is the send time of a packet of a plan with feedback, in microseconds since its stream began, by the
	// sender's clock; zero in all other packets.
	Micros uint32
}

// The errors of Parse.
var (
	// ErrForeign: the packet has another magic number or version.
	ErrForeign = errors.New("loadfmt: not a packet of this format")
	// ErrShort: the header is incomplete.
	ErrShort = errors.New("loadfmt: shorter than its header")
	// ErrDamaged: the header's checksum, or a field with an invalid value, is wrong. Parse returns the header fields as
	// received.
	ErrDamaged = errors.New("loadfmt: damaged header")
)

const (
	magic    = 0x4f574c44 // "OWLD"
	crcStart = 28
)

// Put writes the header to the first HeaderBytes octets of b; it panics if b is shorter.
func (h Header) Put(b []byte) {
	b = b[:HeaderBytes]
	binary.BigEndian.PutUint32(b, magic)
	b[4], b[5] = Version<<4|byte(h.Type)&15, h.Flags
	binary.BigEndian.PutUint16(b[6:], h.Transfer)
	binary.BigEndian.PutUint64(b[8:], h.Session)
	binary.BigEndian.PutUint32(b[16:], h.Seq)
	binary.BigEndian.PutUint16(b[20:], h.PayloadBytes)
	binary.BigEndian.PutUint16(b[22:], 0)
	binary.BigEndian.PutUint32(b[24:], h.Micros)
	binary.BigEndian.PutUint32(b[crcStart:], checksum(b[:crcStart]))
}

// AppendTo appends the header to b.
func (h Header) AppendTo(b []byte) []byte {
	b = append(b, make([]byte, HeaderBytes)...)
	h.Put(b[len(b)-HeaderBytes:])
	return b
}

// Parse reads the header of a packet. The error is ErrShort, ErrForeign, or ErrDamaged, with which the header is
// returned as received.
func Parse(b []byte) (h Header, err error) {
	if len(b) < HeaderBytes {
		return Header{}, ErrShort
	}
	b = b[:HeaderBytes]
	if binary.BigEndian.Uint32(b) != magic || b[4]>>4 != Version {
		return read(b), ErrForeign
	}
	h = read(b)
	if binary.BigEndian.Uint32(b[crcStart:]) != checksum(b[:crcStart]) || h.PayloadBytes < HeaderBytes {
		return h, ErrDamaged
	}
	return h, nil
}

// SessionOf returns what a packet that Parse refused still shows: ours reports whether it has the magic number, session
// is the content of that field, 0 if the packet is too short for one.
func SessionOf(b []byte) (session uint64, ours bool) {
	if len(b) >= 16 {
		session = binary.BigEndian.Uint64(b[8:])
	}
	return session, len(b) >= 4 && binary.BigEndian.Uint32(b) == magic
}

func read(b []byte) Header {
	return Header{
		Type: Type(b[4] & 15), Flags: b[5], Transfer: binary.BigEndian.Uint16(b[6:]),
		Session: binary.BigEndian.Uint64(b[8:]), Seq: binary.BigEndian.Uint32(b[16:]),
		PayloadBytes: binary.BigEndian.Uint16(b[20:]), Micros: binary.BigEndian.Uint32(b[24:]),
	}
}

// checksum is CRC-32C (RFC 9260 appendix A), for which processors have an instruction.
func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Lengths of the packets that prove an address. A Challenge is never longer than a Hello: there is no amplification.
const (
	HelloBytes     = HeaderBytes + 64
	MaxCookieBytes = HelloBytes - HeaderBytes
)

// AppendHello appends a Hello that returns a cookie of at most MaxCookieBytes, or nothing, padded with zeros.
func AppendHello(b []byte, session uint64, flags uint8, cookie []byte) []byte {
	b = Header{Type: Hello, Flags: flags, Session: session, PayloadBytes: HelloBytes}.AppendTo(b)
	var content [MaxCookieBytes]byte
	copy(content[:], cookie)
	return append(b, content[:]...)
}

// AppendChallenge appends a Challenge with a cookie of at most MaxCookieBytes.
func AppendChallenge(b []byte, session uint64, flags uint8, cookie []byte) []byte {
	cookie = cookie[:min(len(cookie), MaxCookieBytes)]
	b = Header{Type: Challenge, Flags: flags, Session: session, PayloadBytes: uint16(HeaderBytes + len(cookie))}.AppendTo(b)
	return append(b, cookie...)
}

// Cookie returns the cookie of a Challenge with the valid header h, or the content of a Hello: a cookie with the octets after
// it, or zeros. It is nil if the packet's length differs from the header's, or its type is another.
func Cookie(b []byte, h Header) []byte {
	if h.Type != Challenge && h.Type != Hello || len(b) != int(h.PayloadBytes) || len(b) > HelloBytes {
		return nil
	}
	return b[HeaderBytes:]
}

// The content of Data packets is a part of one fixed table of random octets. Its offset in the table depends on the
// session and the number of the packet, so that the content of another packet, or the same at another offset, is
// detected as wrong, and each end only copies or compares.
const (
	starts     = 1 << 16
	tableBytes = starts + 1<<16
)

var table = sync.OnceValue(makeTable)

// makeTable is splitmix64 (Steele et al. 2014) from zero, little-endian: part of the format, identical on all hosts.
func makeTable() []byte {
	b := make([]byte, tableBytes)
	for i, state := 0, uint64(0); i < len(b); i += 8 {
		binary.LittleEndian.PutUint64(b[i:], hash64(&state))
	}
	return b
}

func hash64(state *uint64) uint64 {
	*state += 0x9e3779b97f4a7c15
	z := *state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// content returns the first n octets of the packet's content, from HeaderBytes on; n is at most 65,535.
func content(session uint64, seq uint32, n int) []byte {
	state := session ^ uint64(seq)<<17
	start := int(hash64(&state) % starts)
	return table()[start : start+n : start+n]
}

// Fill writes the whole packet: h, with PayloadBytes set to the length of b, and the content. b is HeaderBytes to
// 65,535 octets long; Fill panics otherwise.
func (h Header) Fill(b []byte) {
	h.PayloadBytes = uint16(len(b))
	h.Put(b)
	copy(b[HeaderBytes:], content(h.Session, h.Seq, len(b)-HeaderBytes))
}

// Damage is the kind of damage of a packet's content.
type Damage uint8

// The kinds. The zero value is Intact.
const (
	Intact Damage = iota
	// Truncated: shorter than sent, without other damage.
	Truncated
	// Overwritten: random or other data from the first octet that differs to the end: on average at least two bits per
	// octet differ; random data differ in four.
	Overwritten
	// BitErrors: single octets differ.
	BitErrors
)

// Comparison is the result of Compare.
type Comparison struct {
	Damage Damage
	// First is the offset in the packet of the first octet that differs or is missing, and Differing the number of
	// octets that differ, without missing ones.
	First, Differing int
	// BitsDiffering is the number of bits that differ in those octets.
	BitsDiffering int
}

// Compare checks a Data packet with the valid header h.
func Compare(got []byte, h Header) Comparison {
	want := int(h.PayloadBytes)
	n := min(len(got), want)
	right := content(h.Session, h.Seq, max(n, HeaderBytes)-HeaderBytes)
	body := got[min(HeaderBytes, n):n]
	if bytes.Equal(body, right[:len(body)]) {
		switch {
		case len(got) < want:
			return Comparison{Damage: Truncated, First: n}
		case len(got) > want:
			return Comparison{Damage: Overwritten, First: n, Differing: len(got) - n}
		}
		return Comparison{}
	}
	v := Comparison{Damage: BitErrors, First: -1}
	for i, b := range body {
		if b == right[i] {
			continue
		}
		if v.First < 0 {
			v.First = HeaderBytes + i
		}
		v.Differing++
		v.BitsDiffering += bits.OnesCount8(b ^ right[i])
	}
	if v.BitsDiffering >= 2*(n-v.First) {
		v.Damage = Overwritten
	}
	return v
}

// AppendContent appends the octets from up to end of the packet as sent; those before HeaderBytes are the header's.
func (h Header) AppendContent(b []byte, from, end int) []byte {
	end = min(end, int(h.PayloadBytes))
	if from < HeaderBytes && from < end {
		b = append(b, h.AppendTo(nil)[max(from, 0):min(end, HeaderBytes)]...)
		from = HeaderBytes
	}
	if from >= end {
		return b
	}
	return append(b, content(h.Session, h.Seq, end-HeaderBytes)[from-HeaderBytes:]...)
}
