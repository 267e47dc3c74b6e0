package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/xychart"

	"oneway.example/exporter/metric"
	"oneway.example/exporter/point"
)

const noRunPackets = "No packets of a run of this path and probe in this time range"

// elapsedTitle is the column and the axis of the time since a transfer's begin.
const elapsedTitle = "time since the begin of the transfer"

// mostPoints limits the points of a panel, for the browser's sake.
const mostPoints = "20000"

// rawPacketsBoard shows a run of a load test over UDP packet by packet, and its results by cell.
func rawPacketsBoard() *boardBuilder {
	b := rawBoard("Raw packets", rawPacketsUID, "now-24h", "A run of a load test over UDP packet by packet, both directions: the first seconds, packet trains, and the cells of sweeps. From InfluxDB.",
		toPage(page{"Link under load", loadUID, "Load tests of this path over time"}, samePath),
		toPage(page{"Capacity", capacityUID, "Packet trains and size sweeps of this path over time"}, samePath),
		toPage(rawTCPPage(), samePath))
	rawPathVariables(b, point.RunPacket)
	b.WithVariable(idVariable(point.RunField, "Run", point.RunPacket))
	b.WithVariable(dashboard.NewCustomVariableBuilder("first").Label("First seconds").
		Values(dashboard.StringOrMap{String: new("1,2,5,10,30,120")}).
		Current(dashboard.VariableOption{
			Text: dashboard.StringOrArrayOfString{String: new("5")}, Value: dashboard.StringOrArrayOfString{String: new("5")},
		}))
	firstSecondsRow(b)
	trainsRow(b)
	rateSweepCellsRow(b)
	sizeSweepCellsRow(b)
	return b
}

func firstSecondsRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("First $first s of each transfer"))
	for _, d := range []string{"forward", "reverse"} {
		b.WithPanel(packetsBy(text{
			"Delay, packet by packet, " + d,
			"One-way delay of each packet over the time at which it was sent, since the begin of its transfer; a lost packet is at 0, in red. The delay rises while the queue fills, and packets are lost when it is full. At most " + mostPoints + " packets. Thesis figure 6.1b.",
			"s", noRunPackets,
		}, d, packet("sent_seconds"), elapsedTitle, packet("sent_seconds")+" <= $first").Height(11))
	}
}

// packetsBy plots delay and lost packets of a direction over a field.
func packetsBy(t text, direction, x, title string, more ...string) *xychart.PanelBuilder {
	of := func(y string, more ...string) influxQuery {
		return rawTable(selection{
			columns: []string{as(x, title), y}, from: name(point.RunPacket), limit: mostPoints,
			where: inRun(append(more, is(name(metric.Direction), direction))...),
		}.String())
	}
	return scatter(t, "s",
		of(as(packet("delay_seconds"), "delay"), append(more, packet("delay_seconds")+" > -1000000")...),
		of(as(packet("seq")+" * 0", "lost"), append(more, packet("lost")+" = 1")...),
	).AxisSoftMin(0).
		OverrideByName("delay", props{color(colorOf(direction))}).
		OverrideByName("lost", props{color(red), prop("custom.pointSize", map[string]int{"fixed": 4}), prop("custom.pointShape", "square")})
}

