package queue

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// at is the value at quantile q of sorted values, the nearest rank; zero if there is none.
func at[T cmp.Ordered](sorted []T, q float64) (v T) {
	if len(sorted) == 0 {
		return v
	}
	i := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

// sorted returns a sorted copy.
func sorted[T cmp.Ordered](values []T) []T {
	s := slices.Clone(values)
	slices.Sort(s)
	return s
}

// some are at most 4096 of n values, evenly spaced, sorted.
func some[T cmp.Ordered](n int, value func(i int) T) []T {
	s := make([]T, min(max(n, 0), 4096))
	for i := range s {
		s[i] = value(i * n / len(s))
	}
	slices.Sort(s)
	return s
}

// seconds and duration convert, rounded to the nanosecond.
func seconds(d time.Duration) float64 { return float64(d) / 1e9 }

func duration(s float64) time.Duration { return time.Duration(math.Round(s * 1e9)) }
