// Package history computes what months of samples of a path show: whether its values depend on the time of day or on the kind of the
// day, whether they change with time, and whether two conditions differ.
//
// Samples of neighboring hours and days are alike, so a day is a block: each interval comes from the differences between days, widened by
// the autocorrelation of the days (longrun.go). A verdict has three values, and none of them comes from an interval that an error bound
// of the samples can move.
//
// Each function takes samples in any order, with gaps and with any number in a day. A value that is not finite does not count.
package history

import (
	"math"
	"time"

	"oneway.example/exporter/core/localday"
)

// Sample is a value of a path: of an hour, or of a run.
type Sample struct {
	Time  time.Time
	Value float64
	// Bound is the largest possible error of Value, in its unit; 0: exact. It is systematic: the errors of all samples may have the same
	// sign, or one that changes with time.
	Bound float64
	// Hour is the local hour of the day, 0..23, and Day the local date in days, such as DayOf returns.
	Hour int
	Day  int
	Kind localday.DayType
}

// DayOf is the number of the date of t in the zone of t: days since 1970-01-01.
func DayOf(t time.Time) int {
	return int(time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC).Unix() / 86400)
}

// At is a sample with hour, day and kind in the zone of t, without holidays.
func At(t time.Time, value float64) Sample {
	return Sample{Time: t, Value: value, Hour: t.Hour(), Day: DayOf(t), Kind: localday.TypeOf(t.Weekday(), false)}
}

// Defaults of Options.
const (
	DefaultMargin = 0.10
	DefaultDraws  = 2000
	// Level is the probability that an interval contains its value.
	Level = 0.95
)

// Options are the settings of all functions. The zero value has the defaults.
type Options struct {
	// Margin is the largest difference that does not matter, relative to the median; 0: DefaultMargin.
	Margin float64
	// Seed of the random draws.
	Seed uint64
	// Draws is the number of the bootstrap's; 0: DefaultDraws.
	Draws int
	// Comparisons is the number of intervals that hold together (Bonferroni), which widens the limits behind the outcome Differs; 0: 1.
	Comparisons int
}

func (o Options) margin() float64 {
	if o.Margin > 0 {
		return o.Margin
	}
	return DefaultMargin
}

func (o Options) comparisons() float64 { return float64(max(1, o.Comparisons)) }

func (o Options) draws() int {
	if o.Draws > 0 {
		return o.Draws
	}
	return DefaultDraws
}

// Estimate is a value with the limits of its 95 % interval; a limit that the samples do not give is infinite.
type Estimate struct{ Value, Low, High float64 }

// scaled multiplies by a positive number.
func (e Estimate) scaled(by float64) Estimate { return Estimate{e.Value * by, e.Low * by, e.High * by} }

// Counts are the samples behind a result.
type Counts struct {
	// Samples have finite values, on so many Days.
	Samples, Days int
	// MissingHours are the hours without a sample from the first one to the last one; for runs they are no gaps.
	MissingHours int
}

// Count counts the samples.
func Count(samples []Sample) Counts {
	days, hours := map[int]bool{}, map[int64]bool{}
	first, last := int64(math.MaxInt64), int64(math.MinInt64)
	for _, s := range samples {
		h := s.Time.Unix() / 3600
		days[s.Day], hours[h] = true, true
		first, last = min(first, h), max(last, h)
	}
	c := Counts{Samples: len(samples), Days: len(days)}
	if len(hours) > 0 {
		c.MissingHours = int(last-first) + 1 - len(hours)
	}
	return c
}

// finite are the samples with a finite value and bound, in the order of their times.
func finite(samples []Sample) []Sample {
	kept := make([]Sample, 0, len(samples))
	for _, s := range samples {
		if !math.IsNaN(s.Value) && !math.IsInf(s.Value, 0) && s.Bound >= 0 && !math.IsInf(s.Bound, 0) && s.Hour >= 0 && s.Hour < hours {
			kept = append(kept, s)
		}
	}
	sortByTime(kept)
	return kept
}

// hours of a day.
const hours = 24
