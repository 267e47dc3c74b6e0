package delay

import "time"

// Bound is that of the smallest delay and of the median: the truth of either lies
// within it. Zero if Count is.
//
// It is proven, and a few packets of a wide bound of their own, which a host has
// held up, do not widen it. The smallest delay is that of the packets that were
// not: those whose bound is by more than half the time for which they may have been held,
// fewer than half of all, are set aside. Its truth is at most the least of all upper ends, and
// at least the least of the others' lower ends. The true median lies between the medians of all lower
// and of all upper ends, since an order statistic grows with each of its values.
//
// A window of more than Exact packets has no ends of single packets any more. If all but k
// of them have a bound of at most b, the true delay of rank r lies between those of the
// ranks r-k and r+k, give or take b and half a bucket of the histogram; the best k is taken.
//
// Both are those of the packets whose delay is known: Quantile says what stands for the others.
func (s Snapshot) Bound() time.Duration {
	if s.Count == 0 {
		return 0
	}
	return max(s.minBound(), s.medianBound())
}

func (s Snapshot) minBound() time.Duration {
	low := s.low
	if s.heldUp < s.Count-s.heldUp {
		low = s.lowUnheld
	}
	return max(s.Min-low, s.high-s.Min)
}

func (s Snapshot) medianBound() time.Duration {
	rank, ok := s.rank(0.5)
	if !ok {
		return 0 // infinite, and certain
	}
	if o := s.sorted; o != nil {
		return max(o.values[rank-1]-o.lows[rank-1], o.highs[rank-1]-o.values[rank-1])
	}
	median, width := s.at(rank)
	best := s.widest[0] + width
	for k := uint64(1); k < uint64(len(s.widest)) && k < rank && rank+k <= s.Count; k++ {
		low, lowWidth := s.at(rank - k)
		high, highWidth := s.at(rank + k)
		best = min(best, max(median-low+lowWidth, high-median+highWidth)+s.widest[k])
	}
	return best
}

// widest holds the largest bounds of a window, the largest first.
type widest [8]time.Duration

// add puts a bound in its place.
func (w *widest) add(b time.Duration) {
	last := len(w) - 1
	if b <= w[last] {
		return
	}
	i := last
	for ; i > 0 && w[i-1] < b; i-- {
		w[i] = w[i-1]
	}
	w[i] = b
}
