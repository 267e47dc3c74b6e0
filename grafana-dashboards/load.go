package main

import (
	"strconv"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/stat"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/rules"
)

// loadUID is the uid that links and runbooks refer to.
const (
	loadTitle = metric.TitleLoad
	loadUID   = "oneway-load"
)

// loadBoard shows the results of load tests of a link: throughput, delay under load, queue, rate sweep, corrupted packets,
// and the runs.
func loadBoard() *boardBuilder {
	return loadTestPage{
		title: loadTitle, uid: loadUID, from: "now-24h",
		description: "Load tests of a link, both directions: throughput, delay under load, queue delay and size, loss by offered rate, corrupted packets, runs and data quota.",
		raw:         []cog.Builder[dashboard.DashboardLink]{toRaw(rawPacketsPage(), "saturation")},
		variables: []cog.Builder[dashboard.VariableModel]{
			probeVariable("saturation", "Probe", metric.UDPOffered),
		},
		rows: []func(*boardBuilder){
			loadSummaryRow, throughputRow, loadedDelayRow, func(b *boardBuilder) { workingRow(b, saturated) }, queueRow, sweepRow, corruptionRow,
		},
	}.board()
}

func loadSummaryRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("The last run"))
	bothDirections(b, throughputTile)
	bothDirections(b, queueTile)
	b.WithPanel(tile(text{
		"Result", "State of the link in the last run: filled (the queue drops at its tail), not filled, policer (loss without delay), aqm (drops before the queue was full), time limited (drops after a time in the queue). A queue size is reported for state filled only.", "none",
		noState,
	}, instant(stateOf(), "{{direction}}")).Span(7).
		TextMode(common.BigValueTextModeValueAndName).
		Mappings(values(numbers(saturationStates()))).Thresholds(steps(step{0, gray})))
	b.WithPanel(lastRunTile(saturated))
	b.WithPanel(quotaTile())
	b.WithPanel(tile(text{
		"Loss under load", "Share of the packets sent under load that were lost. The load above the rate of the link is lost by design; this is no fault.", "percentunit",
		noLoad,
	}, instant(from(saturated, metric.LoadedLoss), "{{direction}}")).Span(7).Decimals(1).
		TextMode(common.BigValueTextModeValueAndName).Thresholds(steps(step{0, gray})))
}

func throughputTile(name, matcher string) *stat.PanelBuilder {
	return tile(text{
		"Throughput " + name, "Median throughput per second of the last run without its first and last part, in IP-layer bits (RFC 9097 section 5.3), and the offered rate. In mode search: the maximum IP-layer capacity found (RFC 9097 section 6).", inBits,
		noLoad,
	},
		instant(bitsOf("("+from(saturated, metric.UDPThroughput, matcher)+" or "+from(saturated, metric.SearchMaximum, matcher)+")"), "throughput"),
		instant(bitsOf(from(saturated, metric.UDPOffered, matcher)), "offered"),
	).Span(6).Decimals(2).
		TextMode(common.BigValueTextModeValueAndName).Thresholds(inColor(colorOf(name))).
		OverrideByName("offered", props{color(gray)})
}

// queueTile shows the delay that a full queue adds to all packets on the link.
func queueTile(name, matcher string) *stat.PanelBuilder {
	return tile(text{
		"Queue " + name, "Median of the delay that a full queue adds, its error bound, and the size of the queue; quantiles are in the row Queue. Red above " + inMillis(rules.ThresholdBufferbloatSeconds) + ", the default of " + rules.Bufferbloat.Name + ".", "s",
		"Not filled, no queue, or no completed run",
	},
		instant(from(saturated, metric.QueueDelay, matcher, half), "median"),
		instant(from(saturated, metric.QueueDelayBound, matcher, half), "± bound"),
		instant(from(saturated, metric.QueueSize, matcher), "size"),
	).Span(6).Decimals(1).
		TextMode(common.BigValueTextModeValueAndName).
		Thresholds(steps(step{0, gray}, step{0, green}, step{rules.ThresholdBufferbloatSeconds.Default, red})).
		OverrideByName("± bound", props{color(gray)}).
		OverrideByName("size", props{prop("unit", "decbytes"), prop("decimals", 2), color(colorOf(name))})
}

// Matchers of the quantiles of a run.
const (
	least = metric.QuantileL + `="0.05"`
	half  = metric.QuantileL + `="0.5"`
	most  = metric.QuantileL + `="0.95"`
)

// state is one of a fixed set of states and its color.
type state struct{ name, color string }

// saturationStates are the possible results of a run.
func saturationStates() []state {
	return []state{
		{"filled", green},
		{"not_filled", orange},
		{"policer", purple},
		{"aqm", blue},
		{"time_limited", yellow},
	}
}

// stateOf is the number of the state of each direction.
func stateOf() string {
	return numbered(saturationStates(), func(name string) string {
		return from(saturated, metric.SaturationState, metric.StateL+`="`+name+`"`)
	})
}

// numbered numbers states from 1: a tile that shows the value of a label does not show its noValue text if there is no
// series.
func numbered(of []state, series func(name string) string) string {
	terms := make([]string, len(of))
	for i, s := range of {
		terms[i] = strconv.Itoa(i+1) + " * (" + series(s.name) + " == 1)"
	}
	return "sum without (" + metric.StateL + ") (" + strings.Join(terms, " or ") + ")"
}

// numbers maps the numbers to the names of the states.
func numbers(of []state) map[string]dashboard.ValueMappingResult {
	words := map[string]dashboard.ValueMappingResult{}
	for i, s := range of {
		words[strconv.Itoa(i+1)] = word(metric.Words(s.name), s.color, int32(i))
	}
	return words
}
