package rules

import (
	"fmt"
	"strings"
	"time"

	"oneway.example/exporter/core/metric"
)

// noHour drops the labels of an hour: sums over hours have the labels of the path and of its target.
const noHour = "without (hour, day_type, zone)"

// The weeks that are compared: the last one, the four before it, and all of them, as durations of Prometheus and InfluxQL.
const (
	lastWeek    = "7d"
	weeksBefore = "28d"
	AllWeeks    = "35d"
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

// busyHourNow is p95 of the last week, by hour of the day and kind of day.
var busyHourNow = longQuantile("0.95", "without (zone)", "without (zone)", lastWeek+"]")

// mostOfAKind is the number of days of a week, which may all be of one kind.
const mostOfAKind = 7

// secondLargest is the second largest value in a time, of series with two to seven values in it; of more values a smaller one. A quantile over
// time has one rank for all series: there is one for each number of values.
func secondLargest(series, within string) string {
	var terms []string
	for n := 2; n <= mostOfAKind; n++ {
		count := "=="
		if n == mostOfAKind {
			count = ">="
		}
		terms = append(terms, fmt.Sprintf("quantile_over_time(%d / %d, %s[%s]) and count_over_time(%s[%s]) %s %d", n-2, n-1, series, within, series, within, count, n))
	}
	return strings.Join(terms, "\n      or ")
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
	// BusyHourBefore has the hours that BusyHourExcess may have: their histograms are read once.
	BusyHourBefore = Rule{
		Name: longName(baseName(metric.Delay), "hour_quantile28d_before"), Labels: p95.label(),
		Doc: `By hour of the day and kind of day: p95 of the 28 days before the last 7, where p95 of the same hours of the last 7 days is longer
by the ratio oneway:threshold:busy_hour_ratio and by more than both error bounds. Each needs two such hours in the week and four before.`,
		Expr: promql(`
(
  $before
  < $now / on () group_left () max($ratio)
  < $now - ignoring (hour, day_type) group_left () ($bound + $boundBefore)
)
and on ($path, hour, day_type) sum without (zone, direction) (count_over_time($sent[$week])) >= 2
and on ($path, hour, day_type) sum without (zone, direction) (count_over_time($sent[$weeks] offset $week)) >= 4`, names{
			"now": busyHourNow, "before": longQuantile("0.95", "without (zone)", "without (zone)", weeksBefore+"] offset "+lastWeek),
			"bound": Bound7d.Name, "boundBefore": Bound28d.Name, "ratio": ThresholdBusyHourRatio.Name,
			"sent": LongIncrease(metric.PacketsSent) + "{" + forward + "}", "path": pathLabels, "week": lastWeek, "weeks": weeksBefore,
		}),
	}
	BusyHourRise = Rule{
		Name: longName(baseName(metric.Delay), "hour_rise7d"), Labels: p95.label(),
		Doc: `... by how much, where it is more than oneway:threshold:busy_hour_seconds.`,
		Expr: promql(`
$now - ignoring (quantile_rank) $before
> on (path) group_left () $seconds`, names{"now": busyHourNow, "before": BusyHourBefore.Name, "seconds": ThresholdBusyHourSeconds.ByPath.Name}),
	}
	BusyHourExcess = Rule{
		Name: longName(baseName(metric.Delay), "hour_excess7d"),
		Doc: `... of those where p95 of at least two single hours of the week is longer as well (or the median, which is at most p95, where p95 is withheld): a quarter of an hour is 12 % of the two hours of a weekend, and
5 % of the five hours of weekdays. Where more than half of the hours of such days have risen, the path has, such as by another route: no hour of the day has an excess.`,
		Expr: promql(`
$rise
and ignoring (quantile_rank) (
  (
    max without (zone, quantile_rank) ($second)
    - ignoring (quantile_rank) $before
  )
  > ignoring (hour, day_type, quantile_rank) group_left () ($bound + $boundBefore)
  > on (path) group_left () $seconds
  > ignoring (quantile_rank) $before * on () group_left () (max($ratio) - 1)
)
unless ignoring (hour) count without (hour) ($rise) > 12`, names{
			"rise": BusyHourRise.Name, "before": BusyHourBefore.Name, "second": secondLargest(LongDelayQuantiles.Name+`{quantile_rank=~"0.5|0.95"}`, lastWeek),
			"bound": Bound7d.Name, "boundBefore": Bound28d.Name, "ratio": ThresholdBusyHourRatio.Name, "seconds": ThresholdBusyHourSeconds.ByPath.Name,
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
		Rules: []Rule{DelayMedian7d, DelayMedian28d, Bound7d, Bound28d, BusyHourBefore, BusyHourRise, BusyHourExcess, HoursRatio7d},
	}
}
