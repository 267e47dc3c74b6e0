package delay

import "time"

// Bound is that of the smallest delay and of the median: the truth of either lies
// within it (of the median, plus the histogram's 0.8 %). Zero if Count is.
//
// It is proven, and a few packets of a wide bound of their own, which a host has
// held up, do not widen it. The smallest delay is that of the packets that were
// not: up to seven, whose bound is more than twice that of the one after them, are
// set aside. Its truth is at most the least of all upper ends, and at least the
// least of the others' lower ends. As to the median: if all but k packets have a
// bound of at most b, the true delay of rank r lies between those reported of the
// ranks r-k and r+k, give or take b; the best k is taken.
func (s Snapshot) Bound() time.Duration {
	if s.Count == 0 {
		return 0
	}
	return max(s.minBound(), s.medianBound())
}

func (s Snapshot) minBound() time.Duration {
	low := s.low
	ordinary := 2 * s.widest[len(s.widest)-1].bound
	for i, w := range s.widest {
		if uint64(i) < s.Count && (ordinary == 0 || w.bound <= ordinary) {
			low = min(low, w.low)
		}
	}
	return max(s.Min-low, s.high-s.Min)
}

func (s Snapshot) medianBound() time.Duration {
	rank := s.rank(0.5)
	if rank > s.Count {
		return 0 // infinite, and certain
	}
	median, best := s.at(rank), s.widest[0].bound
	for k := uint64(1); k < uint64(len(s.widest)) && k < rank && rank+k <= s.Count; k++ {
		shift := max(median-s.at(rank-k), s.at(rank+k)-median)
		best = min(best, shift+s.widest[k].bound)
	}
	return best
}

// wide is the bound of a packet and the lower end of its delay.
type wide struct{ bound, low time.Duration }

// widest holds those of the largest bounds of a window, the largest first.
type widest [8]wide

// add puts a packet in its place and returns the one that has none any more.
func (w *widest) add(p wide) (out wide) {
	last := len(w) - 1
	if p.bound <= w[last].bound {
		return p
	}
	out = w[last]
	i := last
	for ; i > 0 && w[i-1].bound < p.bound; i-- {
		w[i] = w[i-1]
	}
	w[i] = p
	return out
}
