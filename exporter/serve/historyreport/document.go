package historyreport

import (
	"math"
	"time"

	"oneway.example/exporter/estimate/history"
)

// Interval is an estimate with its interval of 95 %, error bounds of the clocks included. A limit that the samples do not give is null.
type Interval struct {
	// Value is the estimate.
	Value float64 `json:"value"`
	// Low is the lower limit.
	Low *float64 `json:"low"`
	// High is the upper limit.
	High *float64 `json:"high"`
}

func intervalOf(e history.Estimate) Interval { return Interval{e.Value, finite(e.Low), finite(e.High)} }

func finite(v float64) *float64 {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return nil
	}
	return &v
}

// Verdict is what an interval shows.
type Verdict struct {
	// Outcome is differs, equal or unknown.
	Outcome string `json:"outcome"`
	// AtLeast is the smallest difference of the outcome differs.
	AtLeast *float64 `json:"at_least_ratio,omitempty"`
	// Within is the margin of the outcome equal.
	Within *float64 `json:"within_ratio,omitempty"`
	// PartHours is the length of the parts of the day that are equal, in hours.
	PartHours int `json:"part_hours,omitempty"`
	// MoreDays is about how many days more are needed; 3650: ten years or more.
	MoreDays int `json:"more_days,omitempty"`
	// Reason is why the outcome is unknown.
	Reason string `json:"reason,omitempty"`
	// Text is the verdict in words.
	Text string `json:"text"`
}

// Counts are the samples behind a result.
type Counts struct {
	// Samples is the number of samples.
	Samples int `json:"samples"`
	// Days is the number of local dates with a sample.
	Days int `json:"days"`
	// MissingHours is the number of hours without a sample between the first and the last one.
	MissingHours int `json:"missing_hours"`
}

func countsOf(c history.Counts) Counts { return Counts(c) }

// HoursOfDay is what a history shows about the hours of the day.
type HoursOfDay struct {
	// Epsilon is the share of the variance of ranks that the hours explain.
	Epsilon Interval `json:"explained_ratio"`
	// Largest is the largest difference between the medians of two hours, over the median.
	Largest Interval `json:"largest_difference_ratio"`
	// Observed is the same without a correction for chance.
	Observed float64 `json:"observed_difference_ratio"`
	// Lowest is the hour with the lowest median.
	Lowest int `json:"lowest_hour"`
	// Highest is the hour with the highest median.
	Highest int `json:"highest_hour"`
	// Verdict is about the largest difference.
	Verdict Verdict `json:"verdict"`
	// Text is the sentence of the table.
	Text string `json:"text"`
}

// Comparison is condition A against condition B.
type Comparison struct {
	// Name is what is compared.
	Name string `json:"name"`
	// A is the samples of the first condition.
	A Counts `json:"a"`
	// B is the samples of the second condition.
	B Counts `json:"b"`
	// MedianA is the median of A, of loss the share of all packets, in the unit of the measure.
	MedianA float64 `json:"a_median"`
	// MedianB is the same of B.
	MedianB float64 `json:"b_median"`
	// UndecidedA is how much larger the loss of A may be, 0..1: packets without an outcome; absent: none.
	UndecidedA float64 `json:"a_undecided_ratio,omitempty"`
	// UndecidedB is the same of B.
	UndecidedB float64 `json:"b_undecided_ratio,omitempty"`
	// Difference is the difference of the medians, A less B, in the unit of the measure.
	Difference Interval `json:"difference"`
	// Relative is the difference over B; absent: not known, or of loss.
	Relative *Interval `json:"relative_difference_ratio,omitempty"`
	// Corrected is the relative difference, of loss the difference, with limits that hold for all comparisons of the table together: the outcome
	// differs needs them; absent: one comparison.
	Corrected *Interval `json:"corrected_difference_ratio,omitempty"`
	// BetterA is the probability that a sample of A is better than one of B; absent of loss.
	BetterA *Interval `json:"a_better_ratio,omitempty"`
	// Pairs is the number of hours of both, if they were compared hour by hour.
	Pairs int `json:"pairs,omitempty"`
	// P is the probability of such a difference by chance alone, without the error bounds.
	P float64 `json:"chance_ratio"`
	// Adjusted is P after Holm's correction for the table.
	Adjusted *float64 `json:"chance_adjusted_ratio,omitempty"`
	// Verdict is about the relative difference; of loss about the difference.
	Verdict Verdict `json:"verdict"`
	// Text is the sentence of the table.
	Text string `json:"text"`
	// about is what the verdict is about, metric.AboutL; share is true of a difference of shares.
	about string
	share bool
}

// Trend is the change of the level with time.
type Trend struct {
	// Slope is the change a month of 30.44 days, in the unit of the measure.
	Slope Interval `json:"slope_per_month"`
	// Total is the change from the first day to the last one, over the median.
	Total Interval `json:"change_ratio"`
	// Verdict is about the whole change.
	Verdict Verdict `json:"verdict"`
	// Text is the sentence of the table.
	Text string `json:"text"`
}

// Change is a step of the level.
type Change struct {
	// Time is the first sample with the new level, in UTC.
	Time time.Time `json:"time"`
	// Before is the median before, in the unit of the measure.
	Before float64 `json:"before"`
	// After is the median after it.
	After float64 `json:"after"`
	// WithinBound is true if the error bounds of the clocks can explain the step.
	WithinBound bool `json:"within_error_bound"`
	// Text is the sentence of the table.
	Text string `json:"text"`
}

// History is what months of a path show.
type History struct {
	// Labels are the path, the direction and other labels.
	Labels map[string]string `json:"labels"`
	// Measure is the quantity.
	Measure string `json:"measure"`
	// Unit is the unit of values without another one in their name.
	Unit string `json:"unit"`
	Counts
	// First is the time of the first sample.
	First time.Time `json:"first"`
	// Last is the time of the last sample.
	Last time.Time `json:"last"`
	// Median is the median of all samples; of loss the share of all packets.
	Median float64 `json:"median"`
	// Undecided is how much larger the loss may be, 0..1: packets without an outcome; absent: none.
	Undecided float64 `json:"undecided_ratio,omitempty"`
	// Bound is the median of the error bounds.
	Bound float64 `json:"error_bound"`
	// HoursOfDay are the hours of the day; absent: too few samples, or of loss.
	HoursOfDay *HoursOfDay `json:"hours_of_day,omitempty"`
	// Comparisons are parts of the history against each other.
	Comparisons []Comparison `json:"comparisons"`
	// Trend is the trend; absent: too few days, or of loss.
	Trend *Trend `json:"trend,omitempty"`
	// Changes are the steps of the level, at most five.
	Changes []Change `json:"changes"`
	// Months are the calendar months, of one path and a delay in Prometheus or in the rows of hours of InfluxDB; absent otherwise.
	Months []Month `json:"months,omitempty"`
}
