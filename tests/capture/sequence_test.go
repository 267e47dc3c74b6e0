package capture

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

func segment(number uint32, flags byte, payload int) []byte {
	b := make([]byte, 32+payload) // with 12 bytes of options
	binary.BigEndian.PutUint32(b[4:], number)
	b[12], b[13] = 8<<4, flags
	return b
}

// Segments of random places and lengths, also over the wrap of the numbers, count as a table of single bytes does.
func TestBytesThatWereSentBeforeCount(t *testing.T) {
	const first uint32 = 1<<32 - 500
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var s Sequence
		s.Add(segment(5, 16, 10)) // of a connection before
		s.Add(segment(first-1, 2, 0))
		s.Add(segment(first-1, 2, 0))
		var seen [2000]bool
		bytes, again, segments := int64(0), int64(0), int64(2) // SYN and FIN
		for range 60 {
			at, n := random.IntN(1800), random.IntN(200)
			twice := int64(0)
			for i := at; i < at+n; i++ {
				if seen[i] {
					twice++
				}
				seen[i] = true
			}
			bytes, again = bytes+int64(n), again+twice
			if twice > 0 {
				segments++
			}
			s.Add(segment(first+uint32(at), 16, n))
		}
		last := first
		last += 2000
		s.Add(segment(last, 17, 0))
		s.Add(segment(last, 17, 0))
		if s.Bytes != bytes || s.Again != again || s.Segments != segments {
			t.Fatalf("%d bytes, %d again in %d segments; want %d, %d, %d", s.Bytes, s.Again, s.Segments, bytes, again, segments)
		}
	}
}
