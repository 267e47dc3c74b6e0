package rules

import (
	"strings"
	"time"

	"oneway.example/exporter/core/metric"
)

// Long-term series have one sample a local hour, in the first evaluation after it, with the labels hour, day_type and zone: months and
// years are read from them, and a store may keep them alone.

// longName is the name of a long-term series.
func longName(base, operation string) string { return "oneway:long:" + base + ":" + operation }

// LongIncrease is the name of the increase of a counter or histogram in an hour.
func LongIncrease(d *metric.Desc) string { return longName(baseName(d), "increase1h") }

// RecordedWithin is the time within which an hour is recorded after its end: the evaluation of FullHour, and a margin. A query of the hours that
// end in a time reads the samples of as much later.
const RecordedWithin = 10 * time.Minute

// FullHour has a series in the first evaluation after each local full hour only.
var FullHour = Rule{
	Name: "oneway:calendar:full_hour",
	Doc: `{hour, day_type, zone} 1: the same in the first evaluation after a local full hour only, at most 5 min past it: what is joined with it is
recorded once an hour, also where the offset from UTC has half-hours.`,
	Expr: Calendar1h.Name + " and on (" + agentLabels + ") minute(" + OffsetOf.Name + " + time()) < 5",
}

// pathLabels are the labels of a light path or a probe of load tests, without its directions.
const pathLabels = agentLabels + ", path, probe"

// LongWeekday and LongMonth are the local date of the middle of each recorded hour, with the same labels and times as the other series: they
// are joined to group hours by days of the week and by calendar months.
var (
	LongWeekday = Rule{
		Name: longName("weekday", "last1h"),
		Doc:  `The day of the week (0 Sunday .. 6 Saturday) and the month (202611 is November 2026) of the hour, in local time.`,
		Expr: onceAnHour("day_of_week(" + OffsetOf.Name + " + time() - 1800)"),
	}
	LongMonth = Rule{
		Name: longName("month", "last1h"),
		Expr: onceAnHour("(100 * year(" + OffsetOf.Name + " + time() - 1800) + month(" + OffsetOf.Name + " + time() - 1800))"),
	}
)

// Unbroken has the paths, and the probes of load tests, whose counters did not restart within the last hour.
var Unbroken = Rule{
	Name: longName("counters", "resets1h"),
	Doc: `The paths and load tests that were counted through the whole hour: the increase of their counters is exact, a difference of two values.
Of others (the agent started, the path is new) it is the one that increase() extrapolates.`,
	Expr: promql(`
(
  resets($sent[65m])
  or
  sum without (result) (resets($runs[65m]))
) == 0
and on ($agent) $hour`, names{"sent": metric.PacketsSent.Name + "{" + forward + "}", "runs": metric.RunResults.Name, "agent": agentLabels, "hour": FullHour.Name}),
}

// onceAnHour is an expression with the labels of the hour, in the evaluations in which there are any.
func onceAnHour(expr string) string { return atHour(expr, FullHour, agentLabels) }

// hourly is the increase of a counter, or of a histogram, in the last hour.
func hourly(series string) string {
	return onceAnHour(promql(`
(
  $now - $before and on ($path) $unbroken
  or
  increase($series[1h])
)
`, names{"now": latest(series), "before": latestBefore(series, "1h"), "path": pathLabels, "unbroken": Unbroken.Name, "series": series}))
}

// longIncreases record the increases of counters and histograms, native ones and, where a server has no native ones, their classic buckets.
func longIncreases(doc string, of ...*metric.Desc) (all []Rule) {
	for _, d := range of {
		all = append(all, Rule{Name: LongIncrease(d), Doc: doc, Expr: hourly(d.Name)})
		doc = ""
		if d.Kind == metric.Histogram && !d.NativeOnly {
			all = append(all, Rule{
				Name: LongBuckets(d),
				Expr: hourly(d.Name+"_bucket") + "\nunless ignoring (le) " + LongIncrease(d),
			})
		}
	}
	return all
}

