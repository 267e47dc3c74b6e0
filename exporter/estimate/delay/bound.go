package delay

import "time"

// Bound is that of the smallest delay and of the median: the truth of either lies
// within it (of the median, plus the histogram's 0.8 %). Zero if Count is.
//
// It is proven, and a few packets of a wide bound of their own, which a host has
// held up, do not widen it much. The smallest true delay lies between the least
// of all lower ends and the least of all upper ones. As to the median: if all but
// k packets have a bound of at most b, the true delay of rank r lies between
// those reported of the ranks r-k and r+k, give or take b; the best k is taken.
func (s Snapshot) Bound() time.Duration {
	if s.Count == 0 {
		return 0
	}
	return max(s.Min-s.low, s.high-s.Min, s.medianBound())
}

func (s Snapshot) medianBound() time.Duration {
	rank := s.rank(0.5)
	if rank > s.Count {
		return 0 // infinite, and certain
	}
	median, best := s.at(rank), s.widest[0]
	for k := uint64(1); k < uint64(len(s.widest)) && k < rank && rank+k <= s.Count; k++ {
		shift := max(median-s.at(rank-k), s.at(rank+k)-median)
		best = min(best, shift+s.widest[k])
	}
	return best
}

// widest holds the largest bounds of a window, the largest first.
type widest [8]time.Duration

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
