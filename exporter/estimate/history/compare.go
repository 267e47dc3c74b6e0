package history

import (
	"math"
	"slices"

	"oneway.example/exporter/estimate/orderstat"
)

// Better says which of two values is better.
type Better uint8

// Lower is for delay, Higher for throughput and R.
const (
	Lower Better = iota
	Higher
)

// Comparison is condition A against condition B.
type Comparison struct {
	A, B             Counts
	MedianA, MedianB float64
	// Difference is the Hodges-Lehmann difference A - B of the medians. Relative is that over B, of logarithms where all values are above
	// 0; false: the median of B is not above 0. Both include the error bounds, of either condition in its worst direction.
	Difference    Estimate
	Relative      Estimate
	RelativeKnown bool
	// Corrected is Relative with the limits that hold for all Options.Comparisons together: the outcome Differs needs them.
	Corrected Estimate
	// Bound is the part of the half-width of Relative that comes from error bounds.
	Bound float64
	// BetterA is the probability that a value of A is better than one of B; equal ones count half. With Pairs, in the same hour.
	BetterA Estimate
	// Pairs is the number of hours that both have, by which they are compared; 0: by all values of both.
	Pairs int
	// P is the two-sided probability of a difference at least as large as Relative without any effect, without error bounds.
	P       float64
	Verdict Verdict
}

// fewestPairs, and the share of the smaller condition's hours that both must have, for a comparison hour by hour.
const fewestPairs, pairedShare = 10, 0.8

// Compare compares two conditions; false without a value in either.
//
// The interval of the difference is where the share of pairs below it is one half within Student's t times its standard error, which is
// estimated from the placement values of each day (DeLong 1988, Obuchowski 1997, with days as clusters): the inversion of the
// Mann-Whitney test, or with pairs the signed-rank test.
func Compare(a, b []Sample, better Better, o Options) (Comparison, bool) {
	a, b = finite(a), finite(b)
	if len(a) == 0 || len(b) == 0 {
		return Comparison{}, false
	}
	c := Comparison{A: Count(a), B: Count(b), MedianA: medianOf(a), MedianB: medianOf(b)}
	comparable, atZero := makeContrast(a, b, &c)
	if c.BetterA = atZero.logit(); better == Higher {
		c.BetterA = Estimate{1 - c.BetterA.Value, 1 - c.BetterA.High, 1 - c.BetterA.Low}
	}
	c.Difference = comparable.interval(comparable.test().half(1 - Level))
	c.conclude(a, b, comparable, o)
	return c, true
}

// conclude computes the relative difference, the probability of chance and the verdict. Where all values are above 0 these are about logarithms: a
// factor between two conditions remains one when the level of both changes.
func (c *Comparison) conclude(a, b []Sample, linear contrast, o Options) {
	basis, scaled := linear, func(e Estimate) Estimate { return e.scaled(1 / c.MedianB) }
	if positive(a) && positive(b) {
		basis, scaled = linear.logarithms(), ratios
	}
	t := basis.test()
	if c.P = 1; t.deviation > 0 {
		c.P = tail((basis.shareBelow(0)-0.5)/t.deviation, t.df)
	}
	if !(c.MedianB > 0) {
		c.Verdict = Verdict{Outcome: Unknown, Reason: NoRelative}
		return
	}
	c.Relative, c.RelativeKnown = scaled(basis.interval(t.half(1-Level))), true
	c.Corrected = scaled(basis.interval(t.half((1 - Level) / o.comparisons())))
	middle := func(bounds float64) float64 { return scaled(basis.shift(bounds).interval(0)).Value }
	c.Bound = max(c.Relative.Value-middle(-1), middle(1)-c.Relative.Value)
	if tied(a, b) {
		c.Verdict = Verdict{Outcome: Unknown, Reason: Tied}
		return
	}
	c.Verdict = judge(c.Relative, c.Corrected, c.Bound, t.df, Count(slices.Concat(a, b)).Days, o, o.margin())
}

// ratios are relative differences from differences of logarithms; an infinite limit remains.
func ratios(e Estimate) Estimate {
	of := func(v float64) float64 {
		if math.IsInf(v, 0) {
			return v
		}
		return math.Expm1(v)
	}
	return Estimate{of(e.Value), of(e.Low), of(e.High)}
}

// positive: all values are above 0 whatever their errors.
func positive(samples []Sample) bool {
	for _, s := range samples {
		if s.Value-s.Bound <= 0 {
			return false
		}
	}
	return true
}

// tied: more than half of all values are equal.
func tied(a, b []Sample) bool {
	number := map[float64]int{}
	for _, all := range [2][]Sample{a, b} {
		for _, s := range all {
			if number[s.Value]++; 2*number[s.Value] > len(a)+len(b) {
				return true
			}
		}
	}
	return false
}

func medianOf(samples []Sample) float64 { return orderstat.Median(sortedValues(samples, 0)) }

// sortedValues are the values plus so many times their error bound, ascending.
func sortedValues(samples []Sample, bounds float64) []float64 {
	values := make([]float64, len(samples))
	for i, s := range samples {
		values[i] = s.Value + bounds*s.Bound
	}
	return orderstat.Sorted(values)
}
