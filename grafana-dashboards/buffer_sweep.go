package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	tablepanel "github.com/grafana/grafana-foundation-sdk/go/table"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/probes/tcpsweep"
)

// bufferSweepUID is the uid that links refer to.
const (
	bufferSweepTitle = "Buffer sweep"
	bufferSweepUID   = "oneway-buffer-sweep"
)

const (
	swept         = anyTest + `,probe="$tcp_sweep"`
	noBufferSweep = slimOr + "no completed run of the probe tcp_sweep on this path"
)

// Labels of the cells of a buffer sweep.
const (
	sendBuffer, receiveBuffer = "send_buffer_bytes", "receive_buffer_bytes"
	congestionControl         = "congestion_control"
)

// bufferSweepBoard shows TCP by the size of its buffers: throughput, round-trip time and retransmissions by congestion
// control, the smallest sufficient buffer, models, and all cells.
func bufferSweepBoard() *boardBuilder {
	return loadTestPage{
		title: bufferSweepTitle, uid: bufferSweepUID, from: "now-7d",
		description: "TCP by size of the socket buffers and congestion control: throughput, round-trip time, retransmissions, the smallest sufficient buffer, bandwidth-delay product, and models.",
		raw:         []cog.Builder[dashboard.DashboardLink]{toRaw(rawTCPPage(), "tcp_sweep")},
		variables: []cog.Builder[dashboard.VariableModel]{
			probeVariable("tcp_sweep", "Sweep", tcpsweep.ThroughputDesc),
			directionVariable(),
			labelValues(congestionControl, "Congestion control (models)", from(swept, tcpsweep.ThroughputDesc)),
		},
		rows: []func(*boardBuilder){
			bufferSummaryRow, bufferCurvesRow, bufferRunsRow, bufferCellsRow,
		},
	}.board()
}

// undecidedWords shows -1, a sweep without a sufficient fixed size, as text.
func undecidedWords() []dashboard.ValueMapping {
	return values(map[string]dashboard.ValueMappingResult{"-1": word("cannot tell", gray, 0)})
}

// knee is the smallest sufficient buffer, or -1.
func knee(matchers ...string) string {
	return from(swept, tcpsweep.KneeDesc, matchers...) + " or " + from(swept, tcpsweep.BDPDesc, matchers...) + " * 0 - 1"
}

// whyUndecided is the rule of the agent.
const whyUndecided = "\"cannot tell\": fewer than 3 repetitions, or repetitions that vary too much for a decision between neighboring sizes, or no fixed size reaches it, only auto-tuning; the run's report has the interval."

func bufferSummaryRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("The last run"))
	bothDirections(b, kneeTile)
	b.WithPanel(lastRunTile(swept).Span(4))
	b.WithPanel(quotaTile().Span(4))
	b.WithPanel(kneeTable())
}

func kneeTile(name, matcher string) *stat.PanelBuilder {
	return tile(text{
		"Sufficient buffer " + name, "Smallest buffer of the last run that reaches 95 % of the best throughput, by congestion control: the smaller of both buffers, as the kernel limits them. " + whyUndecided + "", "bytes",
		noBufferSweep,
	}, instant(knee(matcher), "{{congestion_control}}")).Span(8).Decimals(1).
		TextMode(common.BigValueTextModeValueAndName).Mappings(undecidedWords()).Thresholds(inColor(colorOf(name)))
}

func kneeTable() *tablepanel.PanelBuilder {
	each := func(expr string) string { return "max by (direction, congestion_control) (" + expr + ")" }
	best := each(sweptRate(half))
	return columns(text{
		"Best throughput and sufficient buffer",
		"By congestion control algorithm: best throughput of the last run; smallest buffer that reaches 95 % of it; best throughput times the least round-trip time, which a window needs to fill the path (RFC 6349 section 3.3.1); throughput with auto-tuning at both ends, and its share of the best. " + whyUndecided,
		"none", noBufferSweep,
	},
		column{title: "direction", label: metric.Direction, empty: "no completed run"},
		column{title: "algorithm", label: congestionControl},
		column{title: "best", query: bitsOf(best), unit: inBits, own: props{prop("decimals", 2)}},
		column{title: "sufficient buffer", query: each(knee()), unit: "bytes", own: props{
			prop("mappings", undecidedWords()), prop("custom.cellOptions", map[string]string{"type": "color-text"}), prop("custom.minWidth", 150),
		}},
		column{title: "bandwidth x delay", query: each(from(swept, tcpsweep.BDPDesc)), unit: "bytes", own: props{prop("custom.minWidth", 130)}},
		column{title: "auto-tuned", query: bitsOf(each(sweptRate(half, bothAuto))), unit: inBits, own: props{prop("decimals", 2)}},
		column{title: "auto / best", query: each(sweptRate(half, bothAuto)) + " / " + best, unit: "percentunit", own: props{prop("decimals", 0)}},
	).Span(24).Height(8).Decimals(1).Thresholds(steps(step{0, gray})).
		WithTransformation(sortedBy("algorithm")).WithTransformation(sortedBy("direction"))
}

