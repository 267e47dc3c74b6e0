package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/stat"

	"oneway.example/exporter/metric"
)

const (
	noRules = "No recorded series: are deploy/prometheus/rules loaded?"
	noDelay = "No delay: no answer, or a clock is not trusted (see Clock)"
)

// summaryRow answers "is it well?" at a glance, in the units of the alerts.
func summaryRow(b *dashboard.DashboardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("Is it well?"))
	b.WithPanel(tile(text{
		"Peer", "Whether the peer answered within the last three intervals.", "none",
		"Not known yet",
	}, instant(of(metric.ProbeUp), "peer")).Span(3).
		Mappings(values(map[string]dashboard.ValueMappingResult{
			"1": word("answers", green, 0), "0": word("silent", red, 1),
		})))
	b.WithPanel(lossTile("forward", forward))
	b.WithPanel(lossTile("reverse", reverse))
	b.WithPanel(delayTile("forward", forward))
	b.WithPanel(delayTile("reverse", reverse))
	b.WithPanel(tile(text{
		"Clock of this end", "State of the agent's clock. Delays are reported only while it is trusted (synchronised or holdover).", "none",
		"The agent says nothing of its clock",
	}, instant(here(of(metric.ClockState)+" == 1"), "{{state}}")).Span(3).
		TextMode(common.BigValueTextModeName).ColorMode(common.BigValueColorModeNone))
	b.WithPanel(tile(text{
		"Call quality R", "Best R over codecs and playout buffers. Good from 80, bad below 70 (thesis section 7.1; ITU-T G.107 Annex B).", "none",
		"No rating: no valid delay, or under 10 packets a window",
	}, instant("max by (direction) ("+of(metric.VoiceR)+")", "{{direction}}")).Span(6).Decimals(0).
		Thresholds(steps(step{0, red}, step{70, orange}, step{80, green})))
	b.WithPanel(tile(text{
		"Round trip", "Median and 95th percentile of 5 minutes, and the smallest of the last window: free of clock error.", "s",
		"No answer in the last 5 minutes",
	}, instant(rec(recRTT, `quantile="0.5"`), "p50"), instant(rec(recRTT, `quantile="0.95"`), "p95"),
		instant(of(metric.RoundTripTimeMin), "min")).Span(6).Thresholds(steps(step{0, green})))
	b.WithPanel(tile(text{
		"Last answer", "Age of the last answer. Red when older than three intervals and a minute.", "s",
		"Never answered",
	}, instant("time() - "+of(metric.ProbeLastSuccess), "age")).Span(3).Decimals(0).
		Thresholds(steps(step{0, green}, step{63, red})))
	b.WithPanel(tile(text{
		"Measured with", "Peer address, kind of reflector, payload and DSCP of the test packets.", "none",
		"The peer's name does not resolve",
	}, instant(of(metric.PathInfo), "{{peer}} · {{reflector}} · {{packet_bytes}} B · DSCP {{dscp}}")).Span(9).
		TextMode(common.BigValueTextModeName).ColorMode(common.BigValueColorModeNone).
		Text(common.NewVizTextDisplayOptionsBuilder().TitleSize(18)))
}

func lossTile(name, matcher string) *stat.PanelBuilder {
	return tile(text{
		"Loss " + name + " now", "Lost over decided packets in the last 5 minutes (RFC 7680). Orange from 1 %, the default of OnewayLossHigh.", "percentunit",
		"Not told apart by this reflector, or nothing decided",
	}, instant(rec(recLoss, matcher), name)).Span(3).Decimals(2).
		Thresholds(steps(step{0, green}, step{0.01, orange}, step{0.05, red}))
}

func delayTile(name, matcher string) *stat.PanelBuilder {
	return tile(text{
		"Delay " + name + " now", "Median and 95th percentile of 5 minutes. The truth lies within the bound of each: both clocks and both stamps (RFC 7679).", "s",
		noDelay,
	}, instant(rec(recDelay, matcher, `quantile="0.5"`), "p50"), instant(rec(recDelay, matcher, `quantile="0.95"`), "p95"),
		instant(of(metric.DelayErrorBound, matcher), "± bound")).Span(6).
		Thresholds(steps(step{0, colorOf(name)}))
}

func colorOf(direction string) string {
	if direction == "reverse" {
		return orange
	}
	return blue
}
