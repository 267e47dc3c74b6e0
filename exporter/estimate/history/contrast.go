package history

import (
	"math"
	"slices"

	"oneway.example/exporter/estimate/orderstat"
)

// contrast is a set of values between which a difference is estimated: two samples, or differences within pairs.
type contrast interface {
	// test tests the estimated difference.
	test() tested
	// shareBelow is the share of pairs below v.
	shareBelow(v float64) float64
	// shift adds the error bounds so many times to A and subtracts them from B.
	shift(bounds float64) contrast
	// logarithms is the same of the logarithms of values.
	logarithms() contrast
	// interval has the limits where the share of pairs below is one half plus or minus half, with the error bounds.
	interval(half float64) Estimate
}

// tested is a share of pairs with its standard deviation.
type tested struct{ share, deviation, df float64 }

// half is the half-width of the interval of the share with a probability of error alpha.
func (t tested) half(alpha float64) float64 {
	if t.deviation == 0 {
		return 0
	}
	return student(1-alpha/2, t.df) * t.deviation
}

// logit is the share with its interval, of equal width on the scale of log odds: near 0 and 1 the deviation is small by chance (Qin and
// Hotilovac 2008).
func (t tested) logit() Estimate {
	if t.share <= 0 || t.share >= 1 {
		return Estimate{t.share, 0, 1} // all or none: the deviation is unknown
	}
	odds := math.Log(t.share / (1 - t.share))
	half := t.half(1-Level) / (t.share * (1 - t.share))
	return Estimate{t.share, 1 / (1 + math.Exp(half-odds)), 1 / (1 + math.Exp(-half-odds))}
}

// makeContrast pairs by hour where both have most of the hours. The second result is the test of the share of values where A is lower.
func makeContrast(a, b []Sample, c *Comparison) (contrast, tested) {
	x, y := byHour(a), byHour(b)
	both := 0
	for h := range x {
		if _, ok := y[h]; ok {
			both++
		}
	}
	if both >= fewestPairs && float64(both) >= pairedShare*float64(min(len(x), len(y))) {
		c.Pairs = both
		p := pairedBy(x, y)
		return p, p.signs()
	}
	u := unpaired{a, b}
	return u, u.testAt(0)
}

// hourly is the mean of the samples of an hour.
type hourly struct {
	value, bound float64
	day, n       int
}

func byHour(samples []Sample) map[int64]hourly {
	all := map[int64]hourly{}
	for _, s := range samples {
		h := all[s.Time.Unix()/3600]
		h.n++
		h.value += (s.Value - h.value) / float64(h.n)
		h.bound = max(h.bound, s.Bound)
		h.day = s.Day
		all[s.Time.Unix()/3600] = h
	}
	return all
}

// unpaired are two samples.
type unpaired struct{ a, b []Sample }

func (u unpaired) test() tested {
	return u.testAt(pairQuantile(differences{sortedValues(u.a, 0), sortedValues(u.b, 0)}, 0.5))
}

// testAt is the test of the share of pairs with a - b below v: the area under the ROC curve.
func (u unpaired) testAt(v float64) tested {
	a, b := make([]float64, len(u.a)), make([]float64, len(u.b))
	for i, s := range u.a {
		a[i] = s.Value - v
	}
	for i, s := range u.b {
		b[i] = s.Value
	}
	pa, pb := placements(a, orderstat.Sorted(b)), placements(b, orderstat.Sorted(a))
	share := 0.0
	for _, p := range pb { // the share of a below it
		share += p
	}
	share /= float64(len(pb)) // all or none is exactly 1 or 0
	za, zb := newBlocks(), newBlocks()
	for i, s := range u.a {
		za.add(s.Day, (1-pa[i]-share)/float64(len(u.a)), 1)
	}
	for i, s := range u.b {
		zb.add(s.Day, (pb[i]-share)/float64(len(u.b)), 1)
	}
	t := tested{share: share}
	variance := 0.0
	variance, t.df = joint(za, zb)
	t.deviation = math.Sqrt(variance)
	return t
}

// blocks are the scores of days, the part of the samples that each of them has, and the noise as in dayScores.
type blocks struct {
	scores, parts map[int]float64
	noise         float64
}

func newBlocks() *blocks { return &blocks{scores: map[int]float64{}, parts: map[int]float64{}} }

func (b *blocks) add(day int, score, part float64) {
	b.scores[day] += score
	b.parts[day] += part
}

// joint is the variance of the sum of both. Days that both have are blocks of both, which keeps what such days have in common; if few are
// in both, the conditions are taken for independent. A condition of one day has no variance that is known.
func joint(a, b *blocks) (variance, df float64) {
	if !even(a.scores, a.parts) || !even(b.scores, b.parts) {
		return math.Inf(1), 1
	}
	both := 0
	for d := range a.scores {
		if _, ok := b.scores[d]; ok {
			both++
		}
	}
	va, na := longRun(byDay(a.scores, a.noise))
	vb, nb := longRun(byDay(b.scores, b.noise))
	variance = va + vb
	switch {
	case variance == 0:
		df = na + nb
	case math.IsInf(variance, 0):
		return variance, 1
	default:
		df = variance * variance / (va*va/na + vb*vb/nb) // Welch and Satterthwaite
	}
	if 2*both >= min(len(a.scores), len(b.scores)) {
		for d, v := range b.scores {
			a.scores[d] += v
		}
		days := df // of the condition with the larger variance, where it has few
		variance, df = longRun(byDay(a.scores, a.noise+b.noise))
		df = min(df, days)
	}
	return variance, df
}

func (u unpaired) shareBelow(v float64) float64 {
	pb := placements(shifted(u.b, v), sortedValues(u.a, 0))
	sum := 0.0
	for _, p := range pb {
		sum += p
	}
	return sum / float64(len(pb))
}

func shifted(samples []Sample, by float64) []float64 {
	values := make([]float64, len(samples))
	for i, s := range samples {
		values[i] = s.Value + by
	}
	return values
}

func (u unpaired) shift(bounds float64) contrast {
	return unpaired{moved(u.a, bounds), moved(u.b, -bounds)}
}

// moved are the samples with so many times their error bound added, exact.
func moved(samples []Sample, bounds float64) []Sample {
	all := slices.Clone(samples)
	for i := range all {
		all[i].Value += bounds * all[i].Bound
		all[i].Bound = 0
	}
	return all
}

func (u unpaired) logarithms() contrast { return unpaired{logs(u.a), logs(u.b)} }

// logs are logarithms; the error bound is the larger of both sides.
func logs(samples []Sample) []Sample {
	all := slices.Clone(samples)
	for i, s := range samples {
		all[i].Value = math.Log(s.Value)
		if all[i].Bound = 0; s.Bound > 0 {
			all[i].Bound = -math.Log1p(-s.Bound / s.Value)
		}
	}
	return all
}

func (u unpaired) interval(half float64) Estimate {
	at := func(bounds, share float64) float64 {
		return pairQuantile(differences{sortedValues(u.a, bounds), sortedValues(u.b, -bounds)}, share)
	}
	return Estimate{at(0, 0.5), at(-1, 0.5-half), at(1, 0.5+half)}
}
