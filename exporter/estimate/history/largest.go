package history

import (
	"math"

	"oneway.example/exporter/estimate/orderstat"
)

// parts are the lengths of the parts of the day that are compared, in hours.
func parts() []int { return []int{1, 2, 3, 4, 6, 8, 12} }

// part is the mean of medians of neighboring hours; midnight lies between neighbors.
type part struct {
	hours, first int
	columns      []int
}

// partsOf are all parts of a length whose hours all have a median.
func (g *grid) partsOf(length int) (all []part) {
	for first := range hours {
		p := part{hours: length, first: first}
		for h := range length {
			if c := g.column[(first+h)%hours]; c >= 0 {
				p.columns = append(p.columns, c)
			}
		}
		if len(p.columns) == length {
			all = append(all, p)
		}
	}
	return all
}

func (p part) mean(of []float64) float64 {
	sum := 0.0
	for _, c := range p.columns {
		sum += of[c]
	}
	return sum / float64(len(p.columns))
}

// disjoint: both have no hour in common.
func (p part) disjoint(other part) bool {
	distance := (other.first - p.first + hours) % hours
	return distance >= p.hours && hours-distance >= p.hours
}

// scale is a length of parts with what the draws show about it.
type scale struct {
	parts     []part
	mean      []float64   // of medians
	up, down  []float64   // by error bounds
	deviation [][]float64 // by draw and part
	spread    []float64   // range of the deviations, by draw
	sigma     float64     // pooled deviation of a difference
	covariate [][]float64
}

func (g *grid) scaleOf(length int, draws []drawn) *scale {
	s := &scale{parts: g.partsOf(length)}
	n := len(s.parts)
	if n < 2 {
		return nil
	}
	for _, p := range s.parts {
		s.mean = append(s.mean, p.mean(g.median))
		s.up, s.down = append(s.up, p.mean(g.up)), append(s.down, p.mean(g.down))
	}
	s.covariate = make([][]float64, n)
	for i := range s.covariate {
		s.covariate[i] = make([]float64, n)
	}
	for _, d := range draws {
		one := make([]float64, n)
		low, high := math.Inf(1), math.Inf(-1)
		for i, p := range s.parts {
			one[i] = p.mean(d.median)
			low, high = min(low, one[i]), max(high, one[i])
		}
		for i := range one {
			for j := range i + 1 {
				s.covariate[i][j] += one[i] * one[j] / float64(len(draws))
			}
		}
		s.deviation, s.spread = append(s.deviation, one), append(s.spread, high-low)
	}
	pairs := 0
	for i := range n {
		for j := range i {
			if s.parts[i].disjoint(s.parts[j]) {
				s.sigma += s.variance(i, j)
				pairs++
			}
		}
	}
	s.sigma = math.Sqrt(s.sigma / float64(max(1, pairs)))
	return s
}

// variance of the difference between two parts, j < i.
func (s *scale) variance(i, j int) float64 {
	return max(0, s.covariate[i][i]+s.covariate[j][j]-2*s.covariate[i][j])
}

// pooledShare is the weight of the pooled variance in the variance of a pair, which few days know badly.
const pooledShare = 0.5

// upper is the upper limit of the largest difference between parts that have no hour in common: factor deviations above each.
func (s *scale) upper(factor float64) float64 {
	most := 0.0
	for i := range s.parts {
		for j := range i {
			if !s.parts[i].disjoint(s.parts[j]) {
				continue
			}
			sd := math.Sqrt((1-pooledShare)*s.variance(i, j) + pooledShare*s.sigma*s.sigma)
			d := s.mean[i] - s.mean[j]
			most = max(most, d+factor*sd+s.up[i]+s.down[j], -d+factor*sd+s.up[j]+s.down[i])
		}
	}
	return most
}

// lower is the lower limit: factor pooled deviations below each difference, within the error bounds.
func (s *scale) lower(factor float64) float64 {
	most := math.Inf(-1)
	for i := range s.parts {
		for j := range s.parts {
			if i != j {
				most = max(most, s.mean[i]-s.mean[j]-s.down[i]-s.up[j])
			}
		}
	}
	return most - factor*s.sigma
}

