package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	tablepanel "github.com/grafana/grafana-foundation-sdk/go/table"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/rules"
	"oneway.example/exporter/probes/message"
)

// Selectors, labels and texts of short flows and of messages.
const (
	short        = anyTest + `,probe="$short_flows"`
	messaged     = anyTest + `,probe="$messages"`
	flowBytes    = "flow_bytes"
	messageBytes = "message_bytes"
	transport    = "transport"
	noShort      = slimOr + "no completed run of the probe tcp_short on this path"
	noMessages   = slimOr + "no completed run of the probe message on this path"
)

// inBytes shows sizes as numbers of bytes, as configured.
var inBytes = props{prop("unit", "decbytes"), prop("decimals", 0), prop("custom.align", "right")}

func shortFlowsRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("Completion time of short flows"))
	quantile := func(rank string) string {
		return fresh(short, from(short, metric.TCPCompletionQuantile, rank, chosen))
	}
	b.WithPanel(bySizeOfFlow(runs(plot(text{
		"Completion time, run by run, $direction",
		"Median and 95th percentile (dashed) of the completion times of the short flows of each run by size, from the beginning of the handshake to the last byte. A flow that did not end is longer than all others: many of them make a gap. Select the direction above.",
		"s", noShort + " in this time range",
	},
		ranged(quantile(half), "{{flow_bytes}}"), ranged(quantile(most), "{{flow_bytes}} 95 %"),
	)).Height(9).ScaleDistribution(scale(10)).Thresholds(steps(step{0, "transparent"})).
		OverrideByRegexp("/^[0-9]+$/", props{prop("displayName", "${__field.labels.flow_bytes} B"), prop("custom.lineWidth", 2)}).
		OverrideByRegexp("/ 95 %$/", props{prop("displayName", "${__field.labels.flow_bytes} B 95 %"), dashed(), prop("custom.pointSize", 3)})))
	b.WithPanel(bySizeOfFlow(curve(text{
		"Completion time, CDF by size, $direction",
		"Share of the short flows of all runs in the time range that completed within this time; flows that did not end are not in it. " + readOff,
		"percentunit", slimOr + "fewer than 2 completed runs of the probe tcp_short in this time range",
	}, axis{label: "le", column: flowBytes, unit: "s", log: 10},
		distribution{metric.TCPCompletion, short, []string{chosen}, flowBytes, false}.curves()).
		Min(0).Max(1).
		OverrideByRegexp("/^[0-9]+$/", props{prop("displayName", "${__field.name} B")}).
		OverrideByRegexp("/"+ofBuckets+"$/", notConnected)))
	each := func(expr string) string { return "max by (direction, flow_bytes) (" + expr + ")" }
	quantiles := func(rank string) string {
		return each(from(short, metric.TCPCompletionQuantile, rank))
	}
	unfinished := from(short, metric.TCPUnfinished)
	p := columns(text{
		"Short flows by size",
		"Completion times of the short flows of the last run, and the flows in the time range that did not end within their limit of time. A flow of one initial window (10 segments, about 14 kB) needs 2 round trips with the handshake; a lost SYN adds 1 s, a lost last segment at least 200 ms.",
		"none", noShort,
	},
		column{title: "direction", label: metric.Direction, empty: "no completed run"},
		column{title: "size", label: flowBytes, own: inBytes},
		column{title: "unfinished", query: "round(" + each(rules.Increase(unfinished, "$__range")) + ")", own: props{prop("decimals", 0)}},
		column{title: "median", query: quantiles(half), unit: "s"},
		column{title: "95 %", query: quantiles(most), unit: "s"},
	).Span(24).Height(8).Decimals(1).Thresholds(steps(step{0, gray}))
	b.WithPanel(p.WithTransformation(numberOf("size")).WithTransformation(sortedBy("size")).WithTransformation(sortedBy("direction")))
}

