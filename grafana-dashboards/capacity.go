package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/stat"

	"oneway.example/exporter/core/metric"
)

// capacityUID is the uid that links and runbooks refer to.
const (
	capacityTitle = "Capacity"
	capacityUID   = "oneway-capacity"
)

// noTrains is short: a curve without points shows it as a legend, which Grafana does not wrap.
const noTrains = slimOr + "no clean trains (see Trains by result)"

// capacityBoard shows the capacity by packet trains, which do not fill the link, and the size sweep.
func capacityBoard() *boardBuilder {
	return loadTestPage{
		title: capacityTitle, uid: capacityUID, from: "now-7d",
		description: "Capacity of a path by packet trains of several sizes, path MTU, and throughput, loss and delay by packet size and packet rate (size sweep).",
		raw:         []cog.Builder[dashboard.DashboardLink]{toRaw(rawTrainsPage(), "train"), toRaw(rawSizeSweepPage(), "size_sweep")},
		variables: []cog.Builder[dashboard.VariableModel]{
			probeVariable("train", "Trains", metric.Trains),
			probeVariable("size_sweep", "Size sweep", metric.SizeSweepSent),
			directionVariable(),
		},
		rows: []func(*boardBuilder){
			capacitySummaryRow, capacityRow, trainRow, sizeSweepRow,
		},
	}.board()
}

// directionVariable selects the direction of panels with too many lines or columns for both.
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
	bothDirections(b, capacityTile)
	b.WithPanel(tile(text{
		"Path MTU", "Largest IP packet that passes without fragmentation, measured with probe packets (RFC 8899). Larger packets of trains are fragmented; their capacity is that of the fragments.", "decbytes",
		"No path MTU measured",
	}, instant(from(trained, metric.PathMTU), "{{direction}}")).Span(6).Unit("suffix:B").Decimals(0).
		TextMode(common.BigValueTextModeValueAndName).Thresholds(steps(step{0, gray}, step{0, orange}, step{1280, green})))
	b.WithPanel(tile(text{
		"Clean trains", "Share of the trains in the time range that are used for the capacity: complete, in order, not limited by the pace of the sender, batching at the receiver or a token bucket, without other packets between, and long enough for the accuracy of the timestamps. Orange below 50 %.", "percentunit",
		slimOr + "no trains in this time range",
	}, instant("sum by (direction) (increase("+from(trained, metric.Trains, metric.ResultL+`="clean"`)+dashboardRange+
		")) / on (direction) (sum by (direction) (increase("+from(trained, metric.Trains)+dashboardRange+")) > 0)", "{{direction}}")).Span(6).Decimals(0).
		TextMode(common.BigValueTextModeValueAndName).Thresholds(steps(step{0, gray}, step{0, orange}, step{0.5, green})))
	b.WithPanel(lastRunTile(trained).Span(12))
	b.WithPanel(quotaTile().Span(12))
}

// capacityTile shows the capacity of a direction with its error bound.
func capacityTile(name, matcher string) *stat.PanelBuilder {
	of := func(d *metric.Desc) string { return "max(" + from(trained, d, matcher) + ")" }
	return tile(text{
		"Capacity " + name, "Median capacity of the last run's packet trains of the largest unfragmented size, with its error bound from timestamps and spread of the trains; IP-layer bits (RFC 5136). Bucket limit: a larger token bucket is not detected; the capacity is then that of the link before it. Shaper: the rate after a burst, and the burst, of a token bucket that the trains have emptied.", inBits,
		"No clean trains" + orSlim,
	},
		instant(bitsOf(of(metric.PathCapacity)), "median"), instant(bitsOf(of(metric.PathCapacityBound)), "±"),
		instant(of(metric.PathCapacityHidden), "bucket limit"),
		instant(bitsOf(of(metric.ShaperRate)), "shaper"), instant(bitsOf(of(metric.ShaperRateBound)), "shaper ±"),
		instant(of(metric.ShaperBurst), "burst"), instant(of(metric.ShaperBurstBound), "burst ±"),
	).Span(6).Decimals(2).
		TextMode(common.BigValueTextModeValueAndName).Thresholds(inColor(colorOf(name))).
		OverrideByName("±", props{color(gray)}).
		OverrideByName("shaper ±", props{color(gray)}).
		OverrideByName("burst", props{prop("unit", "decbytes"), prop("decimals", 1)}).
		OverrideByName("burst ±", props{color(gray), prop("unit", "decbytes"), prop("decimals", 1)}).
		OverrideByName("bucket limit", props{color(gray), prop("unit", "decbytes"), prop("decimals", 0)})
}
