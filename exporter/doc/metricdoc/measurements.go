package main

import (
	"fmt"
	"strings"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/output/point"
)

const measurementsIntroduction = `# Measurements

The points of the line protocol: what outputs of the agent and the plugins for Telegraf deliver to InfluxDB. Generated from
` + "`exporter/output/point`" + ` by ` + "`make generate`" + `; do not edit. [METRICS.md](METRICS.md) defines each family, its labels and their values.

- **Series**: the families of METRICS.md. A measurement has the families of a group with the same labels; the labels are its tags,
  (of info families, which describe a path or clock, most are fields), and a family without its prefix ` + "`oneway_`" + ` is a field. All fields with the same tags are in one point.
- **Time** of series is a multiple of the interval since 1970, so that all agents have the same times. Raw samples have the time
  of the packet, sample or position, and the values of a run that of its begin, in nanoseconds; a packet of a run has
  the time of its sender's clock, in direction reverse that of the remote end. Points with the same measurement and
  tags never share a time, as a store would replace the first one: where packets were sent at one time, or reports have the same
  packets, or a clock was stepped back to times that series had before, the later point is moved by 1 ns to about 1 µs; ` + "`delay_seconds`" + ` and the others are not changed by that.
- **Types** never change: counters and counts are integers, gauges and sums are floats, names are strings.
- **An absent field** is an unknown value, as an absent series is: never 0, -1 or NaN. A target that is down does not vanish: its
  ` + "`probe_up`" + ` is 0 and its ` + "`round_trip_loss_ratio`" + ` 1; ` + "`loss_ratio`" + ` needs the reflector's counts, as the direction of a loss is not known without them.
- **Tags** are names from the configuration or have a fixed set of values; an id of a run or report is a field. Every point has all
  tags of its measurement: an empty label is ` + "`none`" + `. A control character, and a backslash at the end or before a comma, space or equals sign, is
  replaced by U+FFFD, as the line protocol cannot express it; a tag has at most 1,024 bytes. Each output adds its own tags, by
  default ` + "`host`" + `; they cannot have a name of this page.
  The labels of a path are tags of its points. All points of paths have the names of all paths' labels: a label that a path lacks is the output's own
  tag of that name, else ` + "`none`" + `; a label precedes such a tag.
- **Quantiles**: label ` + "`quantile_rank`" + ` is in the field's name, in percent, before the unit and in place of the word quantile: rank 0.95 of
  ` + "`oneway_delay_quantile_seconds`" + ` is ` + "`delay_p95_seconds`" + `, and 0.999 of ` + "`oneway_tcp_rtt_seconds`" + ` is ` + "`tcp_rtt_p99_9_seconds`" + `. They are listed as ` + "`delay_p*_seconds`" + `.
- **Histograms** have the fields ` + "`_count`" + ` and ` + "`_sum`" + `, and their classic buckets, cumulative, in a measurement of their own with tag ` + "`le`" + `; native
  buckets have no place in the line protocol.
- **Values of runs**: where a series has the values of the last run, each completed run is also a point of its own: its measurement has
  ` + "`oneway_run_`" + ` in place of ` + "`oneway_`" + `, the same tags and fields, the tags ` + "`local_hour`" + ` (0..23) and ` + "`day_type`" + `
  (weekday, weekend, holiday) of its end in the local time of the agent, and the string field ` + "`run`" + `, the id of the run's report. Its counters and histograms
  are of this run alone. They do not depend on the profile.
- **Hours**: ` + "`oneway_hour`" + `, ` + "`oneway_hour_round_trip`" + ` and ` + "`oneway_hour_voice`" + ` have a row of each local hour of a path, with the tags ` + "`local_hour`" + `,
  ` + "`day_type`" + ` and ` + "`zone`" + ` of the agent: they mean what the recording rules ` + "`oneway:long:...`" + ` of Prometheus mean. The time is the begin of the hour.
  The row is written each minute and replaces itself; an hour in which the agent restarted, the clock was stepped back or the labels of
  paths changed has several rows. Counts, buckets (cumulative, ` + "`_le_0_02`" + ` is up to 0.02 s) and minutes of any time are sums of rows, exactly, and quantiles follow from the sums of the buckets;
  extremes and bounds are extremes of rows. In profile slim there are no buckets and no ratings.
- **Cardinality**: a light probe in profile full has 26 tag sets (112 fields) and 43 of classic buckets, 10 kB of lines each
  interval; in profile slim 7 tag sets (14 fields), 0.7 kB. The agent itself has 56. A load test has a tag set per direction, and one per
  cell, step or part of its results. Faults add one for each reason that occurs.
- **InfluxDB 3** freezes the tags of a table and the type of a field with its first write, and allows no tag and field of one name in a table; Core
  has at most 500 columns in a table and 2,000 tables. This schema keeps to it: a later version may add measurements and fields, but no tag to a measurement.
  An output's own tags and the labels of paths are frozen too: a tag that is added later, or the first label of a name, needs a new database there.
`

// measurements is the document of the schema of these groups and tables.
func measurements(groups []metric.Group, tables []*record.Schema) string {
	var b strings.Builder
	b.WriteString(measurementsIntroduction)
	group := ""
	for _, m := range point.Measurements(groups, tables) {
		if m.Group != group {
			group = m.Group
			fmt.Fprintf(&b, "\n## %s\n", group)
		}
		fmt.Fprintf(&b, "\n### %s\n\n", m.Name)
		if len(m.Tags) > 0 {
			fmt.Fprintf(&b, "Tags: `%s`\n\n", strings.Join(m.Tags, "`, `"))
		} else {
			b.WriteString("No tags.\n\n")
		}
		b.WriteString("| field | type | unit | source |\n|---|---|---|---|\n")
		for _, c := range m.Columns {
			key := c.Key
			if c.Ranked {
				key = strings.Replace(point.Ranked(c.Key, "1"), "100", "*", 1)
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", key, c.Kind, c.Unit(), source(&c))
		}
	}
	return b.String()
}

// source is the definition of a field.
func source(c *point.Column) string {
	if c.Desc == nil {
		return c.Help
	}
	family := fmt.Sprintf("[%s](METRICS.md#%s)", c.Desc.Name, c.Desc.Name)
	switch c.Part {
	case point.Count:
		return "number of observations of " + family
	case point.Sum:
		return "sum of the observations of " + family
	case point.Bucket:
		return "observations up to `" + point.BucketTag + "` of " + family
	case point.Fact:
		return "label `" + c.Key + "` of " + family
	case point.Number:
	}
	return family
}
