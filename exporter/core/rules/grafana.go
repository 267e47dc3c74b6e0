package rules

import (
	"fmt"
	"strings"

	"oneway.example/exporter/core/hourrow"
	"oneway.example/exporter/core/metric"
)

// GrafanaAlert is an alert that Grafana evaluates over InfluxDB 1.8, or over 2 and 3 by InfluxQL: for sites without Prometheus.
type GrafanaAlert struct {
	// Rule is the alert of Prometheus with the same meaning. It gives name, severity, waiting times and summary.
	Rule Rule
	// Doc is the comment above the alert in its file: where the two differ.
	Doc string
	// Queries are the statements; each result is reduced to its last value, which Math has under the same name.
	Queries []GrafanaQuery
	// Value is an expression of Grafana whose result is the value of the alert, and Math the condition; both are of Queries.
	Value, Math string
	// Description has $values.Value.Value in place of $value, and the values of queries in place of lookups.
	Description string
}

// GrafanaQuery is a statement of InfluxQL with one column, grouped by the labels of its series.
type GrafanaQuery struct {
	// Name is the refId of the reduced value.
	Name, Statement string
}

// Tags of the series: Grafana has them as labels. host is the tag of the agent that the output influxdb adds by default.
const (
	grafanaPath = `"host", "path", "probe", "direction"`
	grafanaHour = grafanaPath + `, "` + metric.DayTypeL + `", "` + metric.LocalHourL + `"`
)

// weeks are the two times that alerts of weeks compare.
const (
	thisWeek   = "time >= now() - " + lastWeek + " AND time < now()"
	fourBefore = "time >= now() - " + AllWeeks + " AND time < now() - " + lastWeek
)

// influxQuantile is a quantile of delays from the sums of their buckets, interpolated in its bucket as histogram_quantile does: the sum of the widths
// of all buckets, each times the share of it that is below the quantile. InfluxQL divides by zero to 0, and has no conditions: the share
// of a bucket with b values, where a of them are below the quantile, is (|a| - |a-b| + b) / 2b, and of an empty bucket 1 where a is above 0.
func influxQuantile(rank float64, within, tags string) string {
	return influxQuantileOf(rank, within, tags, tags)
}

// influxSecond is the second largest quantile of single hours; of one hour its own.
func influxSecond(rank float64, within, tags string) string {
	return fmt.Sprintf(`SELECT min("largest") AS "value" FROM (SELECT top("value", 2) AS "largest" FROM (%s) GROUP BY %s) GROUP BY %s`,
		influxQuantileOf(rank, within, "time(1h), "+tags+" fill(none)", tags), tags, tags)
}

// influxQuantileOf is influxQuantile of groups, which have the tags.
func influxQuantileOf(rank float64, within, groups, tags string) string {
	sums, terms := []string{`sum("delays") AS "n"`}, []string{}
	bounds, below, lower := metric.Delay.Buckets, "0", 0.0
	for i, b := range bounds {
		name := fmt.Sprintf("b%d", i)
		sums = append(sums, fmt.Sprintf(`sum("%s") AS "%s"`, hourrow.Bucket(hourrow.Delays, b), name))
		above, inside := fmt.Sprintf(`(%s * "n" - %s)`, decimal(rank), below), fmt.Sprintf(`("%s" - %s)`, name, below)
		share := fmt.Sprintf("(abs(%[1]s) - abs(%[1]s - %[2]s) + %[2]s) / (2.0 * %[2]s)", above, inside)
		empty := fmt.Sprintf("(1.0 - %[2]s / %[2]s) * (%[1]s / abs(%[1]s) + abs(%[1]s / abs(%[1]s))) / 2.0", above, inside)
		terms = append(terms, fmt.Sprintf("%s * (%s + %s)", decimal(b-lower), share, empty))
		below, lower = `"`+name+`"`, b
	}
	return fmt.Sprintf(`SELECT %s AS "value" FROM (SELECT %s FROM "long"."oneway_hour" WHERE %s GROUP BY %s) WHERE "n" > 0 GROUP BY %s`,
		strings.Join(terms, " + "), strings.Join(sums, ", "), within, groups, tags)
}

