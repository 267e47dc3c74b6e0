package rules

import (
	"slices"
	"time"

	"oneway.example/exporter/core/metric"
)

// The delay floor of an hour and of a day, the largest delay of a day, baselines, and values by hour of the day.
var (
	DelayFloor1h = Rule{
		Name: "oneway:delay_min_seconds:min1h",
		Doc:  `The delay floor: the path's delay without a queue.`,
		Expr: "min_over_time(" + metric.DelayMin.Name + "[1h])",
	}
	DelayBaseline = Rule{
		Name: recorded(metric.Delay, "quantile_baseline7d"),
		Doc: `Baselines: the median of the hours of the last 7 days, the current
hour excluded, so that a fault does not become its own baseline at once.
Before 7 days: of the hours that exist, from baseline_hours on (12 steps of
5 min each); before that there is none, and its alerts do not fire.`,
		Expr: weekMedian(DelayQuantiles1h.Name, `{quantile_rank="0.95"}`, "1h"),
	}
	RoundTripBaseline = Rule{
		Name: recorded(metric.RoundTripTime, "quantile_baseline7d"),
		Expr: weekMedian(RoundTripQuantiles1h.Name, `{quantile_rank="0.95"}`, "1h"),
	}
	DelayFloorBaseline = Rule{Name: recorded(metric.DelayMin, "baseline7d"), Expr: weekMedian(DelayFloor1h.Name, "", "1h")}
	Calendar           = Rule{
		Name: "oneway:calendar",
		Doc:  `{hour="0".."23", daytype="weekday"|"weekend"} 1: now, in local time.`,
		Expr: promql(`
count_values("hour", hour(vector(time() + 3600 * scalar(max($utcOffsetHours)))))
* on () group_left (daytype)
(
  label_replace(day_of_week(vector(time() + 3600 * scalar(max($utcOffsetHours)))) % 6 > 0, "daytype", "weekday", "", "")
  or
  label_replace(day_of_week(vector(time() + 3600 * scalar(max($utcOffsetHours)))) % 6 == 0, "daytype", "weekend", "", "")
) ^ 0`, names{
			"utcOffsetHours": ThresholdUTCOffsetHours.Name,
		}),
	}
	DelayQuantileByHour = Rule{
		Name: byHour(metric.Delay, "quantile1h"),
		Doc: `Weekday against weekend by hour (WPI 2006, figures 8..13): read them with
avg_over_time(...[30d]) or quantile_over_time.`,
		Expr: atHour(DelayQuantiles1h.Name),
	}
	RoundTripQuantileByHour = Rule{Name: byHour(metric.RoundTripTime, "quantile1h"), Expr: atHour(RoundTripQuantiles1h.Name)}
	LossRatioByHour         = Rule{Name: byHour(metric.PacketsLost, "ratio1h"), Expr: atHour(LossRatio1h.Name)}
	DelayFloor1d            = Rule{
		Name: "oneway:delay_min_seconds:min1d",
		Expr: "min_over_time(" + metric.DelayMin.Name + "[1d])",
	}
	DelayMax1d = Rule{
		Name: "oneway:delay_max_seconds:max1d",
		Expr: "max_over_time(" + metric.DelayMax.Name + "[1d])",
	}
)

// weekMedian is the median of a recorded series over the last 7 days without the last hours, with the history that a baseline needs.
func weekMedian(series, selector, offset string) string {
	return promql("\nquantile_over_time(0.5, $series[7d] offset $offset)\nand\n", names{"series": series + selector, "offset": offset}) + "\n" +
		withHistory(series+selector, offset)
}

// withHistory has a series where the last 7 days have as much history as a baseline needs, in steps of 5 minutes.
func withHistory(series, offset string) string {
	return promql(`
(
  count_over_time($series[7d] offset $offset)
  >= on () group_left () (12 * max($hours))
)`, names{"series": series, "offset": offset, "hours": ThresholdBaselineHours.Name})
}

// atHour is a series with the labels of Calendar.
func atHour(series string) string {
	return series + " * on () group_left (hour, daytype) " + Calendar.Name
}

// hours is the group of the values of an hour, and of the baselines.
func hours() Group {
	return Group{
		Name: "oneway-5m", Interval: 5 * time.Minute,
		Rules: slices.Concat(DelayQuantiles1h.Rules, RoundTripQuantiles1h.Rules, []Rule{
			DelayFloor1h, DelayBaseline, RoundTripBaseline, DelayFloorBaseline,
			Calendar, DelayQuantileByHour, RoundTripQuantileByHour, LossRatioByHour,
		}),
	}
}

// days is the group of the values of a day.
func days() Group {
	return Group{
		Name: "oneway-daily", Interval: time.Hour,
		Rules: slices.Concat(DelayQuantiles1d.Rules, []Rule{DelayFloor1d, DelayMax1d, LossRatio1d, RoundTripLossRatio1d}),
	}
}
