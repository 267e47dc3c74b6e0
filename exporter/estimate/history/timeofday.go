package history

import (
	"math"
	"math/rand/v2"
	"slices"

	"oneway.example/exporter/estimate/orderstat"
)

// TimeOfDay is what a history shows about the hours of the day.
type TimeOfDay struct {
	Counts
	// Seed of the draws.
	Seed uint64
	// Median of all values, and of each hour; NaN: too few samples of the hour.
	Median  float64
	Medians [hours]float64
	// H is the statistic of Kruskal and Wallis, and Epsilon the share of the variance of ranks that the hours explain (0..1), without the
	// share that hours without any effect explain by chance.
	H       float64
	Epsilon Estimate
	// Largest is the largest difference between the medians of two hours, relative to Median, with the error bounds. Its value is shrunk
	// by what chance adds to the largest of many. A limit below 0 means that the samples show no difference.
	Largest Estimate
	// Observed is the same difference without any correction, between the hours Lowest and Highest.
	Observed        float64
	Lowest, Highest int
	// Parts are the upper limits of the largest difference between parts of the day of so many hours (medians of hours averaged), ascending.
	Parts []Part
	// Bound is the part of the half-width of Largest that comes from error bounds, relative to Median.
	Bound   float64
	Verdict Verdict
}

// Part is the upper limit of the difference between parts of the day.
type Part struct {
	Hours   int
	Largest float64
}

// Fewest samples and days of an hour, and fewest hours, for a result.
const fewestOfHour, fewestHours = 4, 2

// alignedHours is the number of hours of the usual day from which on a day has a level of its own.
const alignedHours = 6

// HoursOfDay analyzes the hours of the day; false if fewer than two hours have samples of four days.
//
// Days are drawn with replacement (a day is a block), the deviations of the draws widened by the correlation of neighboring days and by
// the small number of days. Epsilon squared has the interval that inverts this bootstrap. The upper limit of the largest difference
// is the largest of the limits of all pairs of hours (intersection-union: no correction is necessary, Berger 1982); the
// lower one is simultaneous for all pairs of parts of the day of 1 to 6 hours, which corrects the largest of many differences.
func HoursOfDay(samples []Sample, o Options) (TimeOfDay, bool) {
	samples = finite(samples)
	g := newGrid(samples)
	if g == nil {
		return TimeOfDay{}, false
	}
	t := TimeOfDay{Counts: Count(samples), Seed: o.Seed, Median: medianOf(samples)}
	groups := make([][]float64, hours)
	for _, s := range samples {
		groups[s.Hour] = append(groups[s.Hour], s.Value)
	}
	for h, all := range groups {
		t.Medians[h] = math.NaN()
		if g.column[h] >= 0 {
			t.Medians[h] = orderstat.Median(orderstat.Sorted(all))
		}
	}
	var ok bool
	if t.H, t.Epsilon.Value, ok = KruskalWallis(groups); !ok {
		return TimeOfDay{}, false
	}
	rng := rand.New(rand.NewPCG(o.Seed, 0x686f757273))
	draws := g.draw(rng, o.draws())
	t.Epsilon = g.epsilon(t.Epsilon.Value, draws)
	g.largest(&t, draws, o)
	return t, true
}

// grid has samples by hour and day.
type grid struct {
	column [hours]int // of an hour in the slices below; -1: too few samples
	hour   []int
	day    []int // ascending
	cells  [][]cell
	weight []float64 // share of samples of the column
	median []float64 // of aligned values
	up     []float64 // what the error bounds can add to the median
	down   []float64
	ranks  []float64 // mean of the column's, 0..1, less 1/2, with the weights
	scale  float64   // variance of ranks
	medFix float64   // factor of deviations of medians
	ranFix float64   // factor of deviations of ranks
	df     float64
}

// cell is a sample of a column.
type cell struct {
	day                 int // index
	value, bound, level float64
	rank                float64
}

// newGrid is nil without two hours.
func newGrid(samples []Sample) *grid {
	g := &grid{}
	days := map[int]int{}
	for _, s := range samples {
		days[s.Day] = 0
	}
	for d := range days {
		g.day = append(g.day, d)
	}
	slices.Sort(g.day)
	for i, d := range g.day {
		days[d] = i
	}
	var by [hours][]cell
	for _, s := range samples {
		by[s.Hour] = append(by[s.Hour], cell{day: days[s.Day], value: s.Value, bound: s.Bound})
	}
	n := 0
	for h, all := range by {
		if g.column[h] = -1; distinctDays(all) >= fewestOfHour {
			g.column[h] = len(g.hour)
			g.hour, g.cells = append(g.hour, h), append(g.cells, all)
			n += len(all)
		}
	}
	if len(g.hour) < fewestHours {
		return nil
	}
	for _, all := range g.cells {
		g.weight = append(g.weight, float64(len(all))/float64(n))
	}
	g.align()
	g.rank(n)
	return g
}

