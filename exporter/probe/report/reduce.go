package report

import "math"

// finite reports whether a value can be drawn and encoded.
func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// reduced returns a copy of a series with at most most points, at least 4: of each of equal parts of the range of X the least and the
// largest value, so that no peak is lost. Points that are not finite, or not complete, are left out.
func (s *Series) reduced(most int) Series {
	kept := Series{Name: truncate(s.Name), Form: s.Form}
	least, largest := math.Inf(1), math.Inf(-1)
	for i := range min(len(s.X), len(s.Y)) {
		if x, y := s.X[i], s.Y[i]; finite(x) && finite(y) {
			kept.Add(x, y)
			least, largest = min(least, x), max(largest, x)
		}
	}
	if len(kept.X) <= most {
		return kept
	}
	all := kept
	kept.X, kept.Y = nil, nil
	parts := max(most, 4) / 2
	part := func(i int) int { return min(int((all.X[i]/2-least/2)/(largest/2-least/2)*float64(parts)), parts-1) }
	if largest == least { // a mark's height
		part = func(i int) int { return i * parts / len(all.X) }
	}
	for from := 0; from < len(all.X) && len(kept.X)+2 <= 2*parts; {
		low, high, to := from, from, from
		for ; to < len(all.X) && part(to) == part(from); to++ {
			if all.Y[to] < all.Y[low] {
				low = to
			}
			if all.Y[to] > all.Y[high] {
				high = to
			}
		}
		kept.Add(all.X[min(low, high)], all.Y[min(low, high)])
		if low != high {
			kept.Add(all.X[max(low, high)], all.Y[max(low, high)])
		}
		from = to
	}
	return kept
}
