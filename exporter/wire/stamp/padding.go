package stamp

import (
	"encoding/binary"
	"slices"
)

// AppendPadding appends an Extra Padding TLV (RFC 8972 section 4.1) of n value
// octets, 0..65535, whose pattern depends on the packet's number and does not
// compress. It does not allocate if b has room.
func AppendPadding(b []byte, n int, seq uint32) []byte {
	n = min(max(n, 0), maxValueBytes)
	b = appendHeader(b, senderFlags, TypeExtraPadding, n)
	at := len(b)
	b = slices.Grow(b, n)[:at+n]
	v := b[at:]
	i := 0
	for ; i <= len(v)-8; i += 8 {
		binary.LittleEndian.PutUint64(v[i:], paddingWord(seq, i))
	}
	last := paddingWord(seq, i)
	for ; i < len(v); i++ {
		v[i] = uint8(last)
		last >>= 8
	}
	return b
}

// CheckPadding reports whether v is as AppendPadding wrote it for seq.
func CheckPadding(v []byte, seq uint32) bool {
	i := 0
	for ; i <= len(v)-8; i += 8 {
		if binary.LittleEndian.Uint64(v[i:]) != paddingWord(seq, i) {
			return false
		}
	}
	last := paddingWord(seq, i)
	for ; i < len(v); i++ {
		if v[i] != uint8(last) {
			return false
		}
		last >>= 8
	}
	return true
}

// paddingWord is the run of eight octets at offset at, little-endian: a hash of
// both numbers rather than a chain, so that the processor works on several at a
// time.
func paddingWord(seq uint32, at int) uint64 {
	x := (uint64(seq)<<32 | uint64(at) | 1) * 0x9e3779b97f4a7c15
	return (x ^ x>>32) * 0xd6e8feb86659fd93
}
