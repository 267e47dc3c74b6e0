package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/bargauge"
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/probes/message"
)

// fairnessUID is the uid that links refer to.
const (
	fairnessTitle = "Fairness and two-way"
	fairnessUID   = "oneway-fairness"
)

// Selectors and texts: each kind of run is usually a probe of its own.
const (
	shared   = anyTest + `,probe="$flows"`
	crossing = anyTest + `,probe="$two_way"`
	noFlows  = slimOr + "no completed run of the probe tcp with several flows"
	noTwoWay = slimOr + "no completed run of the probe tcp with overlap_duration"
)

// fairnessBoard shows how TCP flows share a path: with each other, with the other direction, short ones, and as a transport
// of messages beside UDP.
func fairnessBoard() *boardBuilder {
	return loadTestPage{
		title: fairnessTitle, uid: fairnessUID, from: "now-7d",
		description: "How TCP flows share a path: Jain's index, least and largest flow, both directions at once, completion time of short flows, and UDP against TCP at one message size.",
		raw:         []cog.Builder[dashboard.DashboardLink]{toRaw(rawTCPPage(), "flows")},
		variables: []cog.Builder[dashboard.VariableModel]{
			probeVariable("flows", "Flows", metric.TCPFairness),
			probeVariable("two_way", "Two-way", metric.TCPTwoWayThroughput),
			probeVariable("short_flows", "Short flows", metric.TCPCompletionQuantile),
			probeVariable("messages", "Messages", message.ThroughputDesc),
			directionVariable(),
		},
		rows: []func(*boardBuilder){
			fairnessRow, twoWayRow, shortFlowsRow, messagesRow,
		},
	}.board()
}

// fair is the share below which Jain's index is orange: about that of two flows of which one has three times the rate of
// the other.
const fair = 0.8

func fairnessRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("Flows that share the path"))
	b.WithPanel(tile(text{
		"Jain's index", "Jain's index of the mean rates of all flows of the last run: 1 if all are equal, 1/n if one of n flows has all (RFC 5166 section 2.3.1). Orange below " + plain(fair) + ", that is two flows of which one has three times the rate of the other. Halepovic figure 13.", "none",
		"No completed run with several flows" + orSlim,
	}, instant(from(shared, metric.TCPFairness), "{{direction}}")).Span(6).Height(9).Decimals(3).
		TextMode(common.BigValueTextModeValueAndName).Thresholds(steps(step{0, gray}, step{-1, orange}, step{fair, green})))
	b.WithPanel(colored(runs(plot(text{
		"Jain's index, run by run",
		"Jain's index of the mean rates of all flows of each run; the line is at " + plain(fair) + ". It is stable for one congestion control, and falls where one displaces another. Corresponds to Halepovic figure 13.",
		"none", noFlows + " in this time range",
	}, ranged(fresh(shared, from(shared, metric.TCPFairness)), "{{direction}}"))).
		Span(9).Height(9).Min(0).Max(1).Thresholds(steps(step{0, "transparent"}, step{fair, orange})).ThresholdsStyle(line()), ""))
	b.WithPanel(colored(colored(runs(lines(text{
		"All flows together",
		"Throughput of all flows of each run, and the rate of the link (dotted), configured (link_rate) or by the probes train or saturation, in IP-layer bits: with full packets TCP can reach about 96.5 % of it.",
		inBits, noFlows + " in this time range",
	},
		ranged(fresh(shared, bitsOf(from(shared, metric.TCPThroughput))), "{{direction}}"),
		ranged(bitsOf(linkRate()), "{{direction}} link"),
	)).Span(9).Height(9).Thresholds(steps(step{0, "transparent"})), ""), " link", dotted(), prop("custom.showPoints", "never")))
	b.WithPanel(flowRates())
}