// against are the parts of a scale against the rest of the day.
type against struct {
	difference, bound []float64 // of each part, to the rest of the day
	deviation         [][]float64
	sigma             float64
}

// rest compares each part with the rest of the day: the mean of more hours is known better than another part.
func (s *scale) rest(medians, up, down []float64) against {
	var a against
	all := 0.0
	for _, v := range medians {
		all += v
	}
	widest := 0.0
	for i := range up {
		widest = max(widest, up[i], down[i])
	}
	n := float64(len(medians))
	own := float64(s.parts[0].hours)
	to := n / (n - own) // part - rest = (part - all) n / (n - own)
	for i := range s.parts {
		a.difference = append(a.difference, to*(s.mean[i]-all/n))
		a.bound = append(a.bound, max(s.up[i], s.down[i])+widest)
	}
	for _, d := range s.deviation { // their mean over all hours is 0
		one := make([]float64, len(d))
		for i, e := range d {
			one[i] = to * e
			a.sigma += one[i] * one[i] / float64(len(s.deviation)*len(d))
		}
		a.deviation = append(a.deviation, one)
	}
	a.sigma = math.Sqrt(a.sigma)
	return a
}

// largest fills the largest difference and the verdict.
func (g *grid) largest(t *TimeOfDay, draws []drawn, o Options) {
	var all []*scale
	for _, length := range parts() {
		if s := g.scaleOf(length, draws); s != nil {
			all = append(all, s)
		}
	}
	ratio := student(0.975, g.df) / z975
	limits := g.simultaneous(all, draws)
	low := limits.low
	g.observed(t)
	high := all[0].upper(z975 * ratio)
	value := g.shrunk(t.Observed, draws)
	unit := 1 / math.Abs(t.Median)
	t.Bound = g.bound() * unit
	t.Observed *= unit
	t.Largest = Estimate{min(max(value, low), high), low, high}.scaled(unit)
	for _, s := range all {
		t.Parts = append(t.Parts, Part{s.parts[0].hours, s.upper(z975*ratio) * unit})
	}
	if !(t.Median > 0) {
		t.Verdict = Verdict{Outcome: Unknown, Reason: NoRelative}
		return
	}
	t.conclude(o)
	if t.Verdict.Reason == FewDays {
		t.Verdict.MoreDays = g.moreDays(all, draws, value, limits, z975*ratio, o.margin()*t.Median)
	}
}

// simultaneous are lower limits that hold together.
type simultaneous struct {
	low          float64
	rest         []against // by scale
	pairs, rests float64   // deviations below a difference
}

// Probabilities that the limit of one of all differences is wrong: between a part and the rest of the day, and between two parts.
const restError, pairError = 0.02, 0.005

// simultaneous computes them from the quantiles of the largest standardized deviation of the draws.
func (g *grid) simultaneous(all []*scale, draws []drawn) simultaneous {
	l := simultaneous{low: math.Inf(-1)}
	pairs, rests := make([]float64, len(draws)), make([]float64, len(draws))
	for _, s := range all {
		r := s.rest(g.median, g.up, g.down)
		l.rest = append(l.rest, r)
		for b := range draws {
			if s.sigma > 0 {
				pairs[b] = max(pairs[b], s.spread[b]/s.sigma)
			}
			for _, e := range r.deviation[b] {
				if r.sigma > 0 {
					rests[b] = max(rests[b], math.Abs(e)/r.sigma)
				}
			}
		}
	}
	l.pairs = orderstat.Quantile(orderstat.Sorted(pairs), 1-pairError)
	l.rests = orderstat.Quantile(orderstat.Sorted(rests), 1-restError)
	for i, s := range all {
		l.low = max(l.low, s.lower(l.pairs))
		r := l.rest[i]
		for j, d := range r.difference {
			l.low = max(l.low, math.Abs(d)-l.rests*r.sigma-r.bound[j])
		}
	}
	return l
}

