package main

import (
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/trend"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/probes/tcpsweep"
)

// Matchers of the quartiles of cells.
const (
	quarter       = metric.QuantileL + `="0.25"`
	threeQuarters = metric.QuantileL + `="0.75"`
)

// bothAuto are the cells with auto-tuning at both ends, which have no place on an axis of sizes.
const bothAuto = sendBuffer + `="auto",` + receiveBuffer + `="auto"`

// size is the label with the size of a cell's buffers.
const size = "buffer_bytes"

// algorithms are the congestion controls with a color of their own; others take one of Grafana's palette. Blue, orange and
// green have other meanings.
var algorithms = []struct{ name, color string }{
	{"cubic", purple}, {"reno", "dark-yellow"}, {"bbr", red}, {"vegas", "#1aa3a3"}, {"veno", "#a3541a"}, {"westwood", "#d44fa0"},
}

// overridable is a panel with overrides.
type overridable[P any] interface {
	OverrideByRegexp(pattern string, own []dashboard.DynamicConfigValue) P
}

// inAlgorithms colors the lines of each congestion control.
func inAlgorithms[P overridable[P]](p P) P {
	for _, v := range algorithms {
		p = p.OverrideByRegexp("/^"+v.name+"( |$)/", props{color(v.color)})
	}
	return p
}

func bufferCurvesRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("By buffer size, $direction"))
	rate := func(matchers ...string) string {
		return bitsOf(sweptRate(append(matchers, chosen)...))
	}
	best := "max by (congestion_control) (" + rate(half) + ")"
	b.WithPanel(byBuffer(text{
		"Throughput by buffer size, $direction",
		"Median throughput of the repetitions of the last run between their quartiles (shaded), by the size that an application sets: the send buffer, or the receive buffer where the send buffer is auto-tuned; of several cells of a size the largest. Dashed: auto-tuning at both ends. Bars: the smallest sufficient buffer (knee) and the bandwidth-delay product (BDP, thin), as high as the best throughput; without a bar \"knee\" the run cannot tell.",
		inBits, noBufferSweep,
	}, quartilesBySize(rate)+" or "+
		mark("knee", from(swept, tcpsweep.KneeDesc, chosen), best)+" or "+mark("BDP", "round("+from(swept, tcpsweep.BDPDesc, chosen)+")", best)).
		OverrideByRegexp("/ (knee|BDP)$/", props{
			prop("custom.drawStyle", "bars"), prop("custom.barMaxWidth", 6), prop("custom.barWidthFactor", 0.1), prop("custom.fillOpacity", 60), prop("custom.lineWidth", 0), prop("custom.showPoints", "never"),
		}).
		OverrideByRegexp("/ BDP$/", props{prop("custom.barMaxWidth", 2)}))
	b.WithPanel(modelsByBuffer())
	b.WithPanel(byBuffer(text{
		"Round-trip time by buffer size, $direction",
		"Median of the sender's smoothed round-trip time between its quartiles (shaded). Above the sufficient buffer a larger one adds delay and no throughput, until the queue of the link drops packets. Dashed: auto-tuning at both ends.",
		"s", noBufferSweep,
	}, quartilesBySize(func(matchers ...string) string {
		return from(swept, tcpsweep.RTTDesc, append(matchers, chosen)...)
	})))
	b.WithPanel(byBuffer(text{
		"Retransmitted by buffer size, $direction",
		"Share of the sent payload that was sent again, median of the repetitions. Dashed: auto-tuning at both ends. Corresponds to Halepovic figure 7 and table 2.",
		"percentunit", noBufferSweep,
	}, medianBySize(func(matchers ...string) string {
		return from(swept, tcpsweep.RetransmittedDesc, append(matchers, chosen)...)
	})).AxisSoftMax(leastRatio))
}

// byBuffer is a panel over the size of the buffers, with a curve per congestion control.
func byBuffer(t text, query string) *trend.PanelBuilder {
	p := curve(t, axis{label: size, column: congestionControl, unit: "bytes", log: 2}, query).Min(0).Height(10)
	p.OverrideByRegexp("/ (25|75) %$/", valuedEdge()).
		OverrideByRegexp("/ auto$/", props{dashed(), prop("custom.showPoints", "never"), prop("custom.lineWidth", 1)})
	for _, v := range algorithms {
		p.OverrideByName(v.name+" 75 %", filledTo(v.name+" 25 %", 20))
	}
	return inAlgorithms(p)
}

