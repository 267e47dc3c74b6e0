package spool

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"slices"
)

// header precedes each record. All numbers are little-endian:
//
//	0  marker, of 4 bytes
//	4  length of the record, uint32
//	8  number of points, uint32
//	12 number of the first point, uint64
//	20 CRC32C of the record, uint32
//	24 CRC32C of the bytes 0 to 23, uint32
type header struct {
	length, points, content uint32
	first                   uint64
}

const headerBytes = 28

// marker begins a header; after damage it is what the next record is found by.
const marker = "\xf1ow\x01"

func (h *header) size() int64 { return headerBytes + int64(h.length) }

func (h *header) end() uint64 { return h.first + uint64(h.points) }

func (h *header) put(b *[headerBytes]byte) {
	copy(b[:], marker)
	binary.LittleEndian.PutUint32(b[4:], h.length)
	binary.LittleEndian.PutUint32(b[8:], h.points)
	binary.LittleEndian.PutUint64(b[12:], h.first)
	binary.LittleEndian.PutUint32(b[20:], h.content)
	binary.LittleEndian.PutUint32(b[24:], checksum(b[:24]))
}

// parse reads a header: false if it is damaged.
func parse(b *[headerBytes]byte) (h header, ok bool) {
	if string(b[:4]) != marker || binary.LittleEndian.Uint32(b[24:]) != checksum(b[:24]) {
		return h, false
	}
	h = header{
		length: binary.LittleEndian.Uint32(b[4:]), points: binary.LittleEndian.Uint32(b[8:]),
		first: binary.LittleEndian.Uint64(b[12:]), content: binary.LittleEndian.Uint32(b[20:]),
	}
	return h, h.points > 0 && h.first < maxNumber
}

// checksum is CRC32C, for which processors have an instruction.
func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// windowBytes are read at once in the search for a header.
const windowBytes = 64 << 10

// find returns the first record at or after an offset whose header is valid and which is complete. Its points are before limit.
func (s *Spool) find(in *segment, at int64, limit uint64) (h header, found int64, ok bool) {
	if h, ok = s.header(in, at, limit); ok {
		return h, at, true
	}
	for at++; at+headerBytes <= in.size; {
		s.window = grow(s.window, int(min(windowBytes, in.size-at)))
		if !in.read(s.window, at) {
			return h, 0, false
		}
		i := bytes.Index(s.window, []byte(marker))
		if i < 0 {
			at += max(int64(len(s.window)-len(marker)+1), 1)
			continue
		}
		at += int64(i)
		if h, ok = s.header(in, at, limit); ok {
			return h, at, true
		}
		at++
	}
	return h, 0, false
}

// header reads the header at an offset: false if there is none, or its record is not complete or not of this segment.
func (s *Spool) header(in *segment, at int64, limit uint64) (h header, ok bool) {
	if at+headerBytes > in.size || !in.read(s.head[:], at) {
		return h, false
	}
	h, ok = parse(&s.head)
	return h, ok && at+h.size() <= in.size && h.first >= in.first && h.end() <= limit
}

// grow returns a slice of that length in the space of b, or in a larger one.
func grow(b []byte, n int) []byte { return slices.Grow(b[:0], n)[:n] }
