package main

import (
	"math"
	"slices"
)

// bracket is the range of one packet's true delay: the link forwarded it between two readings of the clock. A lost
// packet's is infinite (RFC 7679 section 5.1).
type bracket struct{ least, most float64 }

func lostDelay() bracket { return bracket{math.Inf(1), math.Inf(1)} }

// members are the packets of a window: the sure ones were in it, and any of the others may have been.
type members struct{ sure, maybe []bracket }

// least is the range of the window's smallest delay.
func (m *members) least() *span {
	s := span{math.Inf(1), math.Inf(1)}
	for _, b := range m.sure {
		s.Low, s.High = min(s.Low, b.least), min(s.High, b.most)
	}
	for _, b := range m.maybe {
		s.Low = min(s.Low, b.least)
	}
	return s.finite()
}

// median is the range of the window's median, for any choice of the others.
func (m *members) median() *span {
	low := extreme(pick(m.sure, func(b bracket) float64 { return b.least }), pick(m.maybe, func(b bracket) float64 { return b.least }), 1)
	high := extreme(pick(m.sure, func(b bracket) float64 { return b.most }), pick(m.maybe, func(b bracket) float64 { return b.most }), -1)
	return (&span{low, high}).finite()
}

// finite is nil for a span without finite ends.
func (s *span) finite() *span {
	if math.IsInf(s.Low, 0) || math.IsInf(s.High, 0) || math.IsNaN(s.Low) || math.IsNaN(s.High) {
		return nil
	}
	return s
}

func pick(all []bracket, of func(bracket) float64) []float64 {
	out := make([]float64, len(all))
	for i, b := range all {
		out[i] = of(b)
	}
	slices.Sort(out)
	return out
}

// extreme is the smallest median (sign 1), or the largest (sign -1), of all the sure values and any of the others. Of
// all choices of k others the k smallest ones give the smallest.
func extreme(sure, others []float64, sign int) float64 {
	best := math.Inf(sign)
	if sign < 0 {
		slices.Reverse(others)
	}
	all := slices.Clone(sure)
	for k := 0; k <= len(others); k++ {
		if k > 0 {
			i, _ := slices.BinarySearch(all, others[k-1])
			all = slices.Insert(all, i, others[k-1])
		}
		if n := len(all); n > 0 {
			// The smallest value that at least half of all do not exceed.
			if m := all[(n+1)/2-1]; float64(sign)*m < float64(sign)*best {
				best = m
			}
		}
	}
	return best
}