// LongBuckets is the name of the classic buckets of LongIncrease.
func LongBuckets(d *metric.Desc) string { return longName(baseName(d)+"_bucket", "increase1h") }

// hourPackets are the packets of the last hour, from the recorded increases of their counters.
func hourPackets() Packets {
	return Packets{
		changes: func(d *metric.Desc, matchers ...string) string {
			if len(matchers) > 0 {
				return LongIncrease(d) + "{" + strings.Join(matchers, ",") + "}"
			}
			return LongIncrease(d)
		},
		gauges: func(d *metric.Desc) string { return "(" + onceAnHour("max_over_time("+d.Name+"[1h])") + ")" },
	}
}

// Long-term series that others name.
var (
	LongOutcomes   = Rule{Name: longName("packets_outcomes", "increase1h"), Doc: `The packets received, lost or undecided, by direction: loss is lost over these, at any zoom the sum of both.`, Expr: hourPackets().Outcomes()}
	LongArrived    = Rule{Name: longName("packets_arrived", "increase1h"), Doc: `The packets that arrived, or may have: as many less the known delays have an unknown one.`, Expr: hourPackets().MayHaveArrived()}
	LongRoundTrips = Rule{Name: longName("round_trips", "increase1h"), Doc: `The packets that had a reply, or were lost there or back.`, Expr: hourPackets().RoundTrips()}
	LongMeasured   = Rule{Name: longName("measured_minutes", "count1h"), Doc: `The minutes of the hour with a scrape of the path, and the minutes with a reply: availability is the second over the first.`, Expr: onceAnHour("count_over_time(max_over_time(" + metric.ProbeUp.Name + "[1m])" + minutesOfHour + ")")}
	LongUp         = Rule{Name: longName("up_minutes", "sum1h"), Expr: onceAnHour("sum_over_time(max_over_time(" + metric.ProbeUp.Name + "[1m])" + minutesOfHour + ")")}
	// LongDelayQuantiles are the quantiles of each hour, for panels that are fast; of longer times they follow from the histograms only.
	LongDelayQuantiles = Rule{Name: longName(baseName(metric.Delay), "quantile1h"), Doc: `Quantiles of the hour, withheld where unknown delays may change them: for panels of a year. Quantiles of longer times, of hours of the day or of kinds of days follow from the sum of
the histograms, never from these.`, Expr: onceAnHour(DelayQuantiles1h.Name)}
	LongRoundTripQuantiles = Rule{Name: longName(baseName(metric.RoundTripTime), "quantile1h"), Expr: onceAnHour(RoundTripQuantiles1h.Name)}
	LongDelayMin           = Rule{Name: longName(baseName(metric.DelayMin), "min1h"), Expr: onceAnHour("min_over_time(" + metric.DelayMin.Name + "[1h])")}
	LongDelayMax           = Rule{Name: longName(baseName(metric.DelayMax), "max1h"), Expr: onceAnHour("max_over_time(" + metric.DelayMax.Name + "[1h])")}
	LongRoundTripMin       = Rule{Name: longName(baseName(metric.RoundTripTimeMin), "min1h"), Expr: onceAnHour("min_over_time(" + metric.RoundTripTimeMin.Name + "[1h])")}
	LongRoundTripMax       = Rule{Name: longName(baseName(metric.RoundTripTimeMax), "max1h"), Expr: onceAnHour("max_over_time(" + metric.RoundTripTimeMax.Name + "[1h])")}
	LongBound              = Rule{Name: longName(baseName(metric.DelayErrorBound), "max1h"), Doc: `The error bound of every delay of the hour.`, Expr: onceAnHour("max_over_time(" + metric.DelayErrorBound.Name + "[1h])")}
	LongR                  = Rule{Name: longName(baseName(metric.VoiceR), "avg1h"), Doc: `R of the hour, and the minutes in which it was below 70 and 80 (ITU-T G.109).`, Expr: onceAnHour("avg_over_time(" + metric.VoiceR.Name + "[1h])")}
	LongRMin               = Rule{Name: longName(baseName(metric.VoiceR), "min1h"), Expr: onceAnHour("min_over_time(" + metric.VoiceR.Name + "[1h])")}
	LongRBelow70           = belowR("70")
	LongRBelow80           = belowR("80")
)

