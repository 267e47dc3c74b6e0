package rules

import (
	"fmt"
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
		Name: recorded(metric.Delay, "quantile_"+baseline()),
		Doc: `Baselines: the median of the hours of the last ` + daysOfBaseline() + `, the current
hour excluded, so that a fault does not become its own baseline at once.
Before ` + daysOfBaseline() + `: of the hours that exist, from baseline_hours on (12 steps of
5 min each); before that there is none, and its alerts do not fire.`,
		Expr: medianOfDays(DelayQuantiles1h.Name, `{quantile_rank="0.95"}`, "1h"),
	}
	RoundTripBaseline = Rule{
		Name: recorded(metric.RoundTripTime, "quantile_"+baseline()),
		Expr: medianOfDays(RoundTripQuantiles1h.Name, `{quantile_rank="0.95"}`, "1h"),
	}
	DelayFloorBaseline = Rule{Name: recorded(metric.DelayMin, baseline()), Expr: medianOfDays(DelayFloor1h.Name, "", "1h")}
	// Calendar1h and Calendar2h belong to values of an hour and of two hours, CalendarOfRun to values of the last run of a load test.
	Calendar1h          = calendarOfWindow(1, "the middle of the last hour")
	Calendar2h          = calendarOfWindow(recentHours, "the middle of the last "+recentWords())
	CalendarOfRun       = calendar("run", "the last completed run of the probe", latest(metric.RunLast.Name)+" + "+latest(metric.RunUTCOffset.Name), agentLabels+", path, probe")
	DelayQuantileByHour = Rule{
		Name: byHour(metric.Delay, "quantile1h"),
		Doc: `Weekday against weekend by hour (WPI 2006, figures 8..13): read them with
avg_over_time(...[30d]) or quantile_over_time.`,
		Expr: atHour(DelayQuantiles1h.Name, Calendar1h, agentLabels),
	}
	RoundTripQuantileByHour = Rule{Name: byHour(metric.RoundTripTime, "quantile1h"), Expr: atHour(RoundTripQuantiles1h.Name, Calendar1h, agentLabels)}
	LossRatioByHour         = Rule{Name: byHour(metric.PacketsLost, "ratio1h"), Expr: atHour(LossRatio1h.Name, Calendar1h, agentLabels)}
	DelayFloor1d            = Rule{
		Name: "oneway:delay_min_seconds:min1d",
		Expr: "min_over_time(" + metric.DelayMin.Name + "[1d])",
	}
	DelayMax1d = Rule{
		Name: "oneway:delay_max_seconds:max1d",
		Expr: "max_over_time(" + metric.DelayMax.Name + "[1d])",
	}
)

// BaselineDays is the number of days that a baseline is the median of.
const BaselineDays = 7

func baselineRange() string { return fmt.Sprintf("%dd", BaselineDays) }

// baseline is the operation in the name of a baseline.
func baseline() string { return "baseline" + baselineRange() }

func daysOfBaseline() string { return fmt.Sprintf("%d days", BaselineDays) }

// medianOfDays is the median of a recorded series over the days of a baseline without the last hours, with the history that a baseline needs.
func medianOfDays(series, selector, offset string) string {
	return promql("\nquantile_over_time(0.5, $series[$days] offset $offset)\nand\n", names{"series": series + selector, "offset": offset, "days": baselineRange()}) + "\n" +
		withHistory(series+selector, offset)
}

// withHistory has a series where the days of a baseline have as much history as a baseline needs, in steps of 5 minutes.
func withHistory(series, offset string) string {
	return promql(`
(
  count_over_time($series[$days] offset $offset)
  >= on () group_left () (12 * max($hours))
)`, names{"series": series, "offset": offset, "days": baselineRange(), "hours": ThresholdBaselineHours.Name})
}

// agentLabels are the labels of an agent.
const agentLabels = "job, instance"

// calendar is the hour and the kind of day of a value: when the middle of its window was, so that most of its packets are of that hour.
// instant is that time in Unix seconds plus the agent's offset from UTC then, by the labels by: PromQL knows no zones.
func calendar(name, doc, instant, by string) Rule {
	return Rule{
		Name: "oneway:calendar:" + name,
		Doc:  `{hour="0".."23", daytype="weekday"|"weekend"} 1: ` + doc + `, in the local time of the agent.`,
		Expr: promql(`
count_values by ($by) ("hour", hour($instant))
* on ($by) group_left (daytype)
(
  label_replace(day_of_week($instant) % 6 > 0, "daytype", "weekday", "", "")
  or
  label_replace(day_of_week($instant) % 6 == 0, "daytype", "weekend", "", "")
) ^ 0`, names{"by": by, "instant": instant}),
	}
}

// calendarOfWindow is the calendar of the middle of the last hours, by the agent's offset from UTC then: daylight saving time may have
// changed it since. There is none if the agent was not scraped then, or in the minute before: what its window has is of another hour.
func calendarOfWindow(hours int, doc string) Rule {
	return calendar(fmt.Sprintf("window%dh", hours), doc+", where it was scraped then", fmt.Sprintf("last_over_time(%s[1m] offset %dm) + time() - %d", metric.UTCOffset.Name, 30*hours, 1800*hours), agentLabels)
}

// atHour is a series with the labels of a calendar by the labels by.
func atHour(series string, of Rule, by string) string {
	return series + " * on (" + by + ") group_left (hour, daytype) " + of.Name
}

// hours is the group of the values of an hour, and of the baselines.
func hours() Group {
	return Group{
		Name: "oneway-5m", Interval: 5 * time.Minute,
		Rules: slices.Concat(DelayQuantiles1h.Rules, RoundTripQuantiles1h.Rules, []Rule{
			DelayFloor1h, DelayBaseline, RoundTripBaseline, DelayFloorBaseline,
			Calendar1h, DelayQuantileByHour, RoundTripQuantileByHour, LossRatioByHour,
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
