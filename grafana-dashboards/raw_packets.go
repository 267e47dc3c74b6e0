package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/xychart"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/output/point"
)

const noRunPackets = "No packets of a run of this path and probe in this time range"

// elapsedTitle is the column and the axis of the time since a transfer's begin.
const elapsedTitle = "time since the begin of the load"

// mostPoints limits the points of a panel, for the browser's sake.
const mostPoints = "20000"

// rawPacketsBoard shows a run of a load test over UDP packet by packet, and its results by cell.
func rawPacketsBoard() *boardBuilder {
	b := rawBoard("Raw packets", rawPacketsUID, "now-24h", "A run of a load test over UDP packet by packet, both directions: the first seconds of the load, and the steps of a rate sweep. From InfluxDB.",
		toPage(page{loadTitle, loadUID, "Load tests of this path over time"}, samePath),
		toPage(rawTrainsPage(), samePath), toPage(rawSizeSweepPage(), samePath), toPage(rawTCPPage(), samePath))
	rawPathVariables(b, point.RunPacket)
	b.WithVariable(idVariable(point.RunField, "Run", point.RunPacket))
	b.WithVariable(dashboard.NewCustomVariableBuilder("first").Label("First seconds").
		Values(dashboard.StringOrMap{String: new("1,2,5,10,30,120")}).
		Current(dashboard.VariableOption{
			Text: dashboard.StringOrArrayOfString{String: new("5")}, Value: dashboard.StringOrArrayOfString{String: new("5")},
		}))
	loadVariables(b)
	firstSecondsRow(b)
	rateSweepCellsRow(b)
	return b
}

// loadVariables adds the part of a transfer with the most packets, which is the load and not the single packets before and after
// it, and the time of its first packet, by direction. They are not shown.
func loadVariables(b *boardBuilder) {
	for _, d := range directions() {
		of := func(column string, more ...string) string {
			return selection{
				columns: []string{column}, from: name(point.RunPacket), where: inRun(append([]string{is(name(metric.Direction), d)}, more...)...),
			}.String()
		}
		b.WithVariable(rawVariable("load_"+d, "", of("MODE("+packet("segment")+")")).Hide(dashboard.VariableHideHideVariable))
		b.WithVariable(rawVariable("begin_"+d, "", of("MIN("+packet("sent_seconds")+")", packet("segment")+" = "+numberIn("load_"+d))).
			Hide(dashboard.VariableHideHideVariable))
	}
}

// numberIn is the value of a variable that is not negative. Without packets the variable is empty, and the number 0.
func numberIn(variable string) string { return "0${" + variable + "}" }

func firstSecondsRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("First $first s of the load"))
	for _, d := range directions() {
		since := packet("sent_seconds") + " - " + numberIn("begin_"+d)
		b.WithPanel(packetsBy(text{
			"Delay, packet by packet, " + d,
			"One-way delay of each packet over the time at which it was sent, since the begin of the load; a lost packet is at 0, in red. The delay rises while the queue fills, and packets are lost when it is full. The load is the part of the transfer with the most packets; before it are single packets on the idle link. At most " + mostPoints + " packets.",
			"s", noRunPackets,
		}, d, since, elapsedTitle,
			packet("sent_seconds")+" >= "+numberIn("begin_"+d)+" - 0.5", packet("sent_seconds")+" <= "+numberIn("begin_"+d)+" + $first").
			Height(12).OverrideByName(elapsedTitle, props{prop("unit", "s"), prop("custom.axisLabel", elapsedTitle)}))
	}
}

// packetsBy plots delay and lost packets of a direction over a field.
func packetsBy(t text, direction, x, title string, more ...string) *xychart.PanelBuilder {
	of := func(y string, more ...string) influxQuery {
		return rawTable(selection{
			columns: []string{as(x, title), y}, from: name(point.RunPacket), limit: mostPoints,
			where: inRun(append([]string{is(name(metric.Direction), direction)}, more...)...),
		}.String())
	}
	return scatter(t,
		of(as(packet("delay_seconds"), "delay"), append(more, packet("lost")+" = 0")...),
		of(as(packet("seq")+" * 0", "lost"), append(more, packet("lost")+" = 1")...),
	).AxisSoftMin(0).
		OverrideByName("delay", props{color(colorOf(direction))}).
		OverrideByName("lost", props{color(red), prop("custom.pointSize", map[string]int{"fixed": 4}), prop("custom.pointShape", "square")})
}

func rateSweepCellsRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("Rate sweep (probe saturation in mode sweep)"))
	b.WithPanel(rawCells(text{
		"Steps of the rate sweep",
		"Throughput and loss of each step by offered rate. Corresponds to MASCOTS figure 2.",
		"none", "No completed run in mode sweep with this ID",
	}, selection{from: ofRun(metric.SweepThroughput), where: inRun()},
		cell{title: "direction", expr: name(metric.Direction)},
		cell{title: "offered", expr: name(metric.OfferedL), unit: inBits, bytes: true, own: props{prop("decimals", 2)}},
		cell{title: "throughput", expr: "8 * " + fieldOf(metric.SweepThroughput, ""), unit: inBits, own: props{prop("decimals", 2)}},
		cell{title: "loss", expr: fieldOf(metric.SweepLoss, ""), unit: "percentunit", own: lossColors()},
	).Height(7).WithTransformation(sortedBy("offered")).WithTransformation(sortedBy("direction")))
}

// lossColors colors the cells of a loss ratio.
func lossColors() props {
	return props{
		prop("decimals", 2), prop("custom.cellOptions", map[string]string{"type": "color-text"}),
		prop("thresholds", thresholds(step{0, green}, step{0.001, orange}, step{0.05, red})),
	}
}

func thresholds(ss ...step) any { return must(steps(ss...)) }

// must builds a part of a property.
func must[T any](b cog.Builder[T]) T {
	built, err := b.Build()
	if err != nil {
		panic(err)
	}
	return built
}