// later is the largest difference in a future history.
func (a against) later(draw int, shrink, noise float64) float64 {
	most := 0.0
	for i, d := range a.difference {
		most = max(most, math.Abs(shrink*d+noise*a.deviation[draw][i]))
	}
	return most
}

// bound is what the error bounds can add to a difference.
func (g *grid) bound() float64 {
	most := 0.0
	for i := range g.up {
		most = max(most, g.up[i], g.down[i])
	}
	return 2 * most
}

// observed sets the lowest and the highest median.
func (g *grid) observed(t *TimeOfDay) {
	low, high := 0, 0
	for h, v := range g.median {
		if v < g.median[low] {
			low = h
		}
		if v > g.median[high] {
			high = h
		}
	}
	t.Lowest, t.Highest, t.Observed = g.hour[low], g.hour[high], g.median[high]-g.median[low]
}

// shrunk multiplies the observed difference by the root of the share of the medians' variance that chance does not explain (James and Stein 1961).
func (g *grid) shrunk(observed float64, draws []drawn) float64 {
	mean, square, chance := 0.0, 0.0, 0.0
	for _, v := range g.median {
		mean += v / float64(len(g.median))
	}
	for _, v := range g.median {
		square += (v - mean) * (v - mean)
	}
	for _, d := range draws {
		for _, e := range d.median {
			chance += e * e / float64(len(draws))
		}
	}
	if square <= chance {
		return 0
	}
	return observed * math.Sqrt(1-chance/square)
}

// conclude judges single hours first, then parts of the day.
func (t *TimeOfDay) conclude(o Options) {
	m := o.margin()
	switch {
	case t.Largest.High <= m:
		t.Verdict = Verdict{Outcome: Equal, Within: m, Hours: 1}
		return
	case t.Largest.Low > 0:
		t.Verdict = Verdict{Outcome: Differs, AtLeast: t.Largest.Low}
		return
	}
	for _, p := range t.Parts {
		if p.Largest <= m {
			t.Verdict = Verdict{Outcome: Equal, Within: m, Hours: p.Hours}
			return
		}
	}
	if t.Bound >= m && t.Bound >= t.Largest.Value {
		t.Verdict = Verdict{Outcome: Unknown, Reason: WideBound}
		return
	}
	t.Verdict = Verdict{Outcome: Unknown, Reason: FewDays}
}

// moreDays finds the number of days after that half of such histories have an outcome. A future history has the medians that are estimated,
// shrunk, and deviations as the draws have, smaller by the root of the ratio of days.
func (g *grid) moreDays(all []*scale, draws []drawn, value float64, limits simultaneous, factor, margin float64) int {
	shrink := 0.0
	if raw := orderstat.Sorted(g.median); raw[len(raw)-1] > raw[0] {
		shrink = value / (raw[len(raw)-1] - raw[0])
	}
	const most = 200 // draws are enough for a probability of one half
	return moreDays(len(g.day), func(f float64) float64 {
		hits := 0
		for b := range min(most, len(draws)) {
			for i, s := range all {
				low, high := s.later(b, shrink, 1/math.Sqrt(f))
				sd, rest := s.sigma/math.Sqrt(f), limits.rest[i].later(b, shrink, 1/math.Sqrt(f))
				if high-low+factor*sd <= margin-g.bound() || high-low-limits.pairs*sd-g.bound() > 0 ||
					rest-limits.rests*limits.rest[i].sigma/math.Sqrt(f)-g.bound() > 0 {
					hits++
					break
				}
			}
		}
		return float64(hits) / float64(min(most, len(draws)))
	})
}

// later are the smallest and the largest mean of parts in a future history.
func (s *scale) later(draw int, shrink, noise float64) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for i, m := range s.mean {
		v := shrink*m + noise*s.deviation[draw][i]
		low, high = min(low, v), max(high, v)
	}
	return low, high
}
