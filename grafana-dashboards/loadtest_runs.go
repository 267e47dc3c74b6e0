package main

import (
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	tablepanel "github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/rules"
	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/core/unit"
)

const always = common.VisibilityModeAlways

// apart is the largest distance, in ms, at which points of runs are connected: six hours.
func apart() common.BoolOrFloat64 { return common.BoolOrFloat64{Float64: new(6 * 3600e3)} }

// loadTestRunsRow shows the load tests of the path of all probe types: they share the link and its quota.
func loadTestRunsRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("Runs of all load tests of this path, and data quota"))
	b.WithPanel(lastAndNext())
	b.WithPanel(columns(text{
		"Runs in the time range",
		"Runs that were due in the dashboard's time range, by result and reason. Results: " + strings.Join(runreason.Results(), "; ") + ". Reasons of skipped runs: " + strings.Join(runreason.Skips(), "; ") + ".",
		"none", noRun,
	},
		column{title: "probe", label: metric.Probe},
		column{title: "result", label: metric.ResultL, own: props{
			prop("custom.cellOptions", map[string]string{"type": "color-text"}), prop("mappings", resultWords()),
		}},
		column{title: "reason", label: metric.ReasonL},
		column{title: "runs", query: runsIn("$__range"), own: props{prop("decimals", 0)}},
	).Span(12).Thresholds(steps(step{0, gray})))
	b.WithPanel(runsByResult())
	b.WithPanel(quota())
}

// eachProbe is the largest value of each load test.
func eachProbe(expr string) string { return "max by (probe) (" + expr + ")" }

// lastAndNext shows a next run in the past while that run waits for its link or is running; more are columns after the last run.
func lastAndNext(more ...column) *tablepanel.PanelBuilder {
	each := eachProbe
	last := from(anyTest, metric.RunLast)
	cs := []column{
		{title: "probe", label: metric.Probe, empty: "none configured", own: props{prop("links", toLastRun())}},
		{title: "interval", query: each(from(anyTest, metric.RunInterval)), unit: "s", own: props{prop("custom.width", 80)}},
		{title: "last run", query: each("1000 * " + last), unit: "dateTimeFromNow", own: props{prop("custom.minWidth", 140)}},
	}
	cs = append(append(cs, more...),
		column{title: "next run", query: each("1000 * " + from(anyTest, metric.RunNext)), unit: "dateTimeFromNow", own: props{prop("custom.minWidth", 140)}},
		column{title: "duration", query: each(from(anyTest, metric.RunDuration)), unit: "s", own: props{prop("custom.width", 85)}},
		column{title: "state", query: each(from(anyTest, metric.TestRunning)), own: props{
			prop("mappings", values(map[string]dashboard.ValueMappingResult{
				"1": word("running", blue, 0), "0": word("idle", gray, 1),
			})), prop("custom.cellOptions", map[string]string{"type": "color-text"}), prop("custom.width", 60),
		}},
		column{title: rawPage, label: rawPage, own: invisible()},
		column{title: rawTitle, label: rawTitle, own: invisible()},
		column{title: "points", query: rawPages(), own: invisible()},
		column{title: lastBegin, query: "floor(1000 * (" + each(last+" - "+from(anyTest, metric.RunDuration)) + " - 10))", own: invisible()},
		column{title: lastEnd, query: "ceil(1000 * (" + each(last) + " + 10))", own: invisible()},
	)
	return columns(text{
		"Last and next runs",
		"Interval, end of the last completed run, due time of the next run (including jitter and windows of the day; in the past while the run waits for the link or is running; none if no window allows a run), duration of the last run, and whether a run is in progress. A click on a probe opens the raw points of its last run, if InfluxDB has them. The ID of a run, in its report and in InfluxDB, begins with the time in UTC at which the agent started it; some runs wait then for their turn.",
		"none", noRun,
	}, cs...).Thresholds(steps(step{0, gray}))
}

// Columns with the time range of the last run, for links, in ms.
const lastBegin, lastEnd = "begin", "end"

// invisible hides a column; Grafana 12.2 replaced the first property by the second one.
func invisible() props {
	return props{prop("custom.hidden", true), prop("custom.hideFrom", map[string]bool{"viz": true})}
}

// Labels with the page of the raw points of a probe, and its title.
const rawPage, rawTitle = "page", "shows"

// rawPages has a series of each probe with its page of raw points, which the family of its results tells.
func rawPages() string {
	of := func(d *metric.Desc, p page) string {
		return `label_replace(label_replace(group by (probe) (` + from(anyTest, d) + `), "` + rawPage + `", "` + p.uid + `", "", ""), "` + rawTitle + `", "` + p.title + `", "", "")`
	}
	all := []string{
		of(metric.UDPOffered, rawPacketsPage()), of(metric.SearchMaximum, rawPacketsPage()), of(metric.Trains, rawTrainsPage()), of(metric.SizeSweepSent, rawSizeSweepPage()),
	}
	known := "(" + strings.Join(all, " or ") + ")"
	return known + " or (" + of(metric.RunInterval, rawTCPPage()) + " unless on (probe) " + known + ")"
}

