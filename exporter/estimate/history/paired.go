package history

import (
	"maps"
	"math"
	"slices"

	"oneway.example/exporter/estimate/orderstat"
)

// paired are values of the same hours.
type paired struct {
	a, b []hourly
}

func pairedBy(x, y map[int64]hourly) paired {
	var p paired
	for _, h := range slices.Sorted(maps.Keys(x)) {
		if other, ok := y[h]; ok {
			p.a, p.b = append(p.a, x[h]), append(p.b, other)
		}
	}
	return p
}

// differences are a - b with so many times the error bounds of both added.
func (p paired) differences(bounds float64) []float64 {
	d := make([]float64, len(p.a))
	for i := range d {
		d[i] = p.a[i].value - p.b[i].value + bounds*(p.a[i].bound+p.b[i].bound)
	}
	return d
}

func (p paired) test() tested {
	d := p.differences(0)
	sorted := orderstat.Sorted(d)
	middle := pairQuantile(walsh{sorted}, 0.5)
	for i := range d {
		d[i] = 2*middle - d[i]
	}
	share := placements(d, sorted)
	mean := 0.0
	for _, s := range share {
		mean += s / float64(len(share))
	}
	return p.clustered(mean, func(i int) float64 { return 2 * (share[i] - mean) })
}

// clustered is a mean with its deviation from the scores of the pairs.
func (p paired) clustered(mean float64, score func(i int) float64) tested {
	all := newBlocks()
	for i := range p.a {
		all.add(p.a[i].day, score(i)/float64(len(p.a)), 1)
	}
	t := tested{share: mean}
	variance := math.Inf(1)
	if t.df = 1; even(all.scores, all.parts) {
		variance, t.df = longRun(byDay(all.scores, 0))
	}
	t.deviation = math.Sqrt(variance)
	return t
}

// signs is the test of the share of pairs where a is lower.
func (p paired) signs() tested {
	d := p.differences(0)
	lower := func(i int) float64 {
		switch {
		case d[i] < 0:
			return 1
		case d[i] == 0:
			return 0.5
		}
		return 0
	}
	sum := 0.0 // of halves, exactly: all or none is 1 or 0
	for i := range d {
		sum += lower(i)
	}
	mean := sum / float64(len(d))
	return p.clustered(mean, func(i int) float64 { return lower(i) - mean })
}

func (p paired) shareBelow(v float64) float64 {
	w := walsh{orderstat.Sorted(p.differences(0))}
	n, largest, _ := w.count(v)
	if largest == v { // equal ones count half
		under, _, _ := w.count(math.Nextafter(v, math.Inf(-1)))
		return float64(n+under) / 2 / float64(w.size())
	}
	return float64(n) / float64(w.size())
}

func (p paired) shift(bounds float64) contrast {
	return paired{movedHours(p.a, bounds), movedHours(p.b, -bounds)}
}

func movedHours(all []hourly, bounds float64) []hourly {
	all = slices.Clone(all)
	for i := range all {
		all[i].value += bounds * all[i].bound
		all[i].bound = 0
	}
	return all
}

func (p paired) logarithms() contrast { return paired{logHours(p.a), logHours(p.b)} }

func logHours(all []hourly) []hourly {
	all = slices.Clone(all)
	for i, h := range all {
		all[i].value = math.Log(h.value)
		if all[i].bound = 0; h.bound > 0 {
			all[i].bound = -math.Log1p(-h.bound / h.value)
		}
	}
	return all
}

func (p paired) interval(half float64) Estimate {
	at := func(bounds, share float64) float64 {
		return pairQuantile(walsh{orderstat.Sorted(p.differences(bounds))}, share)
	}
	return Estimate{at(0, 0.5), at(-1, 0.5-half), at(1, 0.5+half)}
}
