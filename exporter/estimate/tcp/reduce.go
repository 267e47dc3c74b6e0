package tcp

import (
	"slices"
	"time"
)

// Point is a value of a series at a time.
type Point struct {
	At    time.Duration
	Value float64
}

// Reduce returns at most most points of a series in order of time, at least 4, for plots: of each of equal parts of the
// time the least and the largest, so that no peak is lost. A short series is returned as it is.
func Reduce(series []Point, most int) []Point {
	if len(series) <= most {
		return series
	}
	parts := max(most, 4) / 2
	begin := series[0].At
	width := (series[len(series)-1].At-begin)/time.Duration(parts) + 1
	var kept []Point
	for rest := series; len(rest) > 0; {
		end := begin + width*((rest[0].At-begin)/width+1)
		n := slices.IndexFunc(rest, func(p Point) bool { return p.At >= end })
		if n < 0 {
			n = len(rest)
		}
		least, largest := 0, 0
		for i, p := range rest[:n] {
			if p.Value < rest[least].Value {
				least = i
			}
			if p.Value > rest[largest].Value {
				largest = i
			}
		}
		kept = append(kept, rest[min(least, largest)])
		if least != largest {
			kept = append(kept, rest[max(least, largest)])
		}
		rest = rest[n:]
	}
	return kept
}
