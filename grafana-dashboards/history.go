package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/rules"
)

// Queries of long-term series: they have one sample an hour, so that each reads them over a range. Ranges of panels over time are of
// stepRange, which is an hour or longer.
const stepRange = "[$__interval]"

// hourly is the least interval of a panel over long-term series of hours.
const hourly = "1h"

// per is 1h or, in a time range of more than longestInHours, 1d: the end of the names of long-term series of hours and of days, and the time that
// each sample is of. A year of hours has 8,760 samples in 72 series, a year of days 365 in 36.
const (
	per            = "$per"
	longestInHours = 60 * 24 * time.Hour
)

// perVariable is hidden: it follows the time range.
func perVariable() *dashboard.QueryVariableBuilder {
	query := fmt.Sprintf(`query_result(label_replace(label_replace(count_values("long", vector($__range_s > bool %.0f)), "per", "1h", "long", "0"), "per", "1d", "long", "1"))`, longestInHours.Seconds())
	return dashboard.NewQueryVariableBuilder("per").Datasource(datasource()).
		Query(dashboard.StringOrMap{Map: map[string]any{"qryType": 3, "query": query, "refId": "PrometheusVariableQueryEditor-VariableQuery"}}).
		Definition(query).Regex(`/per="(1[dh])"/`).
		Refresh(dashboard.VariableRefreshOnTimeRangeChanged).Hide(dashboard.VariableHideHideVariable)
}

// past selects the long-term series of a name, over a range.
type past struct {
	base, within string
	matchers     []string
	// offset moves the range back, such as "7d"; empty: not.
	offset string
	// days has the series of days in place of the ones of hours, per where $per is 1d.
	days bool
	per  bool
	// atEnd has the range end with the dashboard's, at each step of a subquery or of a range query.
	atEnd bool
}

// overTime is of each interval of a panel of hours or of days, overAll of the dashboard's whole range.
//
// A sample is recorded after its hour, or on the morning after its day: the range is moved to the time that it is of.
func overTime(matchers ...string) past {
	return past{base: thisPath, within: stepRange, matchers: matchers, per: true, offset: "-" + per}
}

// overHours is of each interval of a panel of hours.
func overHours(matchers ...string) past {
	return past{base: thisPath, within: stepRange, matchers: matchers}
}

func overAll(matchers ...string) past {
	return past{base: thisPath, within: dashboardRange, matchers: matchers}
}

func (p past) series(name string, more ...string) string {
	if p.days {
		name = rules.LongDay(name)
	}
	if p.per {
		name = strings.TrimSuffix(name, "1h") + per
	}
	series := recFrom(p.base, name, append(append([]string{}, more...), p.matchers...)...) + p.within
	if p.offset != "" {
		series += " offset " + p.offset
	}
	if p.atEnd {
		series += " @ end()"
	}
	return series
}

// sum adds the hours of a series by labels.
func (p past) sum(name, by string, more ...string) string {
	return "sum by (" + by + ") (sum_over_time(" + p.series(name, more...) + "))"
}

// minimum and largest are of all hours, mean weighs each hour the same.
func (p past) minimum(name, by string) string {
	return "min by (" + by + ") (min_over_time(" + p.series(name) + "))"
}

func (p past) largest(name, by string) string {
	return "max by (" + by + ") (max_over_time(" + p.series(name) + "))"
}

func (p past) mean(name, by string) string {
	return p.sum(name, by) + " / sum by (" + by + ") (count_over_time(" + p.series(name) + "))"
}

// counts is the histogram of all hours, a native one.
func (p past) counts(d *metric.Desc, by string, more ...string) string {
	return p.sum(rules.LongIncrease(d), by, more...)
}

// quantile is a quantile of the values of all hours, by labels: of the sum of their histograms.
func (p past) quantile(q string, d *metric.Desc, by string) string {
	return nativeOrClassic(d, p.counts(d, by), p.sum(rules.LongBuckets(d), by+", le"), func(histogram string) string { return "histogram_quantile(" + q + ", " + histogram + ")" })
}

// nativeOrClassic applies of to the native histogram and, where there is none, to the classic buckets.
func nativeOrClassic(d *metric.Desc, native, classic string, of func(histogram string) string) string {
	if d.NativeOnly {
		return of(native)
	}
	return of(native) + " or " + of(classic)
}

// loss is the share of the packets that were lost.
func (p past) loss(by string) string {
	return p.sum(rules.LongIncrease(metric.PacketsLost), by) + " / (" + p.sum(rules.LongOutcomes.Name, by) + " > 0)"
}

// highestLoss is the share if all packets without an outcome were lost, where there are any.
func (p past) highestLoss() string {
	lost, undecided := p.sum(rules.LongIncrease(metric.PacketsLost), metric.Direction), p.withUnheard(rules.LongIncrease(metric.PacketsUndecided))
	return "(" + lost + " + " + undecided + ") / (" + p.withUnheard(rules.LongOutcomes.Name) + " > 0) and " + undecided + " > 0"
}

// withUnheard adds a series by direction and, in reverse, the packets that are undecided forward: they may have reached the reflector, and their
// replies be lost.
func (p past) withUnheard(name string) string {
	unheard := "sum_over_time(" + p.series(rules.LongIncrease(metric.PacketsUndecided), metric.Direction+`="forward"`) + ")"
	for _, l := range []string{metric.Direction + `", "reverse`, `undecided", "forward`} {
		unheard = `label_replace(` + unheard + `, "` + l + `", "", "")`
	}
	return "sum by (" + metric.Direction + ") (sum_over_time(" + p.series(name) + ") or " + unheard + ")"
}

// availability is the share of the measured minutes that had a reply.
func (p past) availability(by string) string {
	return p.sum(rules.LongUp.Name, by) + " / (" + p.sum(rules.LongMeasured.Name, by) + " > 0)"
}

// agentsOfPath selects the agents that measure the path: a query that reads the dates of all agents in each hour of a year takes a minute with
// a hundred agents.
const agentsOfPath = `job=~"$job",instance=~"$agent"`

// agentVariable has the agents of the path; it is hidden.
func agentVariable(from string) *dashboard.QueryVariableBuilder {
	return labelValues("instance", "", from+"{"+thisAgent+`,path="$path"}`).Name("agent").IncludeAll(true).Multi(true).Current(all()).Hide(dashboard.VariableHideHideVariable)
}

// byWeekday adds the hours of the dashboard's range by the day of the week and the hour of the day, in local time.
func byWeekday(name string, matchers ...string) string {
	return rules.HoursByDate("weekday", "hour", "sum_over_time("+recFrom(thisPath, name, matchers...)+"[1h])", recFrom(agentsOfPath, rules.LongWeekday.Name)+"[1h]", "$__range")
}
