package history

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat/distuv"

	"oneway.example/exporter/estimate/orderstat"
)

// drawn are the deviations of one draw of days from the history: of medians and of mean ranks, by column.
type drawn struct{ median, rank []float64 }

// draw draws days with replacement.
func (g *grid) draw(rng *rand.Rand, n int) []drawn {
	draws := make([]drawn, n)
	times := make([]float64, len(g.day)) // how often a day is drawn
	for b := range draws {
		for i := range times {
			times[i] = 0
		}
		for range g.day {
			times[rng.IntN(len(g.day))]++
		}
		draws[b] = drawn{make([]float64, len(g.cells)), make([]float64, len(g.cells))}
		g.deviate(draws[b], times)
	}
	tame(draws, len(g.cells))
	for _, d := range draws {
		mean := 0.0
		for _, v := range d.median {
			mean += v / float64(len(d.median))
		}
		for h := range d.median {
			d.median[h] -= mean
		}
	}
	return draws
}

// gross is the number of deviations beyond which a draw of a median is limited. They follow from the largest tenth of the draws: of a path with
// two levels most draws have one of them, and what the others show is not gross.
const gross, grossTail = 4, 0.9

// tame limits the deviations of medians: with ten days, one gross value is the median of some draws, and would be most of the variance.
func tame(draws []drawn, columns int) {
	one := make([]float64, len(draws))
	for h := range columns {
		for b, d := range draws {
			one[b] = d.median[h]
		}
		if limit := gross * deviationOf(one); limit > 0 {
			for _, d := range draws {
				d.median[h] = min(max(d.median[h], -limit), limit)
			}
		}
	}
}

// deviationOf is the deviation of a normal distribution with this quantile of absolute values.
func deviationOf(values []float64) float64 {
	absolute := make([]float64, len(values))
	for i, v := range values {
		absolute[i] = math.Abs(v)
	}
	return orderstat.Quantile(orderstat.Sorted(absolute), grossTail) / distuv.UnitNormal.Quantile((1+grossTail)/2)
}

// deviate fills one draw.
func (g *grid) deviate(d drawn, times []float64) {
	ranks := 0.0
	for h, all := range g.cells {
		total, sum := 0.0, 0.0
		for i := range all {
			w := times[all[i].day]
			total += w
			sum += w * all[i].rank
		}
		if total == 0 { // the hour is missing on all of these days: no deviation is known
			continue
		}
		d.median[h] = g.medFix * (weightedMedian(all, times, total) - g.median[h])
		d.rank[h] = g.ranFix * (math.Sqrt(g.weight[h])*sum/total - g.ranks[h])
		ranks += d.rank[h] * math.Sqrt(g.weight[h])
	}
	for h := range g.cells {
		d.rank[h] -= ranks * math.Sqrt(g.weight[h])
	}
}

// weightedMedian is the median of cells that are each there so many times.
func weightedMedian(cells []cell, times []float64, total float64) float64 {
	seen := 0.0
	for i := range cells {
		seen += times[cells[i].day]
		if 2*seen < total {
			continue
		}
		v := cells[i].value - cells[i].level
		if 2*seen > total {
			return v
		}
		for j := i + 1; j < len(cells); j++ {
			if times[cells[j].day] > 0 {
				return (v + cells[j].value - cells[j].level) / 2
			}
		}
		return v
	}
	return cells[len(cells)-1].value - cells[len(cells)-1].level
}

// epsilon is epsilon squared with its interval. The observed one is a squared length: of the true mean ranks plus a deviation. For each
// true length, in the observed direction, the draws give the distribution of the observed one; the limits are where that is beyond
// the quantiles of 2.5 and 97.5 %.
func (g *grid) epsilon(observed float64, draws []drawn) Estimate {
	length := math.Sqrt(observed * g.scale)
	along, square := make([]float64, len(draws)), make([]float64, len(draws))
	norm := 0.0
	for _, v := range g.ranks {
		norm += v * v
	}
	norm = math.Sqrt(norm)
	bias := 0.0
	for b, d := range draws {
		for h, e := range d.rank {
			square[b] += e * e
			if norm > 0 {
				along[b] += e * g.ranks[h] / norm
			}
		}
		bias += square[b] / float64(len(draws))
	}
	at := func(truth, q float64) float64 {
		all := make([]float64, len(draws))
		for b := range all {
			all[b] = truth*truth + 2*truth*along[b] + square[b]
		}
		return orderstat.Quantile(orderstat.Sorted(all), q)
	}
	limit := func(q float64) float64 {
		low, high := 0.0, 2*length+10*math.Sqrt(bias)
		if at(0, q) >= length*length {
			return 0
		}
		for range 30 {
			if middle := (low + high) / 2; at(middle, q) < length*length {
				low = middle
			} else {
				high = middle
			}
		}
		return high * high / g.scale
	}
	e := Estimate{Value: max(0, length*length-bias) / g.scale, Low: limit(0.975), High: limit(0.025)}
	e.High = min(1, max(e.High, e.Value, bias/g.scale))
	e.Low = min(e.Low, e.Value)
	return e
}
