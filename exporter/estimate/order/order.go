// Package order has the order statistics of the estimators.
package order

import (
	"cmp"
	"math"
	"slices"
)

// Quantile is the value of ascending ones at quantile q (0..1) by the nearest rank: the smallest x
// such that a share of at least q is at most x (RFC 2330 section 11.3). Of none it is zero.
func Quantile[T any](ascending []T, q float64) (v T) {
	n := len(ascending)
	if n == 0 {
		return v
	}
	// A product of floats may be above the rank that it stands for.
	rank := int(math.Ceil(q * float64(n) * (1 - 1e-12)))
	return ascending[min(max(rank, 1), n)-1]
}

// Median is the middle one of ascending values, or the mean of the two in the middle. Of none it is
// zero.
func Median(ascending []float64) float64 {
	n := len(ascending)
	if n == 0 {
		return 0
	}
	return (ascending[(n-1)/2] + ascending[n/2]) / 2
}

// Sorted is an ascending copy.
func Sorted[T cmp.Ordered](values []T) []T {
	s := slices.Clone(values)
	slices.Sort(s)
	return s
}
