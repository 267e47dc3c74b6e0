package history

import (
	"maps"
	"slices"

	"oneway.example/exporter/core/localday"
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
	type group struct {
		kind localday.DayType
		hour int
	}
	days := map[localday.DayType]map[int]bool{}
	for _, s := range samples {
		if days[s.Kind] == nil {
			days[s.Kind] = map[int]bool{}
		}
		days[s.Kind][s.Day] = true
	}
	of := func(s Sample) group {
		if len(days[s.Kind]) < fewestSeason {
			return group{localday.Weekday, s.Hour}
		}
		return group{s.Kind, s.Hour}
	}
	by, level := map[group][]float64{}, localLevels(samples)
	for _, s := range samples {
		by[of(s)] = append(by[of(s)], s.Value-level[s.Day])
	}
	effect := make(map[group]float64, len(by))
	for g, values := range by {
		slices.Sort(values)
		if len(values) >= fewestSeason {
			effect[g] = orderstat.Median(values)
		}
	}
	without := slices.Clone(samples)
	for i := range without {
		without[i].Value -= effect[of(without[i])]
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
