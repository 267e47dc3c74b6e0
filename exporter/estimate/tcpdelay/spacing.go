package tcpdelay

import (
	"cmp"
	"math/bits"
	"slices"

	"oneway.example/exporter/core/tcpstamp"
)

// pair is what both ends have recorded of a sampled byte; received is nil if the receiver has no record.
type pair struct {
	sent     *tcpstamp.Sent
	received *tcpstamp.Received
}

// pairs joins the records of a flow. Bytes after the last one that arrived count if they have left: they were on the way at the
// end, with delays of any length. The others waited in the socket.
func (f *Flow) pairs() (all []pair) {
	if len(f.Received) == 0 {
		return nil
	}
	// The receiver may have kept every second, fourth, ... byte only.
	offsets := uint64(0)
	for i := range f.Received {
		offsets |= uint64(f.Received[i].Offset)
	}
	step, last := int64(1)<<bits.TrailingZeros64(offsets|1<<62), f.Received[len(f.Received)-1].Offset
	k := 0
	for i := range f.Sent {
		s := &f.Sent[i]
		if s.Offset%step != 0 || s.Offset > last && s.First == 0 {
			continue
		}
		for k < len(f.Received) && f.Received[k].Offset < s.Offset {
			k++
		}
		one := pair{sent: s}
		if k < len(f.Received) && f.Received[k].Offset == s.Offset {
			one.received = &f.Received[k]
		}
		all = append(all, one)
	}
	return all
}

// rareShare is the largest share of a flow's bytes with samples farther apart than spacing, besides one gap: samples that the
// sender lost.
const rareShare = 0.02

// spacing is the distance of samples in all parts of a flow. In bursts of acknowledgments they are closer: how many bytes
// these have depends on the state of the path, and the first is in slow start, so the distribution of all samples
// would be of the bursts and not of the stream.
func spacing(all []pair) int64 {
	var gaps []int64
	sum, before := int64(0), int64(0)
	for _, p := range all {
		gaps = append(gaps, p.sent.Offset-before)
		before = p.sent.Offset
	}
	slices.SortFunc(gaps, func(a, b int64) int { return cmp.Compare(b, a) })
	for i, g := range gaps {
		if sum += g; i > 0 && float64(sum) > rareShare*float64(before) {
			return g
		}
	}
	return 0
}
