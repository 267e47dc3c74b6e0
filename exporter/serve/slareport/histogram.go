package slareport

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/prometheus/common/model"
)

// bucket is a number of values above lower and up to upper.
type bucket struct{ lower, upper, count float64 }

// histogram has buckets by their limits; those of several times are added.
type histogram map[[2]float64]float64

func (h histogram) add(b bucket) {
	if b.count > 0 {
		h[[2]float64{b.lower, b.upper}] += b.count
	}
}

// addNative adds the increases of a native histogram.
func (h histogram) addNative(from *model.SampleHistogram) {
	for _, b := range from.Buckets {
		h.add(bucket{float64(b.Lower), float64(b.Upper), float64(b.Count)})
	}
}

// addClassic adds the increases of classic buckets, which are cumulative.
func (h histogram) addClassic(counts map[string]float64) {
	type limit struct{ upper, count float64 }
	var all []limit
	for le, n := range counts {
		if upper, err := strconv.ParseFloat(le, 64); err == nil {
			all = append(all, limit{upper, n})
		}
	}
	slices.SortFunc(all, func(a, b limit) int { return cmp.Compare(a.upper, b.upper) })
	lower, below := math.Inf(-1), 0.0 // a delay may be below zero, within its error bound
	for _, l := range all {
		h.add(bucket{lower, l.upper, l.count - below})
		lower, below = l.upper, max(below, l.count) // increases are extrapolated: a later one may be smaller by rounding
	}
}

func (h histogram) count() (n float64) {
	for _, c := range h {
		n += c
	}
	return n
}

// Quantile is a quantile of delays in seconds. The true one is from Lower to Upper, whatever the delays are that are not in the
// store; Value is the quantile of the known ones, interpolated between the limits of a bucket. Buckets overlap where the resolution of the
// store changed. An infinite limit is unknown.
type Quantile struct{ Value, Lower, Upper float64 }

// quantile is nil without values. unknown is the number of delays that are not in the histogram.
func (h histogram) quantile(rank, unknown float64) *Quantile {
	n := h.count()
	if n <= 0 {
		return nil
	}
	byLower := func(a, b bucket) int { return cmp.Or(cmp.Compare(a.lower, b.lower), cmp.Compare(a.upper, b.upper)) }
	byUpper := func(a, b bucket) int { return cmp.Or(cmp.Compare(a.upper, b.upper), cmp.Compare(a.lower, b.lower)) }
	b, share := h.at(rank, byUpper)
	q, from := &Quantile{Lower: math.Inf(-1), Upper: math.Inf(1)}, b.lower
	last := rank * (n + unknown) // rank of the quantile if the unknown delays are the longest
	if last > unknown {          // else they may all be shorter
		low, _ := h.at((last-unknown)/n, byLower)
		q.Lower = low.lower
	}
	if last <= n {
		high, _ := h.at(last/n, byUpper)
		q.Upper = high.upper
	}
	if math.IsInf(from, -1) {
		from = min(0, b.upper)
	}
	if q.Value = from + (b.upper-from)*share; math.IsInf(b.upper, 1) {
		q.Value = from
	}
	q.Value = max(q.Value, q.Lower)
	return q
}

// at is the bucket with the quantile in an order, and the share of it that is below.
func (h histogram) at(rank float64, order func(a, b bucket) int) (of bucket, share float64) {
	all := make([]bucket, 0, len(h))
	for limits, n := range h {
		all = append(all, bucket{limits[0], limits[1], n})
	}
	slices.SortFunc(all, order)
	left := rank * h.count()
	for i, b := range all {
		if of = b; left <= b.count || i == len(all)-1 {
			break
		}
		left -= b.count
	}
	return of, min(1, left/of.count)
}