func distinctDays(cells []cell) int {
	n := 0
	for i, c := range cells {
		if i == 0 || c.day != cells[i-1].day {
			n++
		}
	}
	return n
}

// align removes the level of each day, as median polish does (Tukey 1977): hours are compared within days, where most of what days have in
// common cancels. The level is the mean of the middle half: a median is the value of a sample, which then has no deviation at all, and
// draws would deviate too little. Days with few samples have no level of their own.
func (g *grid) align() {
	byDay := make([][]*cell, len(g.day))
	usual := make([]float64, len(g.day))
	for _, all := range g.cells {
		for i := range all {
			byDay[all[i].day] = append(byDay[all[i].day], &all[i])
			usual[all[i].day]++
		}
	}
	center := make([]float64, len(g.cells))
	var one []float64
	rounds := 0
	if slices.Sort(usual); orderstat.Median(usual) >= alignedHours {
		rounds = 4
	}
	hourOf := map[*cell]int{}
	for h, all := range g.cells {
		for i := range all {
			hourOf[&all[i]] = h
		}
	}
	for range rounds {
		for h, all := range g.cells {
			one = one[:0]
			for _, c := range all {
				one = append(one, c.value-c.level)
			}
			slices.Sort(one)
			center[h] = orderstat.Median(one)
		}
		for _, all := range byDay {
			one = one[:0]
			for _, c := range all {
				one = append(one, c.value-center[hourOf[c]])
			}
			level := midmean(one)
			for _, c := range all {
				c.level = level
			}
		}
	}
	for _, all := range g.cells {
		slices.SortFunc(all, func(a, b cell) int {
			switch x, y := a.value-a.level, b.value-b.level; {
			case x < y:
				return -1
			case x > y:
				return 1
			}
			return a.day - b.day
		})
		middle := medianOfCells(all, 0)
		g.median = append(g.median, middle)
		g.up, g.down = append(g.up, medianOfCells(all, 1)-middle), append(g.down, middle-medianOfCells(all, -1))
	}
	g.medFix, _, g.df = g.widening(func(h int, c cell) float64 {
		switch x := c.value - c.level - g.median[h]; {
		case x > 0:
			return 1
		case x < 0:
			return -1
		}
		return 0
	})
}

// midmean is the mean of the middle half.
func midmean(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	middle := values[n/4 : n-n/4]
	sum := 0.0
	for _, v := range middle {
		sum += v
	}
	return sum / float64(len(middle))
}

func medianOfCells(cells []cell, bounds float64) float64 {
	values := make([]float64, len(cells))
	for i, c := range cells {
		values[i] = c.value - c.level + bounds*c.bound
	}
	return orderstat.Median(orderstat.Sorted(values))
}

// rank computes ranks and their means.
func (g *grid) rank(n int) {
	values := make([]float64, 0, n)
	for _, all := range g.cells {
		for _, c := range all {
			values = append(values, c.value)
		}
	}
	ranks, ties := midranks(values)
	size := float64(n)
	for h, all := range g.cells {
		sum := 0.0
		for i := range all {
			all[i].rank = (ranks[0]-0.5)/size - 0.5
			sum += all[i].rank
			ranks = ranks[1:]
		}
		g.ranks = append(g.ranks, math.Sqrt(g.weight[h])*sum/float64(len(all)))
	}
	g.scale = (1 - 1/(size*size)) / 12 * (1 - ties/(size*size*size-size))
	factor, few, _ := g.widening(func(h int, c cell) float64 { return c.rank - g.ranks[h]/math.Sqrt(g.weight[h]) })
	g.ranFix = factor * few
}

// widening is the factor of deviations between draws of single days, from the scores of the samples; few is the factor of a mean for the small number
// of days: medians of draws of few values deviate too much without it. df are the degrees of freedom. What the hours of a day
// have in common does not count, since hours are compared.
func (g *grid) widening(score func(h int, c cell) float64) (factor, few, df float64) {
	level, number := make([]float64, len(g.day)), make([]float64, len(g.day))
	for h, all := range g.cells {
		for _, c := range all {
			level[c.day] += score(h, c)
			number[c.day]++
		}
	}
	var m neighbors
	for h, all := range g.cells {
		sums := map[int]float64{}
		for _, c := range all {
			sums[g.day[c.day]] += score(h, c) - level[c.day]/number[c.day]
		}
		m.add(byDay(sums, 0))
	}
	n := float64(len(g.day))
	f := min(inflation(g.day, evenly, m.rho(len(g.cells), 1)), n/2)
	return math.Sqrt(f), math.Sqrt(n / (n - f)), max(1, n/f-1)
}
