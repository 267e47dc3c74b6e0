package history

import (
	"math"
	"slices"

	"oneway.example/exporter/estimate/orderstat"
)

// Month is the length of a month in days, the mean of the Gregorian calendar.
const Month = 30.44

// Trend is the change of a path's level with time.
type Trend struct {
	Counts
	Median float64
	// Slope is the change a month, in the unit of the values, and Total that from the first day to the last one, relative to Median. Both
	// include the error bounds.
	Slope, Total Estimate
	// Span is the number of days from the first one to the last one that have a median.
	Span int
	// Bound is the part of the half-width of Total that comes from error bounds.
	Bound float64
	// Verdict is about Total.
	Verdict Verdict
}

// fewestTrend is the number of days from which on a slope has an interval.
const fewestTrend = 5

// TrendOf estimates the slope of daily medians without the effect of the hour of the week (Theil 1950, Sen 1968); false with fewer than
// five days. The interval is Sen's, by the variance of Kendall's statistic S, which is multiplied by the inflation that the correlation of
// days causes (Hamed and Rao 1998, with the autocorrelation of first order of longrun.go).
func TrendOf(samples []Sample, o Options) (Trend, bool) {
	samples = finite(samples)
	days := dailyMedians(deseasoned(samples))
	if len(days) < fewestTrend {
		return Trend{}, false
	}
	days = thinned(days)
	t := Trend{Counts: Count(samples), Median: medianOf(samples), Span: days[len(days)-1].day - days[0].day}
	slopes := slopesOf(days, 0)
	per := Month
	t.Slope.Value = orderstat.Median(slopes) * per
	half, df := trendHalf(days, t.Slope.Value/per)
	low, high := slopes, slopes
	if slices.ContainsFunc(days, func(d daily) bool { return d.bound > 0 }) {
		low, high = slopesOf(days, -1), slopesOf(days, 1)
	}
	t.Slope.Low, t.Slope.High = atShare(low, 0.5-half)*per, atShare(high, 0.5+half)*per
	if !(t.Median > 0) {
		t.Verdict = Verdict{Outcome: Unknown, Reason: NoRelative}
		return t, true
	}
	factor := float64(t.Span) / per / t.Median
	t.Total = t.Slope.scaled(factor)
	t.Bound = (orderstat.Median(high)*per - t.Slope.Value) * factor
	t.Verdict = judge(t.Total, t.Total, t.Bound, df, t.Days, Options{}, o.margin())
	return t, true
}

// mostTrend is the number of days that give about half a million slopes.
const mostTrend = 1000

// thinned are every second, third ... of the days: so many that their slopes are few enough.
func thinned(days []daily) []daily {
	step := (len(days) + mostTrend - 1) / mostTrend
	var some []daily
	for i := 0; i < len(days); i += step {
		some = append(some, days[i])
	}
	return some
}

// slopesOf are the slopes of all pairs of days, a day, ascending; with so many times the error bounds of both days.
func slopesOf(days []daily, bounds float64) []float64 {
	slopes := make([]float64, 0, len(days)*(len(days)-1)/2)
	for i, a := range days {
		for _, b := range days[i+1:] {
			slopes = append(slopes, (b.value-a.value+bounds*(a.bound+b.bound))/float64(b.day-a.day))
		}
	}
	slices.Sort(slopes)
	return slopes
}

// atShare is the value with a share of the sorted ones below; infinite beyond them.
func atShare(sorted []float64, share float64) float64 {
	switch at := share * float64(len(sorted)); {
	case at < 0:
		return math.Inf(-1)
	case at > float64(len(sorted)-1):
		return math.Inf(1)
	default:
		return sorted[int(at)]
	}
}

// trendHalf is the half-width of the interval in shares of the slopes, and its degrees of freedom.
func trendHalf(days []daily, slope float64) (half, df float64) {
	n := float64(len(days))
	number, residual, mean := make([]int, len(days)), make([]float64, len(days)), 0.0
	for i, d := range days {
		number[i] = d.day
		residual[i] = d.value - slope*float64(d.day-days[0].day)
		mean += float64(d.day) / n
	}
	ranks, _ := midranks(residual)
	for i := range ranks {
		ranks[i] -= (n + 1) / 2
	}
	s := dayScores{day: number, v: ranks}
	var m neighbors
	m.add(s)
	linear := func(i int) float64 { return float64(days[i].day) - mean }
	factor := max(inflation(number, linear, m.cautiousOfSlope()), bartlett(s))
	_, ties := midranks(valuesOf(days))
	variance := (n*(n-1)*(2*n+5) - ties) / 18
	factor = min(factor, n/3)
	df = max(1, n/factor-2)
	return student(0.975, df) * math.Sqrt(max(0, variance)*factor) / (n * (n - 1)), df
}

func valuesOf(days []daily) []float64 {
	values := make([]float64, len(days))
	for i, d := range days {
		values[i] = d.value
	}
	return values
}
