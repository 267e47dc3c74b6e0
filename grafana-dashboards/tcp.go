package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/stat"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/rules"
	"oneway.example/exporter/estimate/tcpstate"
)

// tcpUID is the uid that links and runbooks refer to.
const (
	tcpTitle = metric.TitleTCP
	tcpUID   = "oneway-tcp"
)

const (
	transferred = anyTest + `,probe="$tcp"`
	noTCP       = "No completed run of the probe tcp on this path"
	noTCPDetail = slimOr + "no completed run of the probe tcp on this path"
)

// tcpBoard shows what TCP achieves over a path: throughput, its limits, round-trip time, retransmissions.
func tcpBoard() *boardBuilder {
	return loadTestPage{
		title: tcpTitle, uid: tcpUID, from: "now-7d",
		description: "TCP over a path, both directions: throughput, what limited the sender, round-trip time under load, retransmissions, timeouts, connect time, ECN marks, runs and data quota.",
		raw:         []cog.Builder[dashboard.DashboardLink]{toRaw(rawTCPPage(), "tcp")},
		variables: []cog.Builder[dashboard.VariableModel]{
			probeVariable("tcp", "Probe", metric.TCPThroughput),
		},
		rows: []func(*boardBuilder){
			splitAnnotation, tcpSummaryRow, tcpThroughputRow, func(b *boardBuilder) { workingRow(b, transferred) }, tcpRoundTripRow, tcpDataRow, tcpLossRow,
		},
	}.board()
}

func tcpSummaryRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("The last run"))
	bothDirections(b, goodputTile)
	bothDirections(b, loadedRTTTile)
	b.WithPanel(tile(text{
		"Limited by", "What limited the sender for more than " + amount(tcpstate.MainShare*100, "%") + " of the last run: network (the congestion window or the pacing), receive window, send buffer, application (nothing to send); or no single limit. Linux tcp_info.", "none",
		"No completed run" + orSlim,
	}, instant(limitOf(), "{{direction}}")).Span(6).
		TextMode(common.BigValueTextModeValueAndName).
		Mappings(values(numbers(verdicts()))).Thresholds(steps(step{0, gray})))
	b.WithPanel(tile(text{
		"Retransmitted", "Share of the payload bytes sent in the last run that were retransmissions (RFC 6349 section 4.2). Orange above 1 %, red above " + inPercent(rules.ThresholdTCPRetransmittedRatio) + ".", "percentunit",
		noTCP,
	}, instant(from(transferred, metric.TCPRetransmitted), "{{direction}}")).Span(6).Decimals(2).
		TextMode(common.BigValueTextModeValueAndName).
		Thresholds(steps(step{0, gray}, step{0, green}, step{0.01, orange}, step{rules.ThresholdTCPRetransmittedRatio.Default, red})))
	b.WithPanel(lastRunTile(transferred).Span(6))
	b.WithPanel(quotaTile().Span(6))
}

// goodputTile shows the throughput beside the rate of the link.
func goodputTile(name, matcher string) *stat.PanelBuilder {
	return tile(text{
		"Throughput " + name, "Payload that arrived in order per second in the last run, each byte once, without the omitted first part (RFC 6349 section 4.1), and the rate of the link, configured (link_rate) or by the probes train or saturation, in IP-layer bits: with full packets TCP can reach about 96.5 % of it.", inBits,
		noTCP,
	},
		instant(bitsOf(from(transferred, metric.TCPThroughput, matcher)), "throughput"),
		instant(bitsOf(linkRate(matcher)), "link"),
	).Span(6).Decimals(2).
		TextMode(common.BigValueTextModeValueAndName).Thresholds(inColor(colorOf(name))).
		OverrideByName("link", props{color(gray)})
}

// linkRate is the rate of the path's link by direction: the configured one, or as far as other load tests measured it within
// a day. After a restart the agent has no value until the next run.
func linkRate(matchers ...string) string {
	best := func(d *metric.Desc) string {
		return "max by (direction) (last_over_time(" + from(anyTest, d, matchers...) + "[1d]))"
	}
	return "(" + best(metric.TCPLinkRate) + " or " + best(metric.PathCapacity) + " or " + best(metric.UDPThroughput) + ")"
}

// loadedRTTTile shows the round-trip time that the transfer caused.
func loadedRTTTile(name, matcher string) *stat.PanelBuilder {
	median, lowest := from(transferred, metric.TCPRTT, matcher, half), from(transferred, metric.TCPRTTMin, matcher)
	return tile(text{
		"RTT " + name, "Median of the sender's smoothed round-trip time in the last run, the least, and their quotient less 1: the buffer delay percentage of RFC 6349 section 4.3.", "s",
		"No completed run" + orSlim,
	},
		instant(median, "median"), instant(lowest, "least"),
		instant("sum without (quantile_rank) ("+median+") / "+lowest+" - 1", "buffer delay"),
	).Span(6).Decimals(1).
		TextMode(common.BigValueTextModeValueAndName).Thresholds(inColor(colorOf(name))).
		OverrideByName("least", props{color(gray)}).
		OverrideByName("buffer delay", props{color(gray), prop("unit", "percentunit"), prop("decimals", 0)})
}

// senderLimits are the possible limits of a sender.
func senderLimits() []state {
	return []state{
		{string(tcpstate.LimitNetwork), green}, {string(tcpstate.LimitReceiver), orange}, {string(tcpstate.LimitSendBuffer), purple}, {string(tcpstate.LimitApplication), blue},
	}
}

// noSingleLimit is the state of a run in which no limit had more than tcpstate.MainShare of the time.
const noSingleLimit = "no_single_limit"

// verdicts are the limits, and noSingleLimit.
func verdicts() []state { return append(senderLimits(), state{noSingleLimit, gray}) }

// limitOf is the number of the main limit, by direction, as tcpstate.Limits.Main decides it.
func limitOf() string {
	above := plain(tcpstate.MainShare)
	return numbered(verdicts(), func(name string) string {
		if name == noSingleLimit {
			return "(max without (" + metric.StateL + ") (" + from(transferred, metric.TCPLimited) + ") <= bool " + above + ")"
		}
		return "(" + from(transferred, metric.TCPLimited, metric.StateL+`="`+name+`"`) + " > bool " + above + ")"
	})
}