// influxBound is the largest error bound.
func influxBound(within string) string {
	return `SELECT max("delay_error_bound_seconds") AS "value" FROM "long"."oneway_hour" WHERE ` + within + " GROUP BY " + grafanaPath
}

// influxHours is the number of hours with rows.
func influxHours(within, tags string) string {
	return fmt.Sprintf(`SELECT count("n") AS "value" FROM (SELECT sum("packets_sent") AS "n" FROM "long"."oneway_hour" WHERE %s GROUP BY time(1h), %s fill(none)) GROUP BY %s`, within, tags, tags)
}

// latestOf is the largest value of an agent in the last 5 minutes.
func latestOf(field, measurement string) string {
	return fmt.Sprintf(`SELECT max(%q) AS "value" FROM "raw".%q WHERE time >= now() - 5m AND time <= now() GROUP BY "host"`, field, measurement)
}

// influxWork is the number of points with planned work in the last minutes (AfterMaintenance): 0 of a path without it, since Math leaves out a path that
// one of its values lacks. Both fields are of one measurement: InfluxQL adds no values of two.
func influxWork(work *metric.Desc, measurement string, always *metric.Desc, tags string) string {
	field := func(d *metric.Desc) string { return strings.TrimPrefix(d.Name, "oneway_") }
	of := func(value string, within string) string {
		return fmt.Sprintf(`(SELECT %s AS "work" FROM "raw".%q WHERE %stime <= now() GROUP BY %s)`, value, measurement, within, tags)
	}
	return fmt.Sprintf(`SELECT sum("work") AS "value" FROM %s, %s GROUP BY %s`,
		of(fmt.Sprintf("count(%q)", field(work)), "time > now() - "+duration(AfterMaintenance)+" AND "), of(fmt.Sprintf("0 * last(%q)", field(always)), ""), tags)
}

// quiet makes an alert quiet under maintenance, as its twin in Prometheus: of its path, else of its agent.
func (a *GrafanaAlert) quiet() {
	work := influxWork(metric.PathMaintenance, "oneway_probe", metric.ProbeUp, `"host", "path"`)
	if !strings.Contains(a.Queries[0].Statement, `"path"`) {
		work = influxWork(metric.AgentMaintenance, "oneway_agent", metric.HolidaysEnd, `"host"`)
	}
	a.Queries = append(a.Queries, GrafanaQuery{"Work", work})
	a.Math = "(" + a.Math + ") && $Work == 0"
}

// shifted is the condition of TrendShift with the names of its queries: the medians, and both bounds.
const shifted = "abs($Now - $Before) > $Bound + $BoundBefore && abs(($Now - $Before) / $Before) > "

// longer is the condition that a p95 is longer than the one of the same hours before.
func longer(p95 string) string {
	return fmt.Sprintf("%[1]s - $HourBefore > $Bound + $BoundBefore && %[1]s > $HourBefore * %[2]s && %[1]s - $HourBefore > %[3]s", p95,
		decimal(ThresholdBusyHourRatio.Default), decimal(ThresholdBusyHourSeconds.Default))
}

// GrafanaAlerts are the alerts of weeks for sites with InfluxDB alone. OnewayRetentionShort is not one of them: a statement of InfluxQL cannot read the
// retention of its database, and deploy/influxdb sets it. All are quiet under maintenance while the agent writes that, and some
// minutes more. InfluxQL cannot compare the planned end with the present time: an agent that is off has no more than these minutes.
func GrafanaAlerts() []GrafanaAlert {
	all := grafanaAlerts()
	for i := range all {
		all[i].quiet()
	}
	return all
}

