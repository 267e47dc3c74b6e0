package pathstate

import "math"

// doubt is the probability of either end outside of a 95 % interval (Clopper-Pearson).
const doubt = 0.025

// FewFaults is how many faulty packets of the long time never make a path worse than up: one lost packet of a slow probe is no fault.
// It is the default of oneway:threshold:loss_packets.
const FewFaults = 2

// counted are packets of a time: all of them, the certainly faulty ones, and the possibly faulty ones.
type counted struct{ all, certain, possible float64 }

func (c counted) ratio() float64 { return c.possible / max(c.all, 1) }

// outcome is whether a share of packets is above a limit.
type outcome uint8

const (
	within outcome = iota
	doubtful
	above
)

// share decides whether the share of faulty packets is above a limit (0..1), by the packets of a short time, and by the ones of a long time
// where the short one has too few. As an alert of two windows does, it takes no notice of faults that have ended, nor of a few in all.
func share(short, long counted, limit float64) outcome {
	switch {
	case exceeds(short.all, short.certain, limit):
		return above
	case exceeds(long.all, long.certain, limit) && short.certain > limit*short.all:
		return above
	case short.possible == 0, long.possible <= FewFaults:
		return within
	case staysBelow(short.all, short.possible, limit):
		return within
	case staysBelow(long.all, long.possible, limit) && short.ratio() <= limit:
		return within
	}
	return doubtful
}

// exceeds reports whether the 95 % interval of the share of k of n packets is above a limit.
func exceeds(n, k, limit float64) bool {
	if k <= n*limit || k == 0 {
		return false
	}
	sum, term := 0.0, probability(n, k, limit)
	for i := k; i <= n && term > 1e-12 && sum < doubt; i++ {
		sum += term
		term *= (n - i) / (i + 1) * limit / (1 - limit)
	}
	return sum < doubt
}

// staysBelow reports whether the 95 % interval of the share of k of n packets is below a limit.
func staysBelow(n, k, limit float64) bool {
	if n == 0 || k >= n*limit {
		return false
	}
	sum, term := 0.0, probability(n, k, limit)
	for i := k; i >= 0 && term > 1e-12 && sum < doubt; i-- {
		sum += term
		term *= i / (n - i + 1) * (1 - limit) / limit
	}
	return sum < doubt
}

// probability is how likely exactly k of n packets are faulty if each is faulty with probability p, 0..1 (the binomial distribution).
func probability(n, k, p float64) float64 {
	if p >= 1 {
		return 0
	}
	choose := logGamma(n+1) - logGamma(k+1) - logGamma(n-k+1)
	return math.Exp(choose + k*math.Log(p) + (n-k)*math.Log1p(-p))
}

func logGamma(x float64) float64 {
	v, _ := math.Lgamma(x)
	return v
}
