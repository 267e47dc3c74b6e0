// Package orderstat provides the order statistics of the estimators.
package orderstat

import (
	"cmp"
	"math"
	"slices"
)

// Quantile is the value of ascending ones at quantile q (0..1) by the nearest rank: the smallest x such that a
// share of at least q is at most x (RFC 2330 section 11.3). Zero for no values.
func Quantile[T any](ascending []T, q float64) (v T) {
	n := len(ascending)
	if n == 0 {
		return v
	}
	return ascending[min(Rank(n, q), n)-1]
}

// Rank is the nearest rank of quantile q (0..1) of n values: the position, from 1 on, of the smallest value such that a share of at
// least q is at most it. 1 for no values.
func Rank[N int | uint64](n N, q float64) N {
	// A product of floats may be slightly above the exact rank.
	return max(1, N(math.Ceil(q*float64(n)*(1-1e-12))))
}

// Median is the middle one of ascending values, or the mean of the two in the middle. Zero for no values.
func Median(ascending []float64) float64 {
	n := len(ascending)
	if n == 0 {
		return 0
	}
	return (ascending[(n-1)/2] + ascending[n/2]) / 2
}

// MedianOfAll is the median of values, not necessarily ascending, and of so many others that are larger than all of them; false if there are none,
// or if the median is one of the larger ones or between them and a value.
func MedianOfAll(values []float64, larger int) (float64, bool) {
	n := len(values) + larger
	if n == 0 || n/2 >= len(values) {
		return 0, false
	}
	all := Sorted(values)
	return (all[(n-1)/2] + all[n/2]) / 2, true
}

// OfArrived is the value at quantile q (0..1) of arrived packets and of lost ones, which are later than all others; false if the
// quantile is among the lost ones, or if more than half of the arrived packets have no value. Otherwise the ascending values represent
// all of them.
func OfArrived[T any](ascending []T, arrived, lost int, q float64) (v T, ok bool) {
	rank := Rank(arrived+lost, q)
	if len(ascending) == 0 || 2*len(ascending) < arrived || rank > arrived {
		return v, false
	}
	return Quantile(ascending, float64(rank)/float64(arrived)), true
}

// Sorted is an ascending copy.
func Sorted[T cmp.Ordered](values []T) []T {
	s := slices.Clone(values)
	slices.Sort(s)
	return s
}

// Sample is at most 4096 of n values, evenly spaced, ascending.
func Sample[T cmp.Ordered](n int, value func(i int) T) []T {
	s := make([]T, min(max(n, 0), 4096))
	for i := range s {
		s[i] = value(int(int64(i) * int64(n) / int64(len(s))))
	}
	slices.Sort(s)
	return s
}

// Histogram is a histogram of values from zero on, in bins of one width; the last includes all larger values.
type Histogram struct {
	Width float64
	Bins  []int32
	N     int
	scale float64 // bins for each unit of the values: multiplication is faster than division
}

// NewHistogram returns an empty histogram of n bins.
func NewHistogram(width float64, n int) Histogram {
	return Histogram{Width: width, Bins: make([]int32, n), scale: 1 / width}
}

// Add counts a value.
func (c *Histogram) Add(v float64) {
	c.Bins[int(min(v*c.scale, float64(len(c.Bins)-1)))]++
	c.N++
}

// Quantile is the lower end of the bin with the value at quantile q (0..1), by the nearest rank. Zero for no
// values.
func (c *Histogram) Quantile(q float64) float64 {
	rank := Rank(c.N, q)
	for i, n := range c.Bins {
		if rank -= int(n); rank <= 0 {
			return float64(i) * c.Width
		}
	}
	return 0
}

// Below is the number of values in bins before the bin of v.
func (c *Histogram) Below(v float64) (n int) {
	for i := range int(min(v*c.scale, float64(len(c.Bins)))) {
		n += int(c.Bins[i])
	}
	return n
}