func grafanaAlerts() []GrafanaAlert {
	ratio := decimal(ThresholdTrendShiftRatio.Default)
	bounds := []GrafanaQuery{{"Bound", influxBound(thisWeek)}, {"BoundBefore", influxBound(fourBefore)}}
	return []GrafanaAlert{
		{
			Rule: TrendShift,
			Queries: append([]GrafanaQuery{
				{"Now", influxQuantile(0.5, thisWeek, grafanaPath)}, {"Before", influxQuantile(0.5, fourBefore, grafanaPath)},
			}, bounds...),
			Value: "$Now - $Before", Math: shifted + ratio,
			Description: "The median of the {{ $labels.direction }} delay of {{ $labels.path }}/{{ $labels.probe }} in the last 7 days differs by {{ humanizeDuration $values.Value.Value }} from the 28 days before them, {{ humanizeDuration $values.Before.Value }}. The dashboard Trends shows when.",
		},
		{
			Rule: BusyHourDegraded,
			Doc:  `One alert of each hour of the day and kind of day: an expression of Grafana cannot take the largest of several series.`,
			Queries: append([]GrafanaQuery{
				{"HourNow", influxQuantile(0.95, thisWeek, grafanaHour)},
				{"HourBefore", influxQuantile(0.95, fourBefore, grafanaHour)},
				{"Second", influxSecond(0.95, thisWeek, grafanaHour)},
				{"Hours", influxHours(thisWeek, grafanaHour)},
				{"HoursBefore", influxHours(fourBefore, grafanaHour)},
				{"Now", influxQuantile(0.5, thisWeek, grafanaPath)},
				{"Before", influxQuantile(0.5, fourBefore, grafanaPath)},
			}, bounds...),
			Value:       "$HourNow - $HourBefore",
			Math:        longer("$HourNow") + " && " + longer("$Second") + " && $Hours >= 2 && $HoursBefore >= 4 && !(" + shifted + ratio + ")",
			Description: "95 % of the {{ $labels.direction }} packets of {{ $labels.path }}/{{ $labels.probe }} took up to {{ humanizeDuration $values.Value.Value }} longer in an hour of the last 7 days than in the same hour of the 28 days before: {{ $labels.day_type }} from {{ $labels.local_hour }}:00.",
		},
		{
			Rule: TrendDataGap,
			Queries: []GrafanaQuery{
				{"Hours", influxHours(`"direction" = 'forward' AND `+thisWeek, grafanaPath)},
				{"DayBefore", influxHours(`"direction" = 'forward' AND time >= now() - 8d AND time < now() - `+lastWeek, grafanaPath)},
				{"Measured", `SELECT count("probe_up") AS "value" FROM "raw"."oneway_probe" WHERE time >= now() - 5m AND time <= now() GROUP BY "host", "path", "probe"`},
			},
			Value: "$Hours / 168", Math: "$Hours / 168 < " + decimal(ThresholdTrendDataRatio.Default) + " && $DayBefore > 0 && $Measured > 0",
			Description: "Only {{ humanizePercentage $values.Value.Value }} of the hours of {{ $labels.path }}/{{ $labels.probe }} in the last 7 days were recorded: the agent or InfluxDB was off, or the continuous queries did not run. Figures of this time are of the other hours.",
		},
		{
			Rule: CalendarMissing,
			Doc: `Of lists of holidays that have ended. An agent that writes no local time, of an earlier version, is not noticed: InfluxQL cannot
join two measurements. The present time is the last reply of its paths, since InfluxQL cannot calculate with times either.`,
			Queries: []GrafanaQuery{
				{"End", latestOf("holidays_end_timestamp_seconds", "oneway_agent")}, {"Reply", latestOf("probe_last_success_timestamp_seconds", "oneway_probe")},
			},
			Value: "$Reply - $End", Math: "$Reply > $End",
			Description: "Trends by hour and kind of day need the local time of {{ $labels.host }}: its list of holidays (calendar.holidays_file) has ended, so that later holidays count as other days.",
		},
	}
}

// GrafanaSummary is the summary in Grafana's templates: its $value is a text of all values, and the agent is the tag host.
func (a *GrafanaAlert) GrafanaSummary() string {
	return strings.NewReplacer("$value", "$values.Value.Value", "$labels.instance", "$labels.host").Replace(a.Rule.Alert.Summary)
}
