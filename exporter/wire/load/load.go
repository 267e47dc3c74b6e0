// Package load is the format of the test packets of load tests: a header that
// says which packet this is, and a content that both ends can compute, so that the
// receiver sees what the path has changed in it.
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
//	|          time of sending, or 0: see Header.Micros             |
//	|                CRC-32C of the 28 octets before                |
//	|     content: see Fill, or a cookie, a Status, a Pace ...      |
//
// All numbers are in network order. The package knows octets only.
package load

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

// Version is that of the format, 0..15. Packets of others are not ours.
const Version = 1

// Type is what a packet is for.
type Type uint8

// The types, 1..15. None is zero.
const (
	// Data is a packet of a stream; its content is the pattern of Fill.
	Data Type = 1
	// Hello shows the other end the address that packets from here have there.
	Hello Type = 2
	// Challenge answers a Hello; its content is a cookie.
	Challenge Type = 3
	// Report answers the Data of a plan with feedback; its content is a Status.
	Report Type = 4
	// Order asks the sender of such a plan for another rate; its content is a Pace.
	Order Type = 5
)

// KeepAlive is a flag of a Hello that wants no Challenge.
const KeepAlive uint8 = 1

// Header is what a packet begins with.
type Header struct {
	Type  Type
	Flags uint8
	// Transfer tells the streams of a session apart.
	Transfer uint16
	// Session is a random number that both ends know and others do not.
	Session uint64
	// Seq is the packet's number in its stream, from 0.
	Seq uint32
	// PayloadBytes is the length of the UDP payload as it was sent, this header
	// included: HeaderBytes to 65,507 (65,527 with IPv6).
	PayloadBytes uint16
	// Micros is when a packet of a plan with feedback left, in microseconds since its
	// stream began, by the sender's clock; zero in all other packets.
	Micros uint32
}

// What Parse finds wrong.
var (
	// ErrForeign: it does not begin as our packets do, or is of another version.
	ErrForeign = errors.New("load: not a packet of this format")
	// ErrShort: there is no whole header.
	ErrShort = errors.New("load: shorter than its header")
	// ErrDamaged: the header's checksum, or a field that the checksum cannot
	// vouch for, is wrong. What stood there is returned all the same.
	ErrDamaged = errors.New("load: damaged header")
)

const (
	magic    = 0x4f574c44 // "OWLD"
	crcStart = 28
)

// Put writes the header to the first HeaderBytes octets of b; it panics if b is
// shorter.
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

// Parse reads the header of a packet. The error is ErrShort, ErrForeign, or
// ErrDamaged, with which the header is what stood there.
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

// Claims is what a packet that Parse refuses shows of this format all the same: ours, that it
// begins as our packets do, and the number that stands where a session's would; 0 if it is too
// short for one.
func Claims(b []byte) (session uint64, ours bool) {
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

// checksum is CRC-32C (RFC 9260 appendix A), which processors compute themselves.
func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Lengths of the packets that prove an address. A Challenge is never longer than the
// Hello that it answers: nobody can have us send more than he sent himself.
const (
	HelloBytes     = HeaderBytes + 64
	MaxCookieBytes = HelloBytes - HeaderBytes
)

// AppendHello appends a Hello; the rest of it is zero.
func AppendHello(b []byte, session uint64, flags uint8) []byte {
	b = Header{Type: Hello, Flags: flags, Session: session, PayloadBytes: HelloBytes}.AppendTo(b)
	return append(b, make([]byte, MaxCookieBytes)...)
}

// AppendChallenge appends a Challenge with a cookie of at most MaxCookieBytes.
func AppendChallenge(b []byte, session uint64, cookie []byte) []byte {
	cookie = cookie[:min(len(cookie), MaxCookieBytes)]
	b = Header{Type: Challenge, Session: session, PayloadBytes: uint16(HeaderBytes + len(cookie))}.AppendTo(b)
	return append(b, cookie...)
}

// Cookie is that of a Challenge whose header h Parse has found good; nil if the packet
// is not as long as it says, or none of that kind.
func Cookie(b []byte, h Header) []byte {
	if h.Type != Challenge || len(b) != int(h.PayloadBytes) || len(b) > HelloBytes {
		return nil
	}
	return b[HeaderBytes:]
}

// The content of Data packets is a piece of one fixed table of random octets. Where
// in the table it begins depends on the session and the number of the packet, so that
// another packet's content, or the same at another offset, is seen to be wrong, and
// so that neither end computes more than a copy or a comparison.
const (
	starts     = 1 << 16
	tableBytes = starts + 1<<16
)

var table = sync.OnceValue(makeTable)

// makeTable is splitmix64 (Steele et al. 2014) from zero, little-endian: the same
// everywhere and for good.
func makeTable() []byte {
	b := make([]byte, tableBytes)
	for i, state := 0, uint64(0); i < len(b); i += 8 {
		binary.LittleEndian.PutUint64(b[i:], mix(&state))
	}
	return b
}

func mix(state *uint64) uint64 {
	*state += 0x9e3779b97f4a7c15
	z := *state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// content is what the packet's octets from HeaderBytes on are to be; n of them, at
// most 65,535.
func content(session uint64, seq uint32, n int) []byte {
	state := session ^ uint64(seq)<<17
	start := int(mix(&state) % starts)
	return table()[start : start+n : start+n]
}

// Fill writes the whole packet: h, with PayloadBytes set to the length of b, and the
// content. b is HeaderBytes to 65,535 octets long; Fill panics otherwise.
func (h Header) Fill(b []byte) {
	h.PayloadBytes = uint16(len(b))
	h.Put(b)
	copy(b[HeaderBytes:], content(h.Session, h.Seq, len(b)-HeaderBytes))
}

// Kind is what is wrong with a packet's content.
type Kind uint8

// The kinds. The zero value is Intact.
const (
	Intact Kind = iota
	// Truncated: shorter than was sent, and what is there is right.
	Truncated
	// Overwritten: from the first octet that differs to the end it is something else:
	// two bits an octet differ or more, of which chance makes four.
	Overwritten
	// BitErrors: single octets differ.
	BitErrors
)

// Verdict is what Compare found.
type Verdict struct {
	Kind Kind
	// First is the offset in the packet of the first octet that differs or is
	// missing, and Differing how many do, missing ones not counted.
	First, Differing int
	// BitsDiffering of the octets that differ.
	BitsDiffering int
}

// Compare looks at a Data packet whose header h Parse has found good.
func Compare(got []byte, h Header) Verdict {
	want := int(h.PayloadBytes)
	n := min(len(got), want)
	right := content(h.Session, h.Seq, max(n, HeaderBytes)-HeaderBytes)
	body := got[min(HeaderBytes, n):n]
	if bytes.Equal(body, right[:len(body)]) {
		switch {
		case len(got) < want:
			return Verdict{Kind: Truncated, First: n}
		case len(got) > want:
			return Verdict{Kind: Overwritten, First: n, Differing: len(got) - n}
		}
		return Verdict{}
	}
	v := Verdict{Kind: BitErrors, First: -1}
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
		v.Kind = Overwritten
	}
	return v
}

// AppendContent appends octets from up to end of the packet as they were sent: those
// before HeaderBytes are the header's.
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
