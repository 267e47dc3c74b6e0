package rules

import (
	"time"

	"oneway.example/exporter/core/metric"
)

// noHour drops the labels of an hour: sums over hours have the labels of the path and of its target.
const noHour = "without (hour, day_type, zone)"

// The weeks that are compared: the last one, and four before it.
const (
	lastWeek    = "7d"
	weeksBefore = "28d"
)

// longQuantile is a quantile of the delays of many hours, with or without their labels.
func longQuantile(q, grouping, buckets, within string) string {
	return promql(`
(
  histogram_quantile($q, sum $grouping (sum_over_time($native[$within)))
  or
  histogram_quantile($q, sum $buckets (sum_over_time($classic[$within)))
)`, names{"q": q, "grouping": grouping, "buckets": buckets, "native": LongIncrease(metric.Delay), "classic": LongBuckets(metric.Delay), "within": within})
}

// Delays of the last week and of the four weeks before it.
var (
	DelayMedian7d = Rule{
		Name: longName(baseName(metric.Delay), "quantile7d"), Labels: p50.label(),
		Doc:  `The median delay of the last 7 days and of the 28 days before them, and the largest error bounds in them.`,
		Expr: longQuantile("0.5", noHour, noHour, lastWeek+"]"),
	}
	DelayMedian28d = Rule{Name: longName(baseName(metric.Delay), "quantile28d_before"), Labels: p50.label(), Expr: longQuantile("0.5", noHour, noHour, weeksBefore+"] offset "+lastWeek)}
	Bound7d        = Rule{Name: longName(baseName(metric.DelayErrorBound), "max7d"), Expr: "max " + noHour + " (max_over_time(" + LongBound.Name + "[" + lastWeek + "]))"}
	Bound28d       = Rule{Name: longName(baseName(metric.DelayErrorBound), "max28d_before"), Expr: "max " + noHour + " (max_over_time(" + LongBound.Name + "[" + weeksBefore + "] offset " + lastWeek + "))"}
	BusyHourExcess = Rule{
		Name: longName(baseName(metric.Delay), "hour_excess7d"), Labels: p95.label(),
		Doc: `By hour of the day and kind of day: p95 of the last 7 days over p95 of the same hours of the 28 days before them, where it is longer
by the ratio oneway:threshold:busy_hour_ratio and by more than both error bounds. Each needs two such hours in the week and four before.`,
		Expr: promql(`
(
  $now
  - $before
  > ignoring (hour, day_type) group_left () ($bound + $boundBefore)
)
and $now > $before * on () group_left () max($ratio)
and on ($path, hour, day_type) sum without (zone, direction) (count_over_time($sent[$week])) >= 2
and on ($path, hour, day_type) sum without (zone, direction) (count_over_time($sent[$weeks] offset $week)) >= 4`, names{
			"now": longQuantile("0.95", "without (zone)", "without (zone)", lastWeek+"]"), "before": longQuantile("0.95", "without (zone)", "without (zone)", weeksBefore+"] offset "+lastWeek),
			"bound": Bound7d.Name, "boundBefore": Bound28d.Name, "ratio": ThresholdBusyHourRatio.Name,
			"sent": LongIncrease(metric.PacketsSent) + "{" + forward + "}", "path": pathLabels, "week": lastWeek, "weeks": weeksBefore,
		}),
	}
	HoursRatio7d = Rule{
		Name: longName("hours", "ratio7d"),
		Doc:  `The share of the hours of the last 7 days that were recorded, of paths that were measured before.`,
		Expr: promql(`
sum $noHour (count_over_time($sent[$week])) / 168
and
sum $noHour (count_over_time($sent[1d] offset $week))`, names{"noHour": noHour, "sent": LongIncrease(metric.PacketsSent) + "{" + forward + "}", "week": lastWeek}),
	}
)

// trends is the group of the values of weeks.
func trends() Group {
	return Group{
		Name: "oneway-trends", Interval: time.Hour,
		Rules: []Rule{DelayMedian7d, DelayMedian28d, Bound7d, Bound28d, BusyHourExcess, HoursRatio7d},
	}
}
