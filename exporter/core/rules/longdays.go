package rules

import (
	"strings"
	"time"

	"oneway.example/exporter/core/metric"
)

// The long-term series of days have one sample a local day: the hours of the day together, without the label hour, with the label month. Pages
// of a year read 365 samples in place of 8,760 in 72 series.

// LongDay is the name of the series of days of a long-term series of hours.
func LongDay(hourly string) string { return strings.TrimSuffix(hourly, "1h") + "1d" }

// WholeDay is the last local day that is over.
var WholeDay = Rule{
	Name: "oneway:calendar:whole_day",
	Doc: `The number of the last local day that is over, from 6:10 of the next day on; 0 is 1970-01-01. In every zone with daylight saving time
6:10 to 7:10 is on one side of 0:00 UTC through the year, so that each day of UTC has the record of one local day. An agent that is off has
its last offset from UTC until that time of the next day, and one that moved the zone in which the day ends later.`,
	Expr: promql(`floor((min by ($agent) (last_over_time($offset[33h])) + time() - 22200) / 86400) - 1`, names{"agent": agentLabels, "offset": metric.UTCOffset.Name}),
}

// DayOver has the agents with a day to record.
var DayOver = Rule{
	Name: "oneway:calendar:day_over",
	Doc: `{month="2026-11"} the day of the week (0 Sunday .. 6 Saturday) of a local day that is over and was not recorded so far. Where Prometheus
was off it is recorded later, until 6:10 of the day after the next.`,
	Expr: promql(`
label_replace(count_values by ($agent) ("month", 100 * year($new) + month($new)), "month", "$1-$2", "month", "(....)(..)") ^ 0
* on ($agent) group_left () day_of_week($new)`, names{
		"agent": agentLabels, "new": "86400 * (" + WholeDay.Name + " > max_over_time(" + WholeDay.Name + "[1w] offset 10m))",
	}),
}

// stepOfHour is a range that has each sample in one step of an hour, in Prometheus 2 too, whose ranges have both ends.
const stepOfHour = "3599s999ms"

// ofDay is the day of a long-term series of hours.
func ofDay(hourly string) Rule {
	operation := strings.TrimSuffix(hourly[strings.LastIndex(hourly, ":")+1:], "1h")
	if operation == "increase" || operation == "count" {
		operation = "sum"
	}
	return Rule{
		Name: LongDay(hourly),
		Expr: promql(`
$operation without (hour) (${operation}_over_time((
  last_over_time($hourly[$hour])
  and on ($agent, hour, day_type, zone)
  (last_over_time($weekday[$hour]) == on ($agent) group_left () last_over_time($day[10m] @ end()))
)[55h:1h]))
* on ($agent) group_left (month) $day ^ 0`, names{"operation": operation, "hourly": hourly, "weekday": LongWeekday.Name, "day": DayOver.Name, "agent": agentLabels, "hour": stepOfHour}),
	}
}

// longDays is the group of the long-term series of days.
func longDays() Group {
	rules := []Rule{WholeDay, DayOver}
	for _, hourly := range []string{
		LongIncrease(metric.PacketsLost), LongIncrease(metric.PacketsUndecided), LongOutcomes.Name,
		LongIncrease(metric.Delay), LongBuckets(metric.Delay), LongIncrease(metric.RoundTripTime), LongBuckets(metric.RoundTripTime),
		LongDelayMin.Name, LongRoundTripMin.Name, LongRoundTripMax.Name, LongBound.Name, LongMeasured.Name, LongUp.Name,
		LongR.Name, LongRMin.Name, LongRBelow70.Name, LongRBelow80.Name,
	} {
		rules = append(rules, ofDay(hourly))
	}
	rules[2].Doc = `The hours of a local day together, of 23 to 25 hours, with the label month.`
	return Group{Name: "oneway-days", Interval: time.Hour, Rules: rules}
}