// bySize gives the cells of a fixed size the label size, and takes the largest of a size by another label.
func bySize(by string, series func(matchers ...string) string, matchers ...string) string {
	sized := func(label string, more ...string) string {
		return `label_replace(` + series(append(more, matchers...)...) + `, "` + size + `", "$1", "` + label + `", "(.*)")`
	}
	return "max by (" + size + ", " + by + ") (" + sized(sendBuffer, sendBuffer+`!="auto"`) + " or " +
		sized(receiveBuffer, sendBuffer+`="auto"`, receiveBuffer+`!="auto"`) + ")"
}

// suffixedBy extends the names of the curves.
func suffixedBy(suffix, expr string) string {
	return `label_replace(` + expr + `, "` + congestionControl + `", "$1` + suffix + `", "` + congestionControl + `", "(.*)")`
}

// autoLine is the value of the cell with auto-tuning at each size.
func autoLine(series func(matchers ...string) string, matchers ...string) string {
	return suffixedBy(" auto", bySize(congestionControl, series, matchers...)+" * 0 + on (congestion_control) group_left () max by (congestion_control) ("+series(append(matchers, bothAuto)...)+")")
}

// quartilesBySize are the median, the quartiles, and the line of auto-tuning.
func quartilesBySize(series func(matchers ...string) string) string {
	return strings.Join([]string{
		bySize(congestionControl, series, half), suffixedBy(" 25 %", bySize(congestionControl, series, quarter)), suffixedBy(" 75 %", bySize(congestionControl, series, threeQuarters)),
		autoLine(series, half),
	}, " or ")
}

// medianBySize is of families without quantiles.
func medianBySize(series func(matchers ...string) string) string {
	return bySize(congestionControl, series) + " or " + autoLine(series)
}

// mark is a point at a size, which is a value: count_values converts it to the label.
func mark(name, sizes, height string) string {
	return suffixedBy(" "+name, `count_values by (congestion_control) ("`+size+`", `+sizes+`) * 0 + on (congestion_control) group_left () `+height)
}

// modelsByBuffer shows the models beside the measured throughput, of one congestion control.
func modelsByBuffer() *trend.PanelBuilder {
	one := congestionControl + `="$congestion_control"`
	measured := func(rank, name string) string {
		return `label_replace(sum without (congestion_control) (` + bySize(congestionControl, func(matchers ...string) string {
			return bitsOf(sweptRate(append(matchers, rank, chosen, one)...))
		}) + `), "` + metric.ModelL + `", "` + name + `", "", "")`
	}
	models := bySize(metric.ModelL, func(matchers ...string) string {
		return bitsOf(from(swept, tcpsweep.ModelDesc, append(matchers, chosen, one)...))
	})
	return curve(text{
		"Models beside the throughput, $congestion_control $direction",
		"Measured median throughput between its quartiles (shaded), and what models predict from the measured window, round-trip time, timeout and retransmissions: 0.75 W/RTT (a sawtooth window), window/RTT, Mathis (losses alone; none without a retransmission), Padhye (losses, timeouts and window). Select the congestion control above. Corresponds to Halepovic figures 14 and 16.",
		inBits, noBufferSweep,
	}, axis{label: size, column: metric.ModelL, unit: "bytes", log: 2},
		strings.Join([]string{measured(half, "measured"), measured(quarter, "measured 25 %"), measured(threeQuarters, "measured 75 %"), models}, " or ")).
		Min(0).Height(10).
		OverrideByRegexp("/ (25|75) %$/", valuedEdge(color(gray))).
		OverrideByName("measured 75 %", filledTo("measured 25 %", 20)).
		OverrideByName("measured", props{color(gray), prop("custom.lineWidth", 3)}).
		OverrideByName("sawtooth", props{color(purple), dashed(), prop("displayName", "0.75 W/RTT")}).
		OverrideByName("window", props{color("#1aa3a3"), dashed(), prop("displayName", "window/RTT")}).
		OverrideByName("mathis", props{color("dark-yellow"), dashed(), prop("displayName", "Mathis")}).
		OverrideByName("padhye", props{color(red), dashed(), prop("displayName", "Padhye")})
}