// LongLast is the name of the gauge of the last run that completed in the hour.
func LongLast(d *metric.Desc) string { return longName(baseName(d), "last1h") }

func lastRun(d *metric.Desc) Rule {
	return Rule{
		Name: LongLast(d),
		Expr: onceAnHour(promql("($gauge and on ($path) $end > time() - 3600)", names{"gauge": latest(d.Name), "path": pathLabels, "end": latest(metric.RunLast.Name)})),
	}
}

// minutesOfHour is a subquery of the 60 minutes of an hour, wherever in a minute it is evaluated, in Prometheus 2 too, whose ranges have both
// ends.
const minutesOfHour = "[3599s999ms:1m]"

// belowR counts the minutes of the hour with an R below a limit; 0 where there was none.
func belowR(limit string) Rule {
	return Rule{
		Name: longName(baseName(metric.VoiceR)+"_below"+limit+"_minutes", "sum1h"),
		Expr: onceAnHour("sum_over_time((min_over_time(" + metric.VoiceR.Name + "[1m]) < bool " + limit + ")" + minutesOfHour + ")"),
	}
}

// longTerm is the group of the long-term series. It is evaluated as often as the values of an hour, after them.
func longTerm() []Rule {
	counters := longIncreases(`Counts of the hour: ratios of months and years are ratios of their sums.`,
		metric.PacketsSent, metric.PacketsLost, metric.PacketsUndecided, metric.PacketsReceived, metric.PacketsHostDropped, metric.RoundTripLost, metric.RoundTripReceived)
	histograms := longIncreases(`Delays of the hour, as a histogram: quantiles of any time, hour or kind of day follow
from the sum, such as histogram_quantile(0.95, sum(sum_over_time(...{day_type="weekday"}[30d]))).`, metric.Delay, metric.RoundTripTime)
	all := append([]Rule{FullHour, LongWeekday, LongMonth, Unbroken}, counters...)
	all = append(all, LongOutcomes, LongArrived, LongRoundTrips)
	all = append(all, histograms...)
	all = append(all, longIncreases(`Throughput of the runs that completed in the hour, one value of each run, and of the last of them.`, metric.TCPRunThroughput, metric.UDPRunThroughput)...)
	for _, d := range []*metric.Desc{metric.TCPThroughput, metric.UDPThroughput, metric.SearchMaximum, metric.PathCapacity} {
		all = append(all, lastRun(d))
	}
	return append(all,
		LongDelayQuantiles, LongRoundTripQuantiles, LongDelayMin, LongDelayMax, LongRoundTripMin, LongRoundTripMax, LongBound, LongMeasured, LongUp,
		LongR, LongRMin, LongRBelow70, LongRBelow80)
}

// HoursByDate is the sum of long-term series by a label that the local date of each hour gives, and by further labels: by, or empty. hour is the
// expression of an hour, with the labels of the hour; dates selects LongWeekday or LongMonth of the agents, whose value becomes the label, with a
// range of an hour. It joins each hour with its date, in steps of an hour of the range within: dates of more agents than hours need cost as much
// as their hours. It is the same at all steps of a subquery around it.
func HoursByDate(label, by, hour, dates, within string) string {
	const join = "job, instance, hour, day_type, zone"
	labels := label
	if by != "" {
		labels += ", " + by
	}
	return "sum by (" + labels + ") (sum_over_time((" + hour + " * on (" + join + ") group_left (" + label + ") " +
		"count_values by (" + join + `) ("` + label + `", sum_over_time(` + dates + ")) ^ 0)[" + within + ":1h] @ end()))"
}
