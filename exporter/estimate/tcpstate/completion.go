package tcpstate

import (
	"math"
	"time"

	"oneway.example/exporter/estimate/orderstat"
)

// Completions are the times that short flows took (RFC 5166 section 2.1).
type Completions struct {
	ascending  []time.Duration
	unfinished int
}

// NewCompletions takes the times of flows that ended, and the number of those that did not: they are longer than all
// others, by an unknown time.
func NewCompletions(times []time.Duration, unfinished int) Completions {
	return Completions{orderstat.Sorted(times), max(0, unfinished)}
}

// Quantile is a quantile of the times, by the nearest rank, with a confidence interval of about 95 %.
type Quantile struct {
	Value time.Duration
	// Lower and Upper are order statistics whose ranks are 1.96 deviations of a binomial count away. Upper is 0 if that
	// is not among the flows that ended.
	Lower, Upper time.Duration
}

// At returns quantile q, more than 0 and less than 1; false: a flow of that rank did not end, or there are too few flows for
// the interval's lower end.
func (c Completions) At(q float64) (v Quantile, ok bool) {
	n := float64(len(c.ascending) + c.unfinished)
	if !(q > 0 && q < 1) {
		return v, false
	}
	half := 1.96 * math.Sqrt(n*q*(1-q))
	rank, lower, upper := int(math.Ceil(n*q*(1-1e-12))), int(math.Floor(n*q-half)), int(math.Ceil(n*q+half))+1
	if rank > len(c.ascending) || lower < 1 {
		return v, false
	}
	v.Value, v.Lower = c.ascending[rank-1], c.ascending[lower-1]
	if upper <= len(c.ascending) {
		v.Upper = c.ascending[upper-1]
	}
	return v, true
}
