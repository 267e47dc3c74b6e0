package history

import (
	"math"
	"slices"
	"time"

	"oneway.example/exporter/estimate/orderstat"
)

// Change is a step of the level of a path.
type Change struct {
	// Time of the first sample with the new level.
	Time time.Time
	// Before and After are the medians since the change before, and until the next one, without the effect of the hour of the week.
	Before, After float64
	// WithinBound: the error bounds of both levels can explain the step. The clocks may have changed, not the path.
	WithinBound bool
}

// Relative is the step over the level before; false: that is not above 0.
func (c Change) Relative() (float64, bool) {
	if !(c.Before > 0) {
		return 0, false
	}
	return c.After/c.Before - 1, true
}

// MostChanges is the largest number of changes that are reported.
const MostChanges = 5

// fewestSegment is the shortest part between two changes, in days.
const fewestSegment = 3

// Changes finds at most five steps, in the order of time.
//
// Days are divided in two where the rank sums of both parts differ most, in seeded intervals of all lengths (binary segmentation, Kovacs
// et al. 2023). The penalty of a change is the square of threshold, times the long-run variance of the residuals: correlation of
// days makes steps more difficult to prove. The hour is where the sum of Huber's losses of the innovations of hourly samples is least, for an
// autoregressive process with both levels.
func Changes(samples []Sample) []Change {
	samples = finite(samples)
	even := deseasoned(samples)
	days := dailyMedians(even)
	ends := significant(days)
	var all []Change
	for i := 1; i < len(ends)-1; i++ {
		all = append(all, locate(even, days, ends[i-1], ends[i], ends[i+1]))
	}
	return levels(even, all)
}

// significant are the ends of the parts of the days, from 0 to their number. The residuals, whose correlation is the noise, are left by all
// divisions that would be significant if days were independent: a step that is still in them looks like correlation.
func significant(days []daily) []int {
	clear := clearSteps(days)
	ends, last := slices.Sorted(slices.Values(append([]int{0, len(days)}, clear...))), threshold(len(days))
	var found []int
	var strengths []float64
	for len(found) < mostDivisions {
		at, strength := strongest(days, ends)
		if at == 0 || strength < last {
			break
		}
		found, strengths = append(found, at), append(strengths, strength)
		ends = append(ends, at)
		slices.Sort(ends)
	}
	factor := math.Sqrt(residualInflation(days, ends))
	ends = append([]int{0, len(days)}, clear...)
	for i, at := range found {
		if strengths[i] >= last*factor && len(ends) < MostChanges+2 {
			ends = append(ends, at)
		}
	}
	slices.Sort(ends)
	return ends
}

// clearMove is how many deviations of the moves between neighboring days a step has that no correlation of days explains.
const clearMove = 8

// clearSteps are the divisions at which the level moves by much more than anywhere else, the largest moves first. Rank sums do not know how large a
// step is: of a path whose level also changes slowly they would show none, and one between two steps.
func clearSteps(days []daily) (steps []int) {
	middle := func(some []daily) float64 { return orderstat.Median(orderstat.Sorted(valuesOf(some))) }
	moves := make([]float64, 0, len(days))
	for at := fewestSegment; at+fewestSegment <= len(days); at++ {
		moves = append(moves, middle(days[at:at+fewestSegment])-middle(days[at-fewestSegment:at]))
	}
	if len(moves) < fewestMoves {
		return nil
	}
	least := clearMove * spread(moves)
	for len(steps) < MostChanges {
		largest := 0
		for i, m := range moves {
			if math.Abs(m) > math.Abs(moves[largest]) {
				largest = i
			}
		}
		if !(least > 0) || math.Abs(moves[largest]) <= least {
			break
		}
		steps = append(steps, largest+fewestSegment)
		for i := max(0, largest-fewestSegment+1); i < min(len(moves), largest+fewestSegment); i++ {
			moves[i] = 0
		}
	}
	ends := slices.Sorted(slices.Values(append([]int{0, len(days)}, steps...)))
	return slices.DeleteFunc(steps, func(at int) bool {
		i := slices.Index(ends, at)
		return !lasts(days[ends[i-1]:at], days[at:ends[i+1]])
	})
}

// lasts reports whether nine tenths of the days of both parts, which are five at least, are on their own side of the middle between the levels: a
// path that alternates between two levels has large moves, too.
func lasts(before, after []daily) bool {
	x, y := orderstat.Median(orderstat.Sorted(valuesOf(before))), orderstat.Median(orderstat.Sorted(valuesOf(after)))
	own := func(some []daily, level float64) bool {
		n := 0
		for _, d := range some {
			if (d.value > (x+y)/2) == (level > (x+y)/2) {
				n++
			}
		}
		return len(some) >= 5 && float64(n) >= 0.9*float64(len(some))
	}
	return own(before, x) && own(after, y)
}

// fewestMoves is the least number of moves that have a deviation.
const fewestMoves = 10

// mostDivisions is the largest number of divisions that are tried.
const mostDivisions = 20

// threshold is what the standardized difference of rank sums exceeds in at most 5 % of histories of so many days without a step, by
// simulation.
func threshold(days int) float64 { return 1.2 * math.Sqrt(2*math.Log(float64(max(days, 2)))) }

// strongest is the most significant division of a part of the days, and its standardized rank sum; 0: there is none.
func strongest(days []daily, ends []int) (at int, strength float64) {
	for i := 1; i < len(ends); i++ {
		first, next := ends[i-1], ends[i]
		for length := float64(next - first); length >= 2*fewestSegment; length /= math.Sqrt2 {
			step := max(1, int(length/2))
			for from := first; from+2*fewestSegment <= next; from += step {
				k, z := division(days[from:min(next, from+int(math.Ceil(length)))])
				if z > strength {
					at, strength = from+k, z
				}
			}
		}
	}
	return at, strength
}