// toLastRun links a probe to the raw points of its last run, on the page of its type.
func toLastRun() []map[string]any {
	return []map[string]any{{
		"title": "${__data.fields." + rawTitle + "} of the last run", "url": "/d/${__data.fields." + rawPage + "}?var-path=${path}&var-probe=${__data.fields.probe}" +
			"&from=${__data.fields." + lastBegin + ".numeric}&to=${__data.fields." + lastEnd + ".numeric}",
	}}
}

// result is a result of runs and its color.
type result struct{ name, color string }

// results are all results; those that OnewayRunsFailing counts are red.
func results() []result {
	all := []result{{runreason.Completed, green}}
	for _, name := range runreason.Failures() {
		all = append(all, result{name, red})
	}
	return append(all, result{runreason.Skipped, yellow})
}

func resultWords() []dashboard.ValueMapping {
	words := map[string]dashboard.ValueMappingResult{}
	for i, r := range results() {
		words[r.name] = word(r.name, r.color, int32(i))
	}
	return values(words)
}

// runsIn counts the runs of a time.
func runsIn(time string) string {
	return "round(sum by (probe, result, reason) (" + rules.Increase(from(anyTest, metric.Runs), time) + ")) > 0"
}

func runsByResult() *timeseries.PanelBuilder {
	panel := bars(counted(text{
		"Runs per hour",
		"Runs that were due in the hour before each point, by result and reason. " + rules.RunsFailing.Name + " counts the results " + unit.List("and", runreason.Failures()...) + ". For skipped runs see " + rules.RunResultStale.Name + " and " + rules.DataQuotaExhausted.Name + ".",
		"none", noRun,
	}, leastMinute, ranged(runsIn("1h"), "{{probe}}: {{result}} {{reason}}"))).
		Thresholds(steps(step{0, "transparent"}))
	for _, r := range results() {
		panel.OverrideByRegexp("/: "+r.name+" /", props{color(r.color)})
	}
	return panel
}

// ofLink selects a family by the links that the path's load tests use.
func ofLink(d *metric.Desc) string {
	return from(thisAgent, d) + " and on (job, instance, link) " + from(anyTest, metric.TestRunning)
}

func quota() *timeseries.PanelBuilder {
	return lines(text{
		"Data quota",
		"IP bytes sent by load tests over the path's link since local midnight, both directions, remaining bytes, and limit (dashed). Bytes reserved for a run in progress are subtracted from the remaining bytes. A run that exceeds the remaining quota is skipped (" + rules.DataQuotaExhausted.Name + ").",
		"decbytes", "The path's link has no quota (links: quota_bytes)",
	},
		ranged(ofLink(metric.QuotaUsed), "{{link}} used"),
		ranged(ofLink(metric.QuotaLeft), "{{link}} left"),
		ranged(ofLink(metric.QuotaLimit), "{{link}} limit"),
	).Thresholds(steps(step{0, "transparent"})).
		OverrideByRegexp("/ used$/", props{color(orange), prop("custom.lineWidth", 2), prop("custom.fillOpacity", 15)}).
		OverrideByRegexp("/ left$/", props{color(green), prop("custom.lineWidth", 2)}).
		OverrideByRegexp("/ limit$/", props{color(red), dashed()})
}

// quotaTile shows the remaining quota of the link.
func quotaTile() *stat.PanelBuilder {
	left, limit := ofLink(metric.QuotaLeft), from(thisAgent, metric.QuotaLimit)
	return tile(text{
		"Quota left", "Bytes that load tests may still send over the path's link until local midnight, and their share of the daily quota. Orange below 20 %, red below 5 %.", "percentunit",
		"No quota on this link",
	},
		instant(left, "bytes"),
		instant("("+left+") / on (job, instance, link) "+limit, "of the day"),
	).Span(5).Decimals(0).
		TextMode(common.BigValueTextModeValueAndName).
		Thresholds(steps(step{0, gray}, step{0, red}, step{0.05, orange}, step{0.2, green})).
		OverrideByName("bytes", props{prop("unit", "decbytes"), prop("decimals", 1), color(gray)})
}

// lastRunTile shows the age of the page's values.
func lastRunTile(base string) *stat.PanelBuilder {
	age, limit := "time() - "+from(base, metric.RunLast), rules.RunAge()
	return tile(text{
		"Last run", "Time since the last completed run, and its share of the default limit of " + rules.RunResultStale.Name + ", " + limit.DefaultText() + ". All panels of this page without a time axis show that run. Red above 100 %.", "percentunit",
		"No completed run",
	},
		instant(age, "age"),
		instant("("+age+") / "+limit.DefaultOf(from(base, metric.RunInterval)), "of the limit"),
	).Span(5).Decimals(0).
		TextMode(common.BigValueTextModeValueAndName).
		Thresholds(steps(step{0, gray}, step{-1, green}, step{2. / 3, orange}, step{1, red})).
		OverrideByName("age", props{prop("unit", "s"), prop("decimals", 0), color(gray)})
}
