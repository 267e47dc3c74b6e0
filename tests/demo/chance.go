package main

import "math"

// chance is the probability that k or a more extreme number of n independent events with probability p occur, twice the
// smaller tail of the binomial distribution (Clopper and Pearson 1934), computed exactly.
func chance(k, n uint64, p float64) float64 {
	switch {
	case p <= 0 && k == 0, p >= 1 && k == n, n == 0:
		return 1
	case p <= 0, p >= 1:
		return 0
	}
	below := tail(k, n, p)
	above := tail(n-k, n, 1-p)
	return min(1, 2*min(below, above))
}

// tail is the probability of k or fewer of n. It sums from the largest term down, which is the last one for k below the
// mean; above it, the tail is not the smaller one and need not be exact to the last digit.
func tail(k, n uint64, p float64) (sum float64) {
	ln := func(x uint64) float64 { v, _ := math.Lgamma(float64(x) + 1); return v }
	for i := k + 1; i > 0; i-- {
		x := i - 1
		term := math.Exp(ln(n) - ln(x) - ln(n-x) + float64(x)*math.Log(p) + float64(n-x)*math.Log1p(-p))
		sum += term
		if float64(x) < float64(n)*p && term < 1e-18*sum {
			break
		}
	}
	return min(sum, 1)
}
