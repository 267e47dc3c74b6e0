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
		Doc:  `The one value of a direction, as in the terminal and the report.`,
		Expr: metric.PathCapacity.Name,
	}
	UDPThroughputMedian = Rule{
		Name: recorded(metric.UDPThroughput, ofRecent("median")),
		Expr: promql(`
quantile_over_time(0.5, $udpThroughput[$recent])
or quantile_over_time(0.5, $searchMaximum[$recent])`, names{
			"recent":        recentRange(),
			"udpThroughput": metric.UDPThroughput.Name,
			"searchMaximum": metric.SearchMaximum.Name,
		}),
	}
	TCPThroughputMedian = Rule{
		Name: recorded(metric.TCPThroughput, ofRecent("median")),
		Expr: "quantile_over_time(0.5, " + metric.TCPThroughput.Name + "[" + recentRange() + "])",
	}
	CapacityMedian2h = Rule{
		Name: recorded(metric.Capacity, ofRecent("median")),
		Expr: "quantile_over_time(0.5, " + CapacityMedian.Name + "[" + recentRange() + "])",
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
		Expr: atHour(CapacityMedian.Name, CalendarOfRun, agentLabels+", path, probe"),
	}
	UDPThroughputBaseline = Rule{
		Name: recorded(metric.UDPThroughput, baseline()),
		Doc: `Throughput depends on other traffic: its baseline is of the same hours of the last
` + daysOfBaseline() + `, weekdays and weekends separately; with less than an hour of those there is none.
Capacity is a property of the link; its baseline is of all hours. Both exclude the last ` + recentWords() + `
and begin with as much history as the baseline of delays (12 steps an hour).`,
		Expr: sameHours(UDPThroughputByHour.Name, UDPThroughputMedian.Name),
	}
	TCPThroughputBaseline = Rule{
		Name: recorded(metric.TCPThroughput, baseline()),
		Expr: sameHours(TCPThroughputByHour.Name, TCPThroughputMedian.Name),
	}
	CapacityBaseline = Rule{
		Name: recorded(metric.Capacity, baseline()),
		Expr: medianOfDays(CapacityMedian.Name, "", recentRange()),
	}
	SplitTCPVerdictChanged = Rule{
		Name: "oneway:tcp_split_detected:changed",
		Doc: `Split TCP: the verdict of a run, where it differs from the last one before it: in the
evaluation after that run only. It precedes the rule that keeps the verdict.`,
		Expr: metric.TCPSplit.Name + " != last_over_time(" + splitTCPVerdictLast + "[" + verdictRange() + "])",
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
			"tcpSplit":            metric.TCPSplit.Name,
			"kept":                verdictRange(),
			"splitTCPVerdictLast": splitTCPVerdictLast,
			"runInterval":         metric.RunInterval.Name,
		}),
	}
)

// throughput is the group of these rules.
func throughput() Group {
	return Group{
		Name: "oneway-load-test-baselines", Interval: 5 * time.Minute,
		Rules: []Rule{
			CapacityMedian, UDPThroughputMedian, TCPThroughputMedian, CapacityMedian2h, Calendar2h, CalendarOfRun,
			UDPThroughputByHour, TCPThroughputByHour, CapacityByHour,
			UDPThroughputBaseline, TCPThroughputBaseline, CapacityBaseline,
			SplitTCPVerdictChanged, SplitTCPVerdictLast,
		},
	}
}

// sameHours is the median of the days of a baseline at this hour of this kind of day: byHour is the series by hour of the day.
func sameHours(byHour, series string) string {
	return promql(`
sum without (hour, daytype) (
  quantile_over_time(0.5, $byHour[$days] offset $recent)
  and on ($agent, hour, daytype) $calendar
  and count_over_time($byHour[$days] offset $recent) >= 12
)
and
$withHistory`, names{"byHour": byHour, "days": baselineRange(), "agent": agentLabels, "calendar": Calendar2h.Name, "withHistory": withHistory(series, recentRange()), "recent": recentRange()})
}
