package history

import (
	"maps"
	"slices"

	"oneway.example/exporter/estimate/orderstat"
)

// fewestSeason is the number of days of a kind that has hours of its own.
const fewestSeason = 5

// aroundDays is the number of days with samples whose median is the level at the day in their middle: a week has both kinds of days as often
// as any other one.
const aroundDays = 7

// deseasoned are the samples, which are sorted by time, without the effect of the hour of the week: for each kind of day with enough days, the
// median of the hour's values less the level of the days around each. Over values with their levels, a step in the middle would move all
// effects, and the levels with them.
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
	by, level := make([][]float64, 3*hours), localLevels(samples)
	for _, s := range samples {
		by[group(s)] = append(by[group(s)], s.Value-level[s.Day])
	}
	effect := make([]float64, len(by))
	for i, values := range by {
		slices.Sort(values)
		if len(values) >= fewestSeason {
			effect[i] = orderstat.Median(values)
		}
	}
	without := slices.Clone(samples)
	for i := range without {
		without[i].Value -= effect[group(without[i])]
	}
	return without
}

// localLevels are, by day, the medians of the seven days with samples around it; of days at both ends, of the first or last seven.
func localLevels(samples []Sample) map[int]float64 {
	by := map[int][]float64{}
	for _, s := range samples {
		by[s.Day] = append(by[s.Day], s.Value)
	}
	days := slices.Sorted(maps.Keys(by))
	level := make(map[int]float64, len(days))
	for i, day := range days {
		first := max(0, min(i-aroundDays/2, len(days)-aroundDays))
		var values []float64
		for _, d := range days[first:min(len(days), first+aroundDays)] {
			values = append(values, by[d]...)
		}
		level[day] = orderstat.Median(orderstat.Sorted(values))
	}
	return level
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
