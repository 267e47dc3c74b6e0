package tcpstate

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Cell is a buffer size of a sweep.
type Cell struct {
	// Buffer is the size that was in effect, in bytes.
	Buffer int64
	// Rates has the throughput of each repetition.
	Rates []float64
}

// KneeShare is the share of the best throughput that a sufficient buffer reaches.
const KneeShare = 0.95

// Knee is the buffer from which on more brings little.
type Knee struct {
	// Buffer is the smallest whose mean throughput reaches 95 % of the best.
	Buffer int64
	// The knee is more than Above and at most AtMost, each with a confidence of 99 %. Zero: that end is not known, as the
	// smallest buffer may be enough, or none reaches the 95 % reliably.
	Above, AtMost int64
	// Best is the mean throughput of the plateau.
	Best float64
}

// rates are the mean and the squared deviations of n repetitions, and the least and the largest.
type rates struct {
	buffer                        int64
	n                             float64
	mean, deviations, least, most float64
}

func ratesOf(c Cell) rates {
	r := rates{buffer: c.Buffer, n: float64(len(c.Rates)), least: slices.Min(c.Rates), most: slices.Max(c.Rates)}
	for _, v := range c.Rates {
		r.mean += v / r.n
	}
	for _, v := range c.Rates {
		r.deviations += (v - r.mean) * (v - r.mean)
	}
	return r
}

// plateau is the cells whose repetitions overlap the best cell's. Their pooled mean is the best throughput: the
// largest of several means exceeds it the more, the more cells there are and the more they vary.
type plateau struct {
	n, mean, variance, freedom float64
	edge                       float64 // the least repetition of the best cell
}

func plateauOf(all []rates) (p plateau) {
	best := slices.MaxFunc(all, func(a, b rates) int { return cmp.Compare(a.mean, b.mean) })
	p.edge = best.least
	sum, deviations := 0.0, 0.0
	for _, c := range all {
		if p.holds(c) {
			p.n, sum, deviations, p.freedom = p.n+c.n, sum+c.n*c.mean, deviations+c.deviations, p.freedom+c.n-1
		}
	}
	p.mean = sum / p.n
	p.variance = deviations / max(p.freedom, 1)
	return p
}

func (p *plateau) holds(c rates) bool { return c.most >= p.edge }

// excess is by how much a cell exceeds 95 % of the plateau, and the error that this has with a probability of at most
// 1 %. The variance is the plateau's, below it in proportion, or the cell's own if that is larger: few repetitions do
// not show theirs.
func (p *plateau) excess(c rates) (value, bound float64) {
	variance := p.variance
	covariance := p.variance / p.n
	if !p.holds(c) {
		covariance = 0
		share := c.mean / p.mean
		variance = max(p.variance*share*share, c.deviations/max(c.n-1, 1))
	}
	total := variance/c.n + KneeShare*KneeShare*p.variance/p.n - 2*KneeShare*covariance
	return c.mean - KneeShare*p.mean, onePercent(p.freedom) * math.Sqrt(total)
}

// onePercent is the value that Student's t with so many degrees of freedom exceeds with a probability of 1 %: from a table,
// then the expansion by Cornish and Fisher (Abramowitz and Stegun 26.7.5).
func onePercent(freedom float64) float64 {
	if table := [...]float64{math.Inf(1), 31.821, 6.965, 4.541, 3.747}; freedom < float64(len(table)) {
		return table[int(freedom)]
	}
	const z = 2.32635
	return z + (z*z*z+z)/(4*freedom) + (5*z*z*z*z*z+16*z*z*z+3*z)/(96*freedom*freedom)
}

// FindKnee computes the knee of cells that differ in their buffer only, in any order. Cells without repetitions do not
// count; it needs two others.
func FindKnee(cells []Cell) (k Knee, ok bool) {
	var all []rates
	for _, c := range cells {
		if len(c.Rates) > 0 {
			all = append(all, ratesOf(c))
		}
	}
	if len(all) < 2 {
		return Knee{}, false
	}
	slices.SortFunc(all, func(a, b rates) int { return cmp.Compare(a.buffer, b.buffer) })
	p := plateauOf(all)
	if k.Best = p.mean; k.Best <= 0 {
		return Knee{}, false
	}
	first := func(reaches func(value, bound float64) bool) int {
		return slices.IndexFunc(all, func(c rates) bool { return reaches(p.excess(c)) })
	}
	k.Buffer = all[first(func(value, _ float64) bool { return value >= 0 })].buffer
	if i := first(func(value, bound float64) bool { return value+bound >= 0 }); i > 0 {
		k.Above = all[i-1].buffer
	}
	if i := first(func(value, bound float64) bool { return value >= bound }); i >= 0 {
		k.AtMost = all[i].buffer
	}
	return k, true
}

// BDP returns the bandwidth-delay product in bytes: what a window needs to fill a path of that rate and least RTT (RFC
// 6349 section 3.3).
func BDP(rate float64, rttMin time.Duration) (float64, bool) {
	return known(rate*rttMin.Seconds(), rate > 0 && rttMin > 0)
}
