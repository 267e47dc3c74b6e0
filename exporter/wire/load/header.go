// Package load is the format of the test packets of heavy tests: a header that
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
	"encoding/binary"
	"errors"
	"hash/crc32"
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
