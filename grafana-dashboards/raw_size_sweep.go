package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/xychart"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/output/point"
)

const noCells = "No completed run of a probe size_sweep of this path in this time range"

// rawSizeSweepBoard shows the cells of one run of a size sweep.
func rawSizeSweepBoard() *boardBuilder {
	measurement, _ := place(metric.SizeSweepReceived, "")
	measurement = point.OfRun(measurement)
	b := rawBoard("Raw size sweep", rawSizeSweepUID, "now-24h", "The cells of one run of a size sweep: rates, loss and delay by packet size and packet rate. From InfluxDB.",
		toPage(page{capacityTitle, capacityUID, "Size sweeps of this path over time"}, samePath),
		toPage(rawPacketsPage(), samePath), toPage(rawTrainsPage(), samePath), toPage(rawTCPPage(), samePath))
	rawPathVariables(b, measurement)
	b.WithVariable(idVariable(point.RunField, "Run", measurement))
	b.WithRow(dashboard.NewRowBuilder("Received against sent"))
	for _, d := range directions() {
		against := func(title string, d *metric.Desc, direction string) influxQuery {
			return rawTable(selection{
				columns: []string{as("8 * "+fieldOf(metric.SizeSweepSent, ""), "sent"), as("8 * "+fieldOf(d, ""), title)},
				from:    ofRun(d), where: inRun(is(name(metric.Direction), direction)),
			}.String())
		}
		b.WithPanel(scatter(text{
			"Received against sent, " + d,
			"Rate that arrived over the rate that was sent, in IP-layer bits, a point for each cell; gray: all that was sent. Points below the gray ones lost packets: at the rate of the link, or at a limit of packets per second. Corresponds to the figures of the D-ITG report.",
			inBits, noCells,
		}, against("sent again", metric.SizeSweepSent, d), against("received", metric.SizeSweepReceived, d)).Min(0).
			PointSize(xychart.NewXychartFieldConfigPointSizeBuilder().Fixed(7)).
			OverrideByName("sent", props{prop("custom.axisLabel", "sent"), prop("min", 0)}).
			OverrideByName("sent again", props{color(gray), prop("displayName", "all of it"), prop("custom.pointSize", map[string]int{"fixed": 4})}).
			OverrideByName("received", props{color(colorOf(d))}))
	}
	b.WithRow(dashboard.NewRowBuilder(metric.TitleSizeSweep))
	rate := func(title string, d *metric.Desc) cell {
		return cell{title: title, expr: "8 * " + fieldOf(d, ""), unit: inBits, own: props{prop("decimals", 2)}}
	}
	b.WithPanel(rawCells(text{
		"Cells of the size sweep",
		"Each combination of packet size and packet rate: rate sent and received, loss, median delay with its error bound, mean absolute variation of consecutive delays. Corresponds to the tables of the D-ITG report.",
		"none", noCells,
	}, selection{from: ofRun(metric.SizeSweepReceived), where: inRun()},
		cell{title: "direction", expr: name(metric.Direction)},
		cell{title: sizeTitle, expr: name(metric.PacketBytesL), unit: packetBytes, own: props{prop("decimals", 0), prop("custom.minWidth", 105)}},
		cell{title: "packets/s", expr: name(metric.PacketRateL), own: props{prop("decimals", 0)}},
		rate("sent", metric.SizeSweepSent), rate("received", metric.SizeSweepReceived),
		cell{title: "loss", expr: fieldOf(metric.SizeSweepLoss, ""), unit: "percentunit", own: lossColors()},
		cell{title: "delay", expr: fieldOf(metric.SizeSweepDelay, ""), unit: "s", own: props{prop("decimals", 2)}},
		cell{title: "± bound", expr: fieldOf(metric.SizeSweepDelayBound, ""), unit: "s"},
		cell{title: "mean |IPDV|", expr: fieldOf(metric.SizeSweepIPDV, ""), unit: "s"},
	).Height(14).WithTransformation(numberOf(sizeTitle)).WithTransformation(numberOf("packets/s")).
		WithTransformation(sortedBy("packets/s")).WithTransformation(sortedBy(sizeTitle)).WithTransformation(sortedBy("direction")))
	return b
}