// trainsRow shows packet trains: each a ramp of the delay, whose slope is the dispersion.
func trainsRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("Packet trains (probe train)"))
	for _, d := range []string{"forward", "reverse"} {
		b.WithPanel(packetsBy(text{
			"Delay by packet number, " + d,
			"One-way delay of each packet over its number; lost packets are at 0. A train is a ramp: each packet waits for those before it, and the rise per packet is the dispersion, packet size divided by capacity. Zoom in by selecting an area. WPI report figure 15.",
			"s", noRunPackets,
		}, d, packet("seq"), "packet number"))
	}
	b.WithPanel(scatter(text{
		"Dispersion by packet size",
		"Median dispersion of the clean trains by packet size, per packet, as the run's result has it: on a link of constant capacity a straight line through 0. WPI report figure 15.",
		"s", "No completed run of the probe train with this ID",
	}, "decbytes", trainResult("forward"), trainResult("reverse")).Min(0).
		WithTransformation(numberOf(sizeTitle)).
		PointSize(xychart.NewXychartFieldConfigPointSizeBuilder().Fixed(8)).
		OverrideByName(sizeTitle, props{prop("unit", "decbytes"), prop("custom.axisLabel", sizeTitle), prop("min", 0)}).
		OverrideByName("forward", props{color(blue)}).
		OverrideByName("reverse", props{color(orange)}))
	rate := func(title, rank string, d *metric.Desc) cell {
		return cell{title: title, expr: "8 * " + fieldOf(d, rank), unit: inBits, own: props{prop("decimals", 3)}}
	}
	b.WithPanel(rawCells(text{
		"Trains by packet size",
		"Results of the run by direction and packet size: quantiles of the capacity among the trains, error bound of the median, dispersion per packet.",
		"none", "No completed run of the probe train with this ID",
	}, selection{from: ofRun(metric.Capacity), where: inRun()},
		cell{title: "direction", expr: name(metric.Direction)},
		cell{title: sizeTitle, expr: name(metric.PacketBytesL), unit: "decbytes"},
		rate("5 %", "0.05", metric.Capacity), rate("median", "0.5", metric.Capacity), rate("95 %", "0.95", metric.Capacity),
		rate("± bound", "", metric.CapacityBound),
		cell{title: "dispersion", expr: fieldOf(metric.TrainDispersion, ""), unit: "s", own: props{prop("decimals", 3)}},
	).Span(12).WithTransformation(numberOf(sizeTitle)).WithTransformation(sortedBy(sizeTitle)).WithTransformation(sortedBy("direction")))
}

const sizeTitle = "packet size"

func trainResult(direction string) influxQuery {
	return rawTable(selection{
		columns: []string{as(name(metric.PacketBytesL), sizeTitle), as(fieldOf(metric.TrainDispersion, ""), direction)},
		from:    ofRun(metric.TrainDispersion), where: inRun(is(name(metric.Direction), direction)),
	}.String())
}

func rateSweepCellsRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("Rate sweep (probe saturation in mode sweep)"))
	b.WithPanel(rawCells(text{
		"Steps of the rate sweep",
		"Throughput and loss of each step by offered rate. Corresponds to MASCOTS figure 2.",
		"none", "No completed run in mode sweep with this ID",
	}, selection{from: ofRun(metric.SweepThroughput), where: inRun()},
		cell{title: "direction", expr: name(metric.Direction)},
		cell{title: "offered", expr: name(metric.OfferedL), unit: "Bps"},
		cell{title: "throughput", expr: fieldOf(metric.SweepThroughput, ""), unit: "Bps", own: props{prop("decimals", 2)}},
		cell{title: "loss", expr: fieldOf(metric.SweepLoss, ""), unit: "percentunit", own: lossColors()},
	).WithTransformation(numberOf("offered")).WithTransformation(sortedBy("offered")).WithTransformation(sortedBy("direction")))
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

func sizeSweepCellsRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("Packet size by packet rate (probe size_sweep)"))
	rate := func(title string, d *metric.Desc) cell {
		return cell{title: title, expr: "8 * " + fieldOf(d, ""), unit: inBits, own: props{prop("decimals", 2)}}
	}
	b.WithPanel(rawCells(text{
		"Cells of the size sweep",
		"Each combination of packet size and packet rate: rate sent and received, loss, median delay with its error bound, mean absolute variation of consecutive delays. Corresponds to the tables of the D-ITG report.",
		"none", "No completed run of the probe size_sweep with this ID",
	}, selection{from: ofRun(metric.SizeSweepReceived), where: inRun()},
		cell{title: "direction", expr: name(metric.Direction)},
		cell{title: sizeTitle, expr: name(metric.PacketBytesL), unit: "decbytes"},
		cell{title: "packets/s", expr: name(metric.PacketRateL), own: props{prop("decimals", 0)}},
		rate("sent", metric.SizeSweepSent), rate("received", metric.SizeSweepReceived),
		cell{title: "loss", expr: fieldOf(metric.SizeSweepLoss, ""), unit: "percentunit", own: lossColors()},
		cell{title: "delay", expr: fieldOf(metric.SizeSweepDelay, ""), unit: "s", own: props{prop("decimals", 2)}},
		cell{title: "± bound", expr: fieldOf(metric.SizeSweepDelayBound, ""), unit: "s"},
		cell{title: "mean |IPDV|", expr: fieldOf(metric.SizeSweepIPDV, ""), unit: "s"},
	).Height(14).WithTransformation(numberOf(sizeTitle)).WithTransformation(numberOf("packets/s")).
		WithTransformation(sortedBy("packets/s")).WithTransformation(sortedBy(sizeTitle)).WithTransformation(sortedBy("direction")))
}
