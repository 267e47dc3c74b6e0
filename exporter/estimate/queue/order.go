package queue

import (
	"cmp"
	"math"
	"slices"
	"time"
)

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
