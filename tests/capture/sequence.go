package capture

import (
	"encoding/binary"
	"slices"
)

// Sequence counts the segments that one end of a TCP connection has sent, by their sequence numbers: at most 4 GiB.
type Sequence struct {
	// Bytes are all payload bytes. Again are those of them that an earlier segment had, and Segments the segments with
	// such bytes, or with a SYN or FIN that had been sent.
	Bytes, Again, Segments int64

	first        uint32
	began, ended bool
	seen         []stretch // disjoint, in order
}

// stretch is a range of bytes, from the connection's first byte.
type stretch struct{ from, to int64 }

// Add counts a segment, which begins with the TCP header; segments before the one with SYN do not count.
func (s *Sequence) Add(segment []byte) {
	const least, syn, fin = 20, 2, 1
	if len(segment) < least {
		return
	}
	flags := segment[13]
	number, length := binary.BigEndian.Uint32(segment[4:]), int64(len(segment)-int(segment[12]>>4)*4)
	if flags&syn != 0 && s.began || flags&fin != 0 && s.ended && length <= 0 {
		s.Segments++
	}
	if flags&syn != 0 {
		s.first, s.began = number+1, true
	}
	s.ended = s.ended || flags&fin != 0
	if length <= 0 || !s.began {
		return
	}
	now := stretch{from: int64(number - s.first)}
	now.to = now.from + length
	i, _ := slices.BinarySearchFunc(s.seen, now.from, func(one stretch, from int64) int { return int(min(1, max(-1, one.to-from))) })
	j, all, again := i, now, int64(0)
	for ; j < len(s.seen) && s.seen[j].from <= now.to; j++ {
		one := s.seen[j]
		again += max(0, min(now.to, one.to)-max(now.from, one.from))
		all = stretch{min(all.from, one.from), max(all.to, one.to)}
	}
	s.seen = slices.Replace(s.seen, i, j, all)
	s.Bytes, s.Again = s.Bytes+length, s.Again+again
	if again > 0 {
		s.Segments++
	}
}
