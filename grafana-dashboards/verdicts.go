package main

import (
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	tablepanel "github.com/grafana/grafana-foundation-sdk/go/table"

	"oneway.example/exporter/core/metric"
)

// staleVerdict is the age in seconds from which a verdict is old: the lines for cron in exporter/doc/trends.md make new ones each day.
const staleVerdict = 2 * 86400

// verdictTable shows the series that `oneway trends` or `oneway compare` writes with --metrics, selected by matchers; node_exporter exports them, so
// that the agent is no label of their target. labels are the first columns.
func verdictTable(t text, labels []column, from metric.Verdicts, matchers string) *tablepanel.PanelBuilder {
	labels = append(labels, column{title: "measure", label: "measure", own: props{prop("custom.width", 90)}})
	names := make([]string, len(labels))
	for i, l := range labels {
		names[i] = l.label
	}
	of := func(d *metric.Desc) string {
		return "max by (" + strings.Join(names, ", ") + ") (" + d.Name + "{" + matchers + "})"
	}
	verdicts := values(map[string]dashboard.ValueMappingResult{"0": word("equal", green, 0), "1": word("differs", orange, 1), "2": word("cannot tell", gray, 2)})
	percent := props{prop("decimals", 1), prop("custom.width", 100)}
	return columns(t, append(labels,
		column{title: "verdict", query: of(from.Outcome), own: props{prop("mappings", verdicts), cellColor("color-text"), prop("custom.width", 105)}},
		column{title: "difference", query: of(from.Difference), unit: "percentunit", own: percent},
		column{title: "from", query: of(from.Low), unit: "percentunit", own: percent},
		column{title: "to", query: of(from.High), unit: "percentunit", own: percent},
		column{title: "age", query: "time() - " + of(from.Time), unit: "dtdurations", own: append(coloredFrom(step{0, gray}, step{staleVerdict, orange}), prop("decimals", 0), prop("custom.width", 105))},
		column{title: "needs", query: of(from.Needed), unit: "dtdurations", own: props{prop("decimals", 1), prop("custom.width", 150)}},
	)...).Span(24).Height(8)
}

func trendVerdicts() *tablepanel.PanelBuilder {
	return verdictTable(text{
		"Verdicts of oneway trends, $direction",
		"What the history shows, by oneway trends --metrics: whether the hours of the day, weekends, the last week, busy hours and the level differ by more than chance and the error bounds explain, with an interval of 95 % that knows that neighboring hours and days are alike. Cannot tell: about how much more history is needed. The age is orange from two days on: the file is no longer written.",
		"none", "No verdicts of this path. Run oneway trends --metrics=FILE.prom each day, for the textfile collector of node_exporter: see exporter/doc/trends.md",
	}, []column{{title: "about", label: metric.AboutL, own: props{prop("custom.width", 110)}}, {title: "probe", label: metric.Probe, own: props{prop("custom.width", 90)}}, {title: "codec", label: metric.CodecL, own: props{prop("custom.width", 100)}}, {title: "agent", label: "agent", own: props{prop("custom.width", 130)}}}, metric.Trend,
		// An agent without a port is the tag host of points in InfluxDB, which the instances of Prometheus do not have.
		`agent=~"$agent|[^:]+",path="$path",direction="$direction"`)
}

func compareVerdicts() *tablepanel.PanelBuilder {
	return verdictTable(text{
		"Verdict of oneway compare, $direction",
		"Whether the conditions differ by more than chance and the error bounds explain, by oneway compare --metrics with these labels: the difference of the medians, the first condition less the second, over the second, with an interval of 95 % that knows that neighboring hours and days are alike, corrected for all comparisons of the file. Cannot tell: about how much more history is needed. The age is orange from two days on: the file is no longer written.",
		"none", "No verdict about A and B. Run oneway compare --by=LABEL --metrics=FILE.prom each day, for the textfile collector of node_exporter: see exporter/doc/trends.md",
	}, []column{{title: "conditions", label: "conditions", own: append(wrapped("auto"), prop("custom.minWidth", 150))}}, metric.Compare,
		`conditions=~"($direction: )?($label=$a against $label=$b|$label=$b against $label=$a)"`)
}