// flowRates shows the flows of each congestion control between the least and the largest.
func flowRates() *timeseries.PanelBuilder {
	rate := func(rank string) string {
		return fresh(shared, bitsOf(from(shared, metric.TCPFlowThroughput, metric.QuantileL+`="`+rank+`"`, chosen)))
	}
	p := runs(lines(text{
		"Flows by congestion control, run by run, $direction",
		"Median throughput of the flows with each congestion control, between the least and the largest flow (shaded). Mixed congestion controls that do not overlap do not share the link. Corresponds to Halepovic section 4.4 and figure 13.",
		inBits, noFlows + " in this time range",
	},
		ranged(rate("0.5"), "{{congestion_control}}"), ranged(rate("1"), "{{congestion_control}} largest"), ranged(rate("0"), "{{congestion_control}} least"),
	)).Span(24).Height(9).Thresholds(steps(step{0, "transparent"})).
		OverrideByRegexp("/ (least|largest)$/", props{prop("custom.lineWidth", 1), prop("custom.pointSize", 3)})
	for _, v := range algorithms {
		p.OverrideByName(v.name+" largest", filledTo(v.name+" least", 20))
	}
	return inAlgorithms(p)
}

func twoWayRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("Both directions at once"))
	b.WithPanel(twoWayBars())
	b.WithPanel(twoWayRuns())
	b.WithPanel(runs(plot(text{
		"Correlation of the directions, run by run",
		"Correlation coefficient (Pearson) of the throughput of both directions in the seconds in which both sent. Near -1: one takes what the other loses; Halepovic table 3 has -0.71. Without 4 independent seconds there is none: short overlaps, or rates that resemble those of the second before.",
		"none", noTwoWay + " in this time range, or too few independent seconds in which both sent",
	}, ranged(fresh(crossing, from(crossing, metric.TCPTwoWayCorrelation)), "correlation"))).
		Span(7).Height(9).Min(-1).Max(1).Thresholds(steps(step{0, "transparent"})).
		OverrideByName("correlation", props{color(green), prop("custom.lineWidth", 2)}))
}

// parts of a two-way run.
var parts = []string{"before", "during", "after"}

// twoWay selects the throughput in a part of the run.
func twoWay(part string) string {
	return bitsOf(from(crossing, metric.TCPTwoWayThroughput, `part="`+part+`"`))
}

// twoWayBars has a bar per part and direction.
func twoWayBars() *bargauge.PanelBuilder {
	var qs []*prometheus.DataqueryBuilder
	for _, part := range parts {
		qs = append(qs, instant(twoWay(part), "{{direction}} "+part))
	}
	return bargauge.NewPanelBuilder().
		Title("Two-way, the last run").Description("Mean throughput of the last run before the other direction sent, while both sent, and after that. The direction that sends in the middle has \"during\" only. The longest bar is the largest value. Corresponds to Halepovic figure 17 and table 3.").
		Unit(inBits).NoValue(noTwoWay).Datasource(datasource()).Targets(targets(qs)).Span(8).Height(9).Min(0).Decimals(2).
		ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"})).
		Orientation(common.VizOrientationHorizontal).DisplayMode(common.BarGaugeDisplayModeBasic).
		ValueMode(common.BarGaugeValueModeText).ShowUnfilled(true).
		Thresholds(steps(step{0, gray})).
		OverrideByRegexp("/^forward /", props{color(blue)}).OverrideByRegexp("/^reverse /", props{color(orange)})
}

// twoWayRuns shows the parts of each run.
func twoWayRuns() *timeseries.PanelBuilder {
	var qs []*prometheus.DataqueryBuilder
	for _, part := range parts {
		qs = append(qs, ranged(fresh(crossing, twoWay(part)), "{{direction}} "+part))
	}
	qs = append(qs, ranged(bitsOf(linkRate()), "{{direction}} link"))
	p := runs(lines(text{
		"Two-way, run by run",
		"Throughput of each run before (dotted), while (thick) and after (dashed) both directions sent, and the rate of the link (thin), configured (link_rate) or by the probes train or saturation. The distance of the thick line is what the other direction takes: its acknowledgments wait in the queue of its data.",
		inBits, noTwoWay + " in this time range",
	}, qs...)).Span(9).Height(9).Thresholds(steps(step{0, "transparent"}))
	colored(p, " before", dotted(), prop("custom.pointSize", 3))
	colored(p, " during", prop("custom.lineWidth", 2))
	colored(p, " link", prop("custom.showPoints", "never"))
	return colored(p, " after", dashed(), prop("custom.pointSize", 3))
}
