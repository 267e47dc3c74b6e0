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
	// Buffer is the smallest whose mean throughput reaches 95 % of Best, within Above and AtMost.
	Buffer int64
	// The knee is more than Above and at most AtMost with a confidence of at least 96 %. Zero: that end is not known, as the
	// smallest buffer may be enough, or none reaches the 95 % reliably.
	Above, AtMost int64
	// Best is the mean throughput of the cells whose repetitions overlap the best cell's.
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

// spread is the relative variance of all repetitions around the mean of their cell, and its degrees of freedom.
type spread struct{ variance, freedom float64 }

func spreadOf(all []rates) (s spread) {
	deviations := 0.0
	for _, c := range all {
		if c.mean > 0 {
			deviations, s.freedom = deviations+c.deviations/(c.mean*c.mean), s.freedom+c.n-1
		}
	}
	s.variance = deviations / max(s.freedom, 1)
	return s
}

// excess is by how much a cell exceeds 95 % of another one, and the error that this has with a probability of at most
// 1 %.
func (s *spread) excess(c, other rates) (value, bound float64) {
	total := s.variance * (c.mean*c.mean/c.n + KneeShare*KneeShare*other.mean*other.mean/other.n)
	return c.mean - KneeShare*other.mean, onePercent(s.freedom) * math.Sqrt(total)
}

// reaches reports whether a cell reaches 95 % of each other one, so of the best one, whichever it is. For a single cell this is wrong
// in at most 1 %, since the comparison with the best cell has to be wrong.
func (s *spread) reaches(c rates, all []rates) bool {
	return !slices.ContainsFunc(all, func(other rates) bool {
		value, bound := s.excess(c, other)
		return other.buffer != c.buffer && value < bound
	})
}

// tooMany is how much larger the error of one of several comparisons is than of a single one: each has a
// probability of about 0.1 %.
const tooMany = 1.35

// short reports whether a cell is certainly below 95 % of one of the others.
func (s *spread) short(c rates, all []rates) bool {
	return slices.ContainsFunc(all, func(other rates) bool {
		value, bound := s.excess(c, other)
		return other.buffer != c.buffer && value < -tooMany*bound
	})
}

// bestOf is the mean of the cells whose repetitions overlap the best cell's: the largest of several means exceeds the best
// throughput the more, the more cells there are and the more they vary.
func bestOf(all []rates) float64 {
	edge := slices.MaxFunc(all, func(a, b rates) int { return cmp.Compare(a.mean, b.mean) }).least
	n, sum := 0.0, 0.0
	for _, c := range all {
		if c.most >= edge {
			n, sum = n+c.n, sum+c.n*c.mean
		}
	}
	return sum / n
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
	if k.Best = bestOf(all); k.Best <= 0 {
		return Knee{}, false
	}
	spread := spreadOf(all)
	k.Buffer = all[slices.IndexFunc(all, func(c rates) bool { return c.mean >= KneeShare*k.Best })].buffer
	for _, c := range all {
		if !spread.short(c, all) {
			break
		}
		k.Above = c.buffer
	}
	if i := slices.IndexFunc(all, func(c rates) bool { return spread.reaches(c, all) }); i >= 0 {
		k.AtMost = all[i].buffer
	}
	k.Buffer = max(k.Buffer, k.next(all))
	if k.AtMost > 0 {
		k.Buffer = min(k.Buffer, k.AtMost)
	}
	return k, true
}

// next is the smallest buffer that is more than Above.
func (k *Knee) next(all []rates) int64 {
	i := slices.IndexFunc(all, func(c rates) bool { return c.buffer > k.Above })
	return all[max(i, 0)].buffer
}

// BDP returns the bandwidth-delay product in bytes: what a window needs to fill a path of that rate and least RTT (RFC
// 6349 section 3.3).
func BDP(rate float64, rttMin time.Duration) (float64, bool) {
	return known(rate*rttMin.Seconds(), rate > 0 && rttMin > 0)
}
