package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	tablepanel "github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/rules"
)

// Recorded series of deploy/prometheus/rules.

func tcpThroughputRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("Throughput, and what limited the sender"))
	b.WithPanel(goodputOverTime())
	bothDirections(b, limitShares)
	b.WithPanel(modelsTable())
}

// modelsTable shows the throughput beside what models predict.
func modelsTable() *tablepanel.PanelBuilder {
	each := func(d *metric.Desc, matchers ...string) string {
		return bitsOf("max by (direction) (" + from(transferred, d, matchers...) + ")")
	}
	model := func(title, name string) column {
		return column{title: title, query: each(metric.TCPModel, metric.ModelL+`="`+name+`"`), unit: inBits}
	}
	return columns(text{
		"Throughput and models, the last run",
		"Throughput of the last run, and what models predict from its window, round-trip time, timeout and retransmissions: 0.75 W/RTT (a sawtooth window), window/RTT, Mathis (losses alone; none without a retransmission), Padhye (losses, timeouts and window). Corresponds to Halepovic figures 14 and 16.",
		"none", noTCP,
	},
		column{title: "direction", label: metric.Direction, empty: "no completed run"},
		column{title: "throughput", query: each(metric.TCPThroughput), unit: inBits},
		model("0.75 W/RTT", "sawtooth"), model("window/RTT", "window"), model("Mathis", "mathis"), model("Padhye", "padhye"),
	).Span(24).Height(5).Decimals(2).Thresholds(steps(step{0, gray})).WithTransformation(sortedBy("direction"))
}

func goodputOverTime() *timeseries.PanelBuilder {
	p := runs(lines(text{
		"TCP throughput, run by run",
		"Payload per second of each completed run, and the rate of the link (dotted), configured (link_rate) or by the probes train or saturation, in IP-layer bits: with full packets TCP can reach about 96.5 % of it. Far below that line, see what limited the sender. Dashed: the median of the same hours of the last " + baselineDays() + ", below " + inPercent(rules.ThresholdThroughputRatio) + " of which is " + rules.TCPThroughputDegraded.Name + ".",
		inBits, noTCP + " in this time range",
	},
		ranged(fresh(transferred, bitsOf(from(transferred, metric.TCPThroughput))), "{{direction}}"),
		ranged(bitsOf(linkRate()), "{{direction}} link"),
		ranged(bitsOf(recFrom(transferred, rules.TCPThroughputBaseline.Name)), "{{direction}} baseline"),
	)).Span(24).Height(9).Thresholds(steps(step{0, "transparent"}))
	colored(p, "", prop("custom.lineWidth", 2))
	colored(p, " baseline", dashed(), prop("custom.showPoints", "never"))
	return colored(p, " link", dotted(), prop("custom.showPoints", "never"))
}

// colored sets the color of the lines of both directions with a suffix, and their own properties.
func colored(p *timeseries.PanelBuilder, suffix string, own ...dashboard.DynamicConfigValue) *timeseries.PanelBuilder {
	for _, d := range directions() {
		p.OverrideByName(d+suffix, append(props{color(colorOf(d))}, own...))
	}
	return p
}

// limitShares stacks the shares of a run; a run's values are shown until the next run.
func limitShares(name, matcher string) *timeseries.PanelBuilder {
	p := lines(text{
		"What limited the sender " + name,
		"Share of the last run by what limited the sender, shown until the next run. network: the congestion window or the pacing, as it should be. " + rules.TCPBufferLimited.Name + " fires when the two buffers have more than " + inPercent(rules.ThresholdTCPBufferLimitedRatio) + ". receive window, send buffer: larger buffers or auto-tuning make TCP faster (RFC 6349 section 3.3.1). application: the sender had nothing to send. Linux tcp_info (busy, rwnd_limited, sndbuf_limited).",
		"percentunit", noTCPDetail,
	}, ranged(from(transferred, metric.TCPLimited, matcher), "{{state}}")).
		Min(0).Max(1).LineWidth(0).FillOpacity(60).
		Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal).Group("A")).
		Thresholds(steps(step{0, "transparent"}))
	for _, s := range senderLimits() {
		p.OverrideByName(s.name, props{color(s.color), prop("displayName", metric.Words(s.name))})
	}
	return p
}

func tcpRoundTripRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("Round-trip time and connect time"))
	b.WithPanel(loadedRTT())
	b.WithPanel(colored(runs(lines(text{
		"Connect time, run by run",
		"Median time of the handshakes of each run, before its load: one round trip of the idle path and the delay of both hosts. One second more is a lost SYN (RFC 6298 section 2). The client opens the connections of both directions.",
		"s", noTCPDetail + " in this time range",
	}, ranged(fresh(transferred, from(transferred, metric.TCPConnect)), "{{direction}}"))).
		Height(9).Thresholds(steps(step{0, "transparent"})), ""))
}

// loadedRTT shows the quartiles as a band above the least.
func loadedRTT() *timeseries.PanelBuilder {
	rtt := func(rank string) string {
		return fresh(transferred, from(transferred, metric.TCPRTT, metric.QuantileL+`="`+rank+`"`))
	}
	p := runs(lines(text{
		"RTT under its own load, run by run",
		"Median of the sender's smoothed round-trip time while it sent, between the quartiles (shaded), and the least of the run (dotted). The distance from the least is the queue that the transfer keeps; it grows with the buffers of the sockets and of the link.",
		"s", noTCPDetail + " in this time range",
	},
		ranged(rtt("0.5"), "{{direction}}"), ranged(rtt("0.75"), "{{direction}} 75 %"), ranged(rtt("0.25"), "{{direction}} 25 %"),
		ranged(fresh(transferred, from(transferred, metric.TCPRTTMin)), "{{direction}} least"),
	)).Height(9).Thresholds(steps(step{0, "transparent"}))
	colored(p, "", prop("custom.lineWidth", 2))
	colored(p, " 25 %", prop("custom.lineWidth", 0), prop("custom.showPoints", "never"))
	colored(p, " least", dotted(), prop("custom.pointSize", 2))
	for _, d := range directions() {
		p.OverrideByName(d+" 75 %", append(filledTo(d+" 25 %", 20), color(colorOf(d)), prop("custom.lineWidth", 0), prop("custom.showPoints", "never")))
	}
	return p
}

func tcpLossRow(b *boardBuilder) {
	timeouts := from(transferred, metric.TCPTimeouts)
	b.WithRow(dashboard.NewRowBuilder("Retransmissions, timeouts and marks"))
	b.WithPanel(colored(runs(counted(text{
		"Retransmitted, run by run",
		"Share of the payload bytes sent in each run that were retransmissions; 1 less this share is the TCP efficiency of RFC 6349 section 4.2. The line is at " + inPercent(rules.ThresholdTCPRetransmittedRatio) + ", the default of " + rules.TCPRetransmissions.Name + ". A short run that overshoots a deep queue once can exceed it; many runs above it indicate loss or a policer. Corresponds to Halepovic figure 7 and table 2.",
		"percentunit", noTCP + " in this time range",
	}, leastRatio, ranged(fresh(transferred, from(transferred, metric.TCPRetransmitted)), "{{direction}}"))).Span(8).
		Thresholds(steps(step{0, "transparent"}, step{rules.ThresholdTCPRetransmittedRatio.Default, red})).ThresholdsStyle(line()), ""))
	b.WithPanel(colored(bars(counted(text{
		"Timeouts per hour",
		"Expired retransmission timeouts of the sender in the hour before each point (RFC 6298 section 5). Each stops the transfer for at least 200 ms on Linux and restarts it with one segment.",
		"none", slimOr + "no completed run of the probe tcp, or the sender's kernel is older than 6.7",
	}, leastMinute, ranged("round(sum by (direction) ("+rules.Increase(timeouts, "1h")+"))", "{{direction}}"))).Span(8).
		Thresholds(steps(step{0, "transparent"})), ""))
	b.WithPanel(colored(runs(counted(text{
		"ECN marks, run by run",
		"Share of the delivered segments of each run whose packets a router marked with CE instead of dropping packets (RFC 3168). Marks with few retransmissions: an AQM manages the queue.",
		"percentunit", slimOr + "no completed run of the probe tcp in this time range, or ECN not negotiated (net.ipv4.tcp_ecn=1 at the client)",
	}, leastRatio, ranged(fresh(transferred, from(transferred, metric.TCPMarked)), "{{direction}}"))).Span(8).
		Thresholds(steps(step{0, "transparent"})), ""))
}
