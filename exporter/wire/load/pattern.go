package load

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"sync"
)

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
