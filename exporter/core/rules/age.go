package rules

import (
	"fmt"

	"oneway.example/exporter/core/metric"
)

// Age is the limit of a result's age: a number of intervals, and a time for what delays a result besides.
type Age struct {
	interval           *metric.Desc
	intervals, seconds Threshold
}

// ReplyAge is the age of the last reply from which OnewayResultStale fires.
func ReplyAge() Age { return Age{metric.ProbeInterval, ThresholdStaleIntervals, ThresholdStaleSeconds} }

// RunAge is the age of the last completed run from which OnewayRunResultStale fires.
func RunAge() Age {
	return Age{metric.RunInterval, ThresholdRunStaleIntervals, ThresholdRunStaleSeconds}
}

// Default is the age in seconds by the default thresholds, for an interval in seconds.
func (a Age) Default(interval float64) float64 {
	return interval*a.intervals.Default + a.seconds.Default
}

// DefaultOf is the age in seconds by the default thresholds, for an expression of the interval.
func (a Age) DefaultOf(interval string) string {
	return fmt.Sprintf("(%s * %g + %g)", interval, a.intervals.Default, a.seconds.Default)
}

// DefaultText is the age by the default thresholds in words, such as "3 intervals plus 900 s".
func (a Age) DefaultText() string {
	return fmt.Sprintf("%g intervals plus %g s", a.intervals.Default, a.seconds.Default)
}

// limit is the age of each path.
func (a Age) limit() string {
	return promql(`(
  $interval * on (path) group_left () $intervals
  + on (path) group_left () $seconds
)`, names{"interval": latest(a.interval.Name), "intervals": a.intervals.ByPath.Name, "seconds": a.seconds.ByPath.Name})
}
