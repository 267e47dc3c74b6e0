package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/xychart"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/output/point"
)

const (
	noRunTrains = "No packets of a run of this path and probe in this time range"
	sizeTitle   = "packet size"
	numberTitle = "packet number"
	// packetBytes shows the size of a packet in full.
	packetBytes = "suffix:B"
)

// rawTrainsBoard shows packet trains: each a ramp of the delay, whose slope is the dispersion.
func rawTrainsBoard() *boardBuilder {
	measurement, _ := place(metric.TrainDispersion, "")
	measurement = point.OfRun(measurement)
	b := rawBoard("Raw trains", rawTrainsUID, "now-24h", "The packet trains of a run, packet by packet, and their dispersion by packet size. From InfluxDB.",
		toPage(page{capacityTitle, capacityUID, "Packet trains of this path over time"}, samePath),
		toPage(rawPacketsPage(), samePath), toPage(rawSizeSweepPage(), samePath), toPage(rawTCPPage(), samePath))
	rawPathVariables(b, measurement)
	b.WithVariable(idVariable(point.RunField, "Run", measurement))
	b.WithRow(dashboard.NewRowBuilder("Packet by packet"))
	for _, d := range directions() {
		b.WithPanel(packetsBy(text{
			"Delay by packet number, " + d,
			"One-way delay of each packet over its number in its transfer, all transfers of the run on top of each other; lost packets are at 0, in red. A train is a ramp: each packet waits for those before it, and the rise per packet is the dispersion, packet size divided by capacity, so that each packet size has a slope of its own. WPI report figure 15.",
			"s", noRunTrains,
		}, d, packet("seq"), numberTitle).Height(11).
			OverrideByName(numberTitle, props{prop("unit", "none"), prop("decimals", 0), prop("custom.axisLabel", numberTitle)}))
	}
	b.WithRow(dashboard.NewRowBuilder("By packet size"))
	b.WithPanel(scatter(text{
		"Dispersion by packet size",
		"Median dispersion of the clean trains by packet size, per packet, as the run's result has it: on a link of constant capacity a straight line through 0. WPI report figure 15.",
		"s", "No completed run of the probe train with this ID",
	}, trainResult("forward"), trainResult("reverse")).Min(0).
		WithTransformation(numberOf(sizeTitle)).
		PointSize(xychart.NewXychartFieldConfigPointSizeBuilder().Fixed(8)).
		OverrideByName(sizeTitle, props{prop("unit", packetBytes), prop("decimals", 0), prop("custom.axisLabel", sizeTitle), prop("min", 0)}).
		OverrideByName("forward", props{color(colorOf("forward"))}).
		OverrideByName("reverse", props{color(colorOf("reverse"))}))
	rate := func(title, rank string, d *metric.Desc) cell {
		return cell{title: title, expr: "8 * " + fieldOf(d, rank), unit: inBits, own: props{prop("decimals", 3)}}
	}
	b.WithPanel(rawCells(text{
		"Trains by packet size",
		"Results of the run by direction and packet size: quantiles of the capacity among the trains, error bound of the median, dispersion per packet.",
		"none", "No completed run of the probe train with this ID",
	}, selection{from: ofRun(metric.Capacity), where: inRun()},
		cell{title: "direction", expr: name(metric.Direction)},
		cell{title: sizeTitle, expr: name(metric.PacketBytesL), unit: packetBytes, own: props{prop("decimals", 0), prop("custom.minWidth", 105)}},
		rate("5 %", "0.05", metric.Capacity), rate("median", "0.5", metric.Capacity), rate("95 %", "0.95", metric.Capacity),
		rate("± bound", "", metric.CapacityBound),
		cell{title: "dispersion", expr: fieldOf(metric.TrainDispersion, ""), unit: "s", own: props{prop("decimals", 3)}},
	).Span(12).WithTransformation(numberOf(sizeTitle)).WithTransformation(sortedBy(sizeTitle)).WithTransformation(sortedBy("direction")))
	return b
}

func trainResult(direction string) influxQuery {
	return rawTable(selection{
		columns: []string{as(name(metric.PacketBytesL), sizeTitle), as(fieldOf(metric.TrainDispersion, ""), direction)},
		from:    ofRun(metric.TrainDispersion), where: inRun(is(name(metric.Direction), direction)),
	}.String())
}