// bySizeOfFlow colors the lines by the number of digits of the size: 1 kB, 10 kB, 100 kB, 1 MB and more.
func bySizeOfFlow[P overridable[P]](p P) P {
	for _, c := range []struct{ digits, color string }{{"{1,4}", "#d44fa0"}, {"{5}", "#1aa3a3"}, {"{6}", purple}, {"{7,}", red}} {
		p = p.OverrideByRegexp("/^[0-9]"+c.digits+"([ ,]|$)/", props{color(c.color)})
	}
	return p
}

func messagesRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("UDP against TCP at one message size"))
	b.WithPanel(messagesTable())
	b.WithPanel(runs(lines(text{
		"Messages, run by run, $direction",
		"Payload that arrived in each run by transport and message size, and what the sender gave to UDP (dotted): TCP holds a sender back, UDP does not. Select the direction above.",
		inBits, noMessages + " in this time range",
	},
		ranged(fresh(messaged, bitsOf(from(messaged, message.ThroughputDesc, chosen))), "{{transport}} {{message_bytes}}"),
		ranged(fresh(messaged, bitsOf(from(messaged, message.OfferedDesc, chosen, transport+`="udp"`))), "offered {{message_bytes}}"),
	)).Span(8).Height(9).Thresholds(steps(step{0, "transparent"})).
		OverrideByRegexp("/^udp /", props{color(red), prop("displayName", "UDP, ${__field.labels.message_bytes} B")}).
		OverrideByRegexp("/^tcp /", props{color(purple), prop("displayName", "TCP, Nagle on, ${__field.labels.message_bytes} B")}).
		OverrideByRegexp("/^tcp_no_delay /", props{color("dark-yellow"), prop("displayName", "TCP, Nagle off, ${__field.labels.message_bytes} B")}).
		OverrideByRegexp("/^offered /", props{color(gray), dotted(), prop("custom.showPoints", "never"), prop("displayName", "offered, ${__field.labels.message_bytes} B")}))
}

func messagesTable() *tablepanel.PanelBuilder {
	each := func(expr string) string {
		return "max by (direction, message_bytes, transport) (" + expr + ")"
	}
	arrived, offered := each(from(messaged, message.ThroughputDesc)), each(from(messaged, message.OfferedDesc))
	p := columns(text{
		"UDP against TCP",
		"Messages of one size at one rate in the last run, by transport: payload that the sender gave to it, payload that arrived, its share of the offered one, the share of the UDP packets that were lost, and of the TCP payload that was retransmitted. Nagle's algorithm joins small messages to full segments. Corresponds to the D-ITG report, section 2.2.",
		"none", noMessages,
	},
		column{title: "direction", label: metric.Direction, empty: "no completed run"},
		column{title: "message", label: messageBytes, own: inBytes},
		column{title: "transport", label: transport, own: props{prop("custom.width", 120), prop("mappings", values(map[string]dashboard.ValueMappingResult{
			"udp": word("UDP", red, 0), "tcp": word("TCP, Nagle on", purple, 1), "tcp_no_delay": word("TCP, Nagle off", "dark-yellow", 2),
		})), prop("custom.cellOptions", map[string]any{"type": common.TableCellDisplayModeColorText})}},
		column{title: "offered", query: bitsOf(offered), unit: inBits, own: props{prop("decimals", 2)}},
		column{title: "arrived", query: bitsOf(arrived), unit: inBits, own: props{prop("decimals", 2)}},
		column{title: "arrived / offered", query: arrived + " / (" + offered + " > 0)", unit: "percentunit", own: props{prop("custom.width", 130)}},
		column{title: "lost", query: each(from(messaged, message.LossDesc)), unit: "percentunit", own: props{prop("decimals", 2)}},
		column{title: "retransmitted", query: each(from(messaged, message.RetransmittedDesc)), unit: "percentunit", own: props{prop("decimals", 2), prop("custom.width", 112)}},
	).Span(16).Height(9).Decimals(1).Thresholds(steps(step{0, gray}))
	return p.WithTransformation(sortedBy("transport")).WithTransformation(numberOf("message")).
		WithTransformation(sortedBy("message")).WithTransformation(sortedBy("direction"))
}