// sweptRate selects the throughput of cells.
func sweptRate(matchers ...string) string { return from(swept, tcpsweep.ThroughputDesc, matchers...) }

// bufferRunsRow shows how the result changes from run to run.
func bufferRunsRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("Run by run, $direction"))
	best := func(matchers ...string) string {
		return "max by (job, instance, path, probe, congestion_control) (" + sweptRate(append(matchers, half, chosen)...) + ")"
	}
	b.WithPanel(inAlgorithms(runs(lines(text{
		"Best throughput, run by run",
		"Best throughput of each run by congestion control, and that of auto-tuning at both ends (dashed). Far apart: the limits of auto-tuning (tcp_rmem, tcp_wmem) are too small for this path.",
		inBits, noBufferSweep + " in this time range",
	},
		ranged(fresh(swept, bitsOf(best())), "{{congestion_control}}"),
		ranged(fresh(swept, bitsOf(best(bothAuto))), "{{congestion_control}} auto"),
	)).Height(9).Thresholds(steps(step{0, "transparent"})).
		OverrideByRegexp("/ auto$/", props{dashed()})))
	b.WithPanel(inAlgorithms(runs(lines(text{
		"Sufficient buffer, run by run",
		"Smallest buffer that reaches 95 % of the best throughput of each run, and the bandwidth-delay product (dotted). A run without a point cannot tell, or only auto-tuning reaches it.",
		"bytes", noBufferSweep + " with this result in this time range",
	},
		ranged(fresh(swept, from(swept, tcpsweep.KneeDesc, chosen)), "{{congestion_control}}"),
		ranged(fresh(swept, from(swept, tcpsweep.BDPDesc, chosen)), "{{congestion_control}} BDP"),
	)).Height(9).Thresholds(steps(step{0, "transparent"})).
		OverrideByRegexp("/ BDP$/", props{dotted()})))
}

// bufferCellsRow has the table of all cells.
func bufferCellsRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("All cells of the last run, $direction"))
	each := func(expr string) string {
		return "max by (congestion_control, send_buffer_bytes, receive_buffer_bytes) (" + expr + ")"
	}
	rate := func(rank string) string { return bitsOf(each(sweptRate(rank, chosen))) }
	rtt := func(rank string) string { return each(from(swept, tcpsweep.RTTDesc, rank, chosen)) }
	model := func(name string) string {
		return bitsOf(each(from(swept, tcpsweep.ModelDesc, metric.ModelL+`="`+name+`"`, chosen)))
	}
	size := props{prop("unit", "bytes"), prop("decimals", 1), prop("noValue", "auto"), prop("custom.align", "right")}
	p := columns(text{
		"Cells, $direction",
		"Each combination of send buffer, receive buffer and congestion control: quartiles of the throughput of its repetitions, quartiles of the sender's smoothed round-trip time, retransmitted share, and what models predict (Mathis: only with retransmissions). auto: auto-tuning.",
		"none", noBufferSweep,
	},
		column{title: "algorithm", label: congestionControl, empty: "no completed run"},
		column{title: "send", label: sendBuffer, own: size},
		column{title: "receive", label: receiveBuffer, own: size},
		column{title: "throughput", query: rate(half), unit: inBits, own: props{prop("decimals", 2)}},
		column{title: "25 %", query: rate(quarter), unit: inBits, own: props{prop("decimals", 2)}},
		column{title: "75 %", query: rate(threeQuarters), unit: inBits, own: props{prop("decimals", 2)}},
		column{title: "RTT", query: rtt(half), unit: "s"},
		column{title: "RTT 25 %", query: rtt(quarter), unit: "s"},
		column{title: "RTT 75 %", query: rtt(threeQuarters), unit: "s"},
		column{title: "retransmitted", query: each(from(swept, tcpsweep.RetransmittedDesc, chosen)), unit: "percentunit", own: props{prop("decimals", 2), prop("custom.width", 112)}},
		column{title: "0.75 W/RTT", query: model("sawtooth"), unit: inBits},
		column{title: "Mathis", query: model("mathis"), unit: inBits},
		column{title: "Padhye", query: model("padhye"), unit: inBits},
	).Span(24).Height(12).Decimals(1).MinWidth(80).Thresholds(steps(step{0, gray}))
	// Grafana sorts by one field and keeps the order of equal rows: the last is the first key.
	for _, field := range []string{"receive", "send"} {
		p.WithTransformation(numberOf(field)).WithTransformation(sortedBy(field))
	}
	b.WithPanel(p.WithTransformation(sortedBy("algorithm")))
}
