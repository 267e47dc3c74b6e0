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
	Calendar1h    = calendarOfWindow(1, "the middle of the last hour", OffsetOf, HolidayOf)
	Calendar2h    = calendarOfWindow(recentHours, "the middle of the last "+recentWords(), OffsetOf2h, HolidayOf2h)
	CalendarOfRun = calendar("run", "the last completed run of the probe", latest(metric.RunLast.Name)+" + "+latest(metric.RunUTCOffset.Name), latest(metric.RunHoliday.Name), pathLabels, "")
	DelayFloor1d  = Rule{
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
// instant is that time in Unix seconds plus the agent's offset from UTC then, by the labels by: PromQL knows no zones. holiday is above 0 on
// a holiday. zone is a further label of instant, or empty.
func calendar(name, doc, instant, holiday, by, zone string) Rule {
	return Rule{
		Name: "oneway:calendar:" + name,
		Doc:  `{hour="0".."23", day_type="weekday"|"weekend"|"holiday"} 1: ` + doc + `, in the local time of the agent.`,
		Expr: promql(`
count_values by ($by$zone) ("hour", hour($instant))
* on ($by) group_left (day_type)
(
  label_replace($holiday > 0, "day_type", "holiday", "", "")
  or on ($by)
  label_replace(day_of_week($instant) % 6 > 0, "day_type", "weekday", "", "")
  or on ($by)
  label_replace(day_of_week($instant) % 6 == 0, "day_type", "weekend", "", "")
) ^ 0`, names{"by": by, "zone": zone, "instant": instant, "holiday": holiday}),
	}
}

// atMiddle records a gauge of an agent in the middle of the last hours, one series of each agent.
func atMiddle(d *metric.Desc, hours int, doc string) Rule {
	return Rule{
		Name: fmt.Sprintf("oneway:calendar:%s%dh", baseName(d), hours), Doc: doc,
		Expr: promql(`
last_over_time($gauge[1m] offset $middle) and $gauge offset $middle
or on ($agent)
topk by ($agent) (1, last_over_time($gauge[1m] offset $middle))`, names{"gauge": d.Name, "agent": agentLabels, "middle": fmt.Sprintf("%dm", 30*hours)}),
	}
}

// OffsetOf and HolidayOf are the local time of an agent in the middle of the last hour, OffsetOf2h and HolidayOf2h of the last two.
var (
	OffsetOf = atMiddle(metric.UTCOffset, 1, `The offset from UTC, and whether it was a holiday, in the middle of the last hour: daylight saving time may have
changed since. There is none if the agent was not scraped then, or in the minute before: what its window has
is of another hour. Where its zone changed in that minute, it is the later one.`)
	HolidayOf   = atMiddle(metric.Holiday, 1, "")
	OffsetOf2h  = atMiddle(metric.UTCOffset, recentHours, "The same in the middle of the last "+recentWords()+": see oneway-baselines.yml.")
	HolidayOf2h = atMiddle(metric.Holiday, recentHours, "")
)

// calendarOfWindow is the calendar of the middle of the last hours, by the agent's offset from UTC then.
func calendarOfWindow(hours int, doc string, offset, holiday Rule) Rule {
	return calendar(fmt.Sprintf("window%dh", hours), doc+", where it was scraped then", offset.Name+fmt.Sprintf(" + time() - %d", 1800*hours), holiday.Name, agentLabels, ", "+metric.Zone)
}

// atHour is a series with the labels of a calendar by the labels by.
func atHour(series string, of Rule, by string) string {
	return series + " * on (" + by + ") group_left (hour, day_type, zone) " + of.Name
}

// hours is the group of the values of an hour, and of the baselines.
func hours() Group {
	return Group{
		Name: "oneway-5m", Interval: 5 * time.Minute,
		Rules: slices.Concat(DelayQuantiles1h.Rules, RoundTripQuantiles1h.Rules, []Rule{
			DelayFloor1h, DelayBaseline, RoundTripBaseline, DelayFloorBaseline,
			OffsetOf, HolidayOf, Calendar1h,
		}, longTerm()),
	}
}

// days is the group of the values of a day.
func days() Group {
	return Group{
		Name: "oneway-daily", Interval: time.Hour,
		Rules: slices.Concat(DelayQuantiles1d.Rules, []Rule{DelayFloor1d, DelayMax1d, LossRatio1d, RoundTripLossRatio1d}),
	}
}