// division is the largest standardized Wilcoxon rank sum of the first k days.
func division(days []daily) (k int, z float64) {
	n := float64(len(days))
	ranks, ties := midranks(valuesOf(days))
	scale := (n + 1) / 12 * (1 - ties/(n*n*n-n))
	sum := 0.0
	for i, r := range ranks {
		sum += r - (n+1)/2
		before := float64(i + 1)
		if i+1 < fewestSegment || len(days)-i-1 < fewestSegment || scale <= 0 {
			continue
		}
		if one := math.Abs(sum) / math.Sqrt(before*(n-before)*scale); one > z {
			k, z = i+1, one
		}
	}
	return k, z
}

// residualInflation is the inflation of the residuals of all parts.
func residualInflation(days []daily, ends []int) float64 {
	residual, number := make([]float64, 0, len(days)), make([]int, 0, len(days))
	for i := 1; i < len(ends); i++ {
		part := days[ends[i-1]:ends[i]]
		middle := orderstat.Median(orderstat.Sorted(valuesOf(part)))
		for _, d := range part {
			residual, number = append(residual, d.value-middle), append(number, d.day)
		}
	}
	ranks, _ := midranks(residual)
	for i := range ranks {
		ranks[i] -= float64(len(ranks)+1) / 2
	}
	s := dayScores{day: number, v: ranks}
	var m neighbors
	m.add(s)
	rho := m.rho(1, len(ends)-1)
	return max((1+rho)/(1-rho), bartlett(s))
}

// around is the time in which the hour of a change is searched, before and after the day.
const around = 5 * 24 * time.Hour

// locate finds the sample where the level changes between the parts [first, at) and [at, next) of the days.
func locate(samples []Sample, days []daily, first, at, next int) Change {
	before, after := samples[days[first].first:days[at].first], samples[days[at].first:days[next-1].next]
	x, y := medianOf(before), medianOf(after)
	center := days[at].first
	low, high := center, center
	for low > days[first].first && samples[center].Time.Sub(samples[low].Time) < around {
		low--
	}
	for high < days[next-1].next-1 && samples[high].Time.Sub(samples[center].Time) < around {
		high++
	}
	window := samples[low:high]
	phi, width := innovations(before, x, after, y)
	best, least := center, math.Inf(1)
	for k := range window {
		cost, last := 0.0, 0.0
		for i, s := range window {
			r := s.Value - y
			if i < k {
				r = s.Value - x
			}
			if i > 0 {
				cost += huber((r - phi*last) / width)
			}
			last = min(max(r, -4*width), 4*width)
		}
		if cost < least {
			best, least = low+k, cost
		}
	}
	return Change{Time: samples[best].Time}
}

// innovations are the correlation of neighboring samples and the scale of what is new in each.
func innovations(before []Sample, x float64, after []Sample, y float64) (phi, width float64) {
	r := make([]float64, 0, len(before)+len(after))
	for _, s := range before {
		r = append(r, s.Value-x)
	}
	for _, s := range after {
		r = append(r, s.Value-y)
	}
	width = spread(r)
	products, squares := 0.0, 0.0
	for i := range r {
		r[i] = min(max(r[i], -3*width), 3*width)
		squares += r[i] * r[i]
		if i > 0 {
			products += r[i] * r[i-1]
		}
	}
	if squares == 0 {
		return 0, 1
	}
	phi = min(max(products/squares, 0), mostCorrelated)
	fresh := make([]float64, len(r))
	for i := 1; i < len(r); i++ {
		fresh[i] = r[i] - phi*r[i-1]
	}
	if width = spread(fresh); width == 0 {
		return phi, 1
	}
	return phi, width
}

// spread is the deviation of a normal distribution with the median of absolute values (1.4826 of it).
func spread(values []float64) float64 {
	absolute := make([]float64, len(values))
	for i, v := range values {
		absolute[i] = math.Abs(v)
	}
	return 1.4826 * orderstat.Median(orderstat.Sorted(absolute))
}

// huber is Huber's loss (1964), with 1.345 deviations.
func huber(z float64) float64 {
	const k = 1.345
	if z = math.Abs(z); z <= k {
		return z * z / 2
	}
	return k * (z - k/2)
}

// levels fills the medians between the changes, and leaves out changes without samples on one side.
func levels(samples []Sample, changes []Change) []Change {
	slices.SortFunc(changes, func(a, b Change) int { return a.Time.Compare(b.Time) })
	changes = slices.CompactFunc(changes, func(a, b Change) bool { return a.Time.Equal(b.Time) })
	from := 0
	var parts [][]Sample
	for _, c := range changes {
		to := from
		for to < len(samples) && samples[to].Time.Before(c.Time) {
			to++
		}
		parts = append(parts, samples[from:to])
		from = to
	}
	parts = append(parts, samples[from:])
	for i := range changes {
		before, after := parts[i], parts[i+1]
		c := &changes[i]
		c.Before, c.After = medianOf(before), medianOf(after)
		rise := orderstat.Median(sortedValues(after, -1)) - orderstat.Median(sortedValues(before, 1))
		fall := orderstat.Median(sortedValues(before, -1)) - orderstat.Median(sortedValues(after, 1))
		c.WithinBound = max(rise, fall) <= 0
	}
	return changes
}
