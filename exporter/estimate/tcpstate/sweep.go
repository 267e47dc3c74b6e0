package tcpstate

import (
	"slices"
	"time"

	"oneway.example/exporter/estimate/orderstat"
)

// Cell is a buffer size of a sweep.
type Cell struct {
	// Buffer is the size that was in effect, in bytes.
	Buffer int64
	// Rates has the throughput of each repetition.
	Rates []float64
}

// kneeShare is the share of the best median that a sufficient buffer reaches.
const kneeShare = 0.95

// Knee is the buffer from which on more brings little.
type Knee struct {
	// Buffer is the smallest whose median throughput reaches 95 % of the best median.
	Buffer int64
	// By the quartiles of the repetitions the knee is more than Above and at most AtMost. Zero: that end is not
	// known, as the smallest buffer may be enough, or the upper one does not reach the 95 % reliably.
	Above, AtMost int64
	// Best is the largest median.
	Best float64
}

// FindKnee computes the knee of cells that differ in their buffer only, in any order. Cells without repetitions do not
// count; it needs two others.
func FindKnee(cells []Cell) (k Knee, ok bool) {
	type spread struct{ lower, median, upper float64 }
	all, sizes := map[int64]spread{}, []int64(nil)
	for _, c := range cells {
		if len(c.Rates) == 0 {
			continue
		}
		s := orderstat.Sorted(c.Rates)
		all[c.Buffer] = spread{orderstat.Quantile(s, 0.25), orderstat.Median(s), orderstat.Quantile(s, 0.75)}
		sizes, k.Best = append(sizes, c.Buffer), max(k.Best, all[c.Buffer].median)
	}
	if len(sizes) < 2 || k.Best <= 0 {
		return Knee{}, false
	}
	slices.Sort(sizes)
	first := func(value func(spread) float64) int {
		return slices.IndexFunc(sizes, func(b int64) bool { return value(all[b]) >= kneeShare*k.Best })
	}
	k.Buffer = sizes[first(func(s spread) float64 { return s.median })]
	if i := first(func(s spread) float64 { return s.upper }); i > 0 {
		k.Above = sizes[i-1]
	}
	if i := first(func(s spread) float64 { return s.lower }); i >= 0 {
		k.AtMost = sizes[i]
	}
	return k, true
}

// BDP returns the bandwidth-delay product in bytes: what a window needs to fill a path of that rate and least RTT (RFC
// 6349 section 3.3).
func BDP(rate float64, rttMin time.Duration) (float64, bool) {
	return known(rate*rttMin.Seconds(), rate > 0 && rttMin > 0)
}
