package main

import (
	"fmt"
	"strconv"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	tablepanel "github.com/grafana/grafana-foundation-sdk/go/table"

	"oneway.example/exporter/core/metric"
)

const noPairs = slimOr + "no cell with 10 runs of the probe size_sweep in A and in B in this time range"

// cellsRow has the cells of size sweeps of both conditions: D-ITG's tables.
func cellsRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("Cells of packet size and packet rate, $direction"))
	b.WithPanel(cellsOfConditions())
	for _, c := range []struct {
		t  text
		of *metric.Desc
	}{
		{text{"Received, B less A, $direction", "Median received rate of B less the one of A, in bits per second, by packet size (down) and packet rate (across); only cells with 10 or more runs in both conditions.", inBits, noPairs}, metric.SizeSweepReceived},
		{text{"Delay, B less A, $direction", "Median delay of B less the one of A, by packet size (down) and packet rate (across); only cells with 10 or more runs in both conditions.", "s", noPairs}, metric.SizeSweepDelay},
	} {
		b.WithPanel(cells(c.t, cellDifference(c.of), props{prop("color", map[string]any{"mode": "continuous-BlPu"})}, steps(step{0, gray})))
	}
}

// runsOnce has the value of a run in one evaluation of those each two minutes: between one and three minutes after its end, when each server
// has scraped it. A gauge keeps the value of a run until the next one, so that its mean over time would count a run by how long it stood.
func runsOnce(d *metric.Desc) string {
	end := from(thisAgent, metric.RunLast)
	const by = "job, instance, path, probe"
	return from(thisAgent, d, chosen) + " and on (" + by + ") (" + end + " <= time() - 60 and " + end + " > time() - 180)"
}

// cellsOf applies a function over time, with its parameter, to the runs of the condition, and joins its paths.
func (c condition) cellsOf(d *metric.Desc, function, join string) string {
	return join + " by (packet_bytes, packet_rate) " + c.chosenPaths(function+"("+runsOnce(d)+")[$__range:2m] offset "+c.shift+")")
}

// median is of the runs of each path; of several paths it is the mean of their medians.
func (c condition) median(d *metric.Desc) string {
	return c.cellsOf(d, "quantile_over_time(0.5, ", "avg")
}

// runsOf is the number of runs that a cell has.
func (c condition) runsOf() string { return c.cellsOf(metric.SizeSweepSent, "count_over_time(", "sum") }

// fewest is the number of runs of the condition that has fewer.
func fewest() string {
	both := conditions()
	a, b := both[0].runsOf(), both[1].runsOf()
	return "(" + a + " < " + b + " or " + b + ")"
}

func cellDifference(d *metric.Desc) string {
	both := conditions()
	return "(" + both[1].median(d) + " - " + both[0].median(d) + ") and (" + fewest() + " >= " + plain(enough) + ")"
}

// cellsOfConditions has a row of each cell.
func cellsOfConditions() *tablepanel.PanelBuilder {
	cs := []column{
		{title: sizeTitle, label: metric.PacketBytesL, empty: "no cells", own: props{prop("unit", packetBytes), prop("custom.width", 110)}},
		{title: "packets/s", label: metric.PacketRateL, own: props{prop("custom.width", 90)}},
	}
	few := map[string]dashboard.ValueMappingResult{}
	for n := range enough {
		few[strconv.Itoa(n)] = word(fmt.Sprintf("%d: too few", n), orange, int32(n))
	}
	for _, c := range conditions() {
		for _, q := range []struct {
			title, expr, unit string
			decimals          int
		}{
			{"received", bitsOf("(" + c.median(metric.SizeSweepReceived) + ")"), inBits, 2},
			{"loss", c.median(metric.SizeSweepLoss), "percentunit", 2},
			{"delay", c.median(metric.SizeSweepDelay), "s", 1},
			{"|IPDV|", c.median(metric.SizeSweepIPDV), "s", 1},
		} {
			cs = append(cs, column{title: q.title + " " + c.name, query: q.expr, unit: q.unit, own: props{prop("decimals", q.decimals)}})
		}
		cs = append(cs, column{title: "n " + c.name, query: c.runsOf(), own: props{
			prop("decimals", 0), prop("custom.width", 110), cellColor("color-text"),
			prop("mappings", append(values(few), missing(gray))),
		}})
	}
	return columns(text{
		"Cells by size and rate, A and B, $direction",
		"Each combination of packet size and packet rate in both conditions: medians over the runs of the time range of received rate, loss, delay and mean |IPDV|, each run counted once; of several paths of a condition the mean of their medians. n is the number of runs; a number below 10 is marked, since medians of so few runs may differ by chance alone. The D-ITG report has the mean of 20 repetitions (10 over the wide area). Corresponds to its figures 4 to 18, 20, 24, 26 and 30.",
		"none", noSweeps,
	}, cs...).Span(24).Height(12).Thresholds(steps(step{0, gray})).
		WithTransformation(numberOf(sizeTitle)).WithTransformation(numberOf("packets/s")).
		WithTransformation(sortedBy("packets/s")).WithTransformation(sortedBy(sizeTitle))
}
