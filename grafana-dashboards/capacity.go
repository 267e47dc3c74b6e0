package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/stat"

	"oneway.example/exporter/metric"
)

// capacityUID is the page that links and runbooks refer to.
const capacityUID = "oneway-capacity"

const noTrains = "No clean trains: no completed run of the probe train, or see Trains by result"

// capacityBoard is what the link can do by packet trains, which do not fill it, and what
// it does to packets of each size at each rate.
func capacityBoard() *boardBuilder {
	b := newBoard("oneway / Capacity").Uid(capacityUID).Tags([]string{"oneway"}).
		Description("What a link can do, by packet trains of several sizes, its path MTU, and what it does to packets of each size at each rate.").
		Readonly().Refresh("1m").Time("now-7d", "now").Timezone("browser").
		Tooltip(dashboard.DashboardCursorSyncCrosshair).
		Links(links(loadTestPages(capacityUID)...))
	loadTestVariables(b,
		probeVariable("train", "Trains", metric.Trains),
		probeVariable("size_sweep", "Size sweep", metric.SizeSweepSent))
	b.WithVariable(directionVariable())
	loadTestAnnotations(b)
	capacitySummaryRow(b)
	capacityRow(b)
	trainRow(b)
	sizeSweepRow(b)
	loadTestRunsRow(b)
	return b
}

// directionVariable chooses for what has too many lines or columns for both.
func directionVariable() *dashboard.CustomVariableBuilder {
	option := func(name string) dashboard.VariableOption {
		return dashboard.VariableOption{
			Selected: new(name == "forward"),
			Text:     dashboard.StringOrArrayOfString{String: new(name)},
			Value:    dashboard.StringOrArrayOfString{String: new(name)},
		}
	}
	return dashboard.NewCustomVariableBuilder("direction").Label("Direction").
		Values(dashboard.StringOrMap{String: new("forward,reverse")}).
		Options([]dashboard.VariableOption{option("forward"), option("reverse")}).
		Current(option("forward"))
}

func capacitySummaryRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("The last run"))
	b.WithPanel(capacityTile("forward", forward))
	b.WithPanel(capacityTile("reverse", reverse))
	b.WithPanel(tile(text{
		"Path MTU", "Largest IP packet that passes unfragmented, found by test packets of its own (RFC 8899). Trains of larger packets are fragmented, and their capacity is that of the fragments.", "decbytes",
		"Not found",
	}, instant(from(trained, metric.PathMTU), "{{direction}}")).Span(6).Unit("suffix: B").Decimals(0).
		TextMode(common.BigValueTextModeValueAndName).Thresholds(steps(step{0, gray}, step{0, orange}, step{1280, green})))
	b.WithPanel(tile(text{
		"Clean trains", "Share of the trains of the time range that say something: in order, complete, and neither the sender's pace nor the receiver's batching nor a token bucket nor packets of others in them, and long enough for the stamps. Orange below half.", "percentunit",
		"No trains in this time range",
	}, instant("sum by (direction) (increase("+from(trained, metric.Trains, metric.ResultL+`="clean"`)+dashboardRange+
		")) / on (direction) (sum by (direction) (increase("+from(trained, metric.Trains)+dashboardRange+")) > 0)", "{{direction}}")).Span(6).Decimals(0).
		TextMode(common.BigValueTextModeValueAndName).Thresholds(steps(step{0, gray}, step{0, orange}, step{0.5, green})))
	b.WithPanel(lastRunTile(trained).Span(12))
	b.WithPanel(quotaTile().Span(12))
}

// capacityTile is the one number of a direction, with its bound.
func capacityTile(name, matcher string) *stat.PanelBuilder {
	of := func(d *metric.Desc) string { return "max(" + from(trained, d, matcher) + ")" }
	return tile(text{
		"Capacity " + name, "By packet trains, the median of the last run's trains of the largest size that is not fragmented, and how far it may be off: the trains' stamps, and how far they differ. In IP packets: RFC 5136. A token bucket of more bytes than told would not have shown: the capacity is then that of the line before it.", inBits,
		noTrains,
	},
		instant(bitsOf(of(metric.PathCapacity)), "median"), instant(bitsOf(of(metric.PathCapacityBound)), "±"),
		instant(of(metric.PathCapacityHidden), "bucket not seen above"),
	).Span(6).Decimals(2).
		TextMode(common.BigValueTextModeValueAndName).Thresholds(steps(step{0, colorOf(name)})).
		OverrideByName("±", props{color(gray)}).
		OverrideByName("bucket not seen above", props{color(gray), prop("unit", "decbytes"), prop("decimals", 0)})
}
