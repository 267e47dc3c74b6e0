package history

import (
	"maps"
	"slices"

	"oneway.example/exporter/estimate/orderstat"
)

// fewestSeason is the number of days of a kind that has hours of its own.
const fewestSeason = 5

// deseasoned are the samples without the effect of the hour of the week: the median of the hour, for each kind of day with enough
// days, less the median of all.
func deseasoned(samples []Sample) []Sample {
	days := [3]map[int]bool{{}, {}, {}}
	for _, s := range samples {
		days[s.Kind%3][s.Day] = true
	}
	group := func(s Sample) int {
		kind := s.Kind % 3
		if len(days[kind]) < fewestSeason {
			kind = 0
		}
		return int(kind)*hours + s.Hour
	}
	by := make([][]float64, 3*hours)
	for _, s := range samples {
		by[group(s)] = append(by[group(s)], s.Value)
	}
	effect, all := make([]float64, len(by)), medianOf(samples)
	for i, values := range by {
		slices.Sort(values)
		if len(values) >= fewestSeason {
			effect[i] = orderstat.Median(values) - all
		}
	}
	without := slices.Clone(samples)
	for i := range without {
		without[i].Value -= effect[group(without[i])]
	}
	return without
}

// daily is the median of a day.
type daily struct {
	day         int
	value       float64
	bound       float64 // what the error bounds can add
	first, next int     // its samples
}

// dailyMedians are the medians of the days with at least half of the usual number of samples; the samples are sorted by time.
func dailyMedians(samples []Sample) (all []daily) {
	by := map[int][2]int{}
	for i, s := range samples {
		at, ok := by[s.Day]
		if !ok {
			at[0] = i
		}
		at[1] = i + 1
		by[s.Day] = at
	}
	var sizes []float64
	for _, at := range by {
		sizes = append(sizes, float64(at[1]-at[0]))
	}
	slices.Sort(sizes)
	usual := orderstat.Median(sizes)
	for _, day := range slices.Sorted(maps.Keys(by)) {
		at := by[day]
		one := samples[at[0]:at[1]]
		if 2*float64(len(one)) < usual {
			continue
		}
		d := daily{day: day, value: medianOf(one), first: at[0], next: at[1]}
		d.bound = max(orderstat.Median(sortedValues(one, 1))-d.value, d.value-orderstat.Median(sortedValues(one, -1)))
		all = append(all, d)
	}
	return all
}
