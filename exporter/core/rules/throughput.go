package rules

import (
	"fmt"
	"time"

	"oneway.example/exporter/core/metric"
)

// splitTCPVerdictLast is a constant because the rule uses its own last value.
const splitTCPVerdictLast = "oneway:tcp_split_detected:last"

// verdictDays is how long the last verdict about split TCP is kept without the agent.
const verdictDays = 7

func verdictRange() string { return fmt.Sprintf("%dd", verdictDays) }

// recentHours is the time whose runs are compared with a baseline, which leaves it out.
const recentHours = 2

func recentRange() string { return fmt.Sprintf("%dh", recentHours) }

func recentWords() string { return fmt.Sprintf("%d hours", recentHours) }

// ofRecent is a statistic of the runs in that time, as a part of a name.
func ofRecent(statistic string) string { return statistic + recentRange() }

// Throughput and capacity with their baselines, and the verdict about split TCP.
var (
	CapacityMedian = Rule{
		Name: "oneway:capacity_bytes_per_second:median",
		Doc: `The one value of a direction, as in the terminal and the report, while the last completed run is current: a run that later
ones do not replace has no more weight than others.`,
		Expr: unlessUnscraped(metric.PathCapacity.Name) + " and on (job, instance, path, probe) " + recentRun(),
	}
	UDPThroughputMedian = Rule{
		Name: recorded(metric.UDPThroughput, ofRecent("median")),
		Doc: `Of the last ` + recentWords() + `, without the minutes in which the last completed run was older than one and a
half intervals: its value is not one of these hours.`,
		Expr: medianOfRuns(metric.UDPThroughput.Name) + "\nor\n" + medianOfRuns(metric.SearchMaximum.Name),
	}
	TCPThroughputMedian = Rule{
		Name: recorded(metric.TCPThroughput, ofRecent("median")),
		Expr: medianOfRuns(metric.TCPThroughput.Name),
	}
	CapacityMedian2h = Rule{
		Name: recorded(metric.Capacity, ofRecent("median")),
		Expr: medianOfRuns(metric.PathCapacity.Name),
	}
	UDPThroughputByHour = Rule{
		Name: byHour(metric.UDPThroughput, ofRecent("median")),
		Doc:  `By hour and kind of day: see the calendars in oneway-baselines.yml.`,
		Expr: atHour(UDPThroughputMedian.Name, Calendar2h, agentLabels),
	}
	TCPThroughputByHour = Rule{
		Name: byHour(metric.TCPThroughput, ofRecent("median")),
		Expr: atHour(TCPThroughputMedian.Name, Calendar2h, agentLabels),
	}
	CapacityByHour = Rule{
		Name: byHour(metric.Capacity, "median"),
		Expr: atHour(CapacityMedian.Name, CalendarOfRun, pathLabels),
	}
	UDPThroughputBaseline = Rule{
		Name: recorded(metric.UDPThroughput, baseline()),
		Doc: `Throughput depends on other traffic: its baseline is of the same hours of the last
` + daysOfBaseline() + `, weekdays and weekends separately; with less than an hour of those there is none.
Capacity is a property of the link; its baseline is of all hours. Both exclude the last ` + recentWords() + `
and begin with as much history as the baseline of delays (12 steps an hour).`,
		Expr: sameHours(UDPThroughputByHour.Name),
	}
	TCPThroughputBaseline = Rule{
		Name: recorded(metric.TCPThroughput, baseline()),
		Expr: sameHours(TCPThroughputByHour.Name),
	}
	CapacityBaseline = Rule{
		Name: recorded(metric.Capacity, baseline()),
		Expr: medianOfDays(CapacityMedian.Name, "", recentRange()),
	}
	SplitTCPVerdictChanged = Rule{
		Name: "oneway:tcp_split_detected:changed",
		Doc: `Split TCP: the verdict of a run, where it differs from the last one before it: in the
evaluation after that run only. It precedes the rule that keeps the verdict.`,
		Expr: unlessUnscraped(metric.TCPSplit.Name) + " != last_over_time(" + splitTCPVerdictLast + "[" + verdictRange() + "])",
	}
	SplitTCPVerdictLast = Rule{
		Name: splitTCPVerdictLast,
		Doc: `The last verdict of a probe that exists: runs that cannot tell keep it, however many
they are, and so does a week without the agent or without this rule.`,
		Expr: promql(`
$tcpSplit
or
(
  last_over_time($splitTCPVerdictLast[$kept])
  and on (job, instance, path, probe) $runInterval
)`, names{
			"tcpSplit":            unlessUnscraped(metric.TCPSplit.Name),
			"kept":                verdictRange(),
			"splitTCPVerdictLast": splitTCPVerdictLast,
			"runInterval":         latest(metric.RunInterval.Name),
		}),
	}
)

// throughput is the group of these rules.
func throughput() Group {
	return Group{
		Name: "oneway-load-test-baselines", Interval: 5 * time.Minute,
		Rules: []Rule{
			CapacityMedian, UDPThroughputMedian, TCPThroughputMedian, CapacityMedian2h, OffsetOf2h, HolidayOf2h, Calendar2h, CalendarOfRun,
			UDPThroughputByHour, TCPThroughputByHour, CapacityByHour,
			UDPThroughputBaseline, TCPThroughputBaseline, CapacityBaseline,
			SplitTCPVerdictChanged, SplitTCPVerdictLast,
		},
	}
}

// medianOfRuns is the median over the last hours of a gauge of runs, while it is current.
func medianOfRuns(gauge string) string {
	return promql("quantile_over_time(0.5, ($gauge and on (job, instance, path, probe) $recentRun)[$recent:1m])", names{
		"gauge": unlessUnscraped(gauge), "recentRun": recentRun(), "recent": recentRange(),
	})
}

// sameHours is the median of the days of a baseline at this hour of this kind of day: byHour is the series by hour of the day. Its history
// begins with the runs: hours without one count.
func sameHours(byHour string) string {
	return promql(`
sum without (hour, day_type, zone) (
  quantile_over_time(0.5, $byHour[$days] offset $recent)
  and on ($agent, hour, day_type) $calendar
  and count_over_time($byHour[$days] offset $recent) >= 12
)
and on ($agent, path, probe)
(
  sum without (hour, day_type, zone) (count_over_time($calendarOfRun[$days] offset $recent))
  >= on () group_left () (12 * max($hours))
)`, names{
		"byHour": byHour, "days": baselineRange(), "agent": agentLabels, "calendar": Calendar2h.Name, "recent": recentRange(),
		"calendarOfRun": CalendarOfRun.Name, "hours": ThresholdBaselineHours.Name,
	})
}
