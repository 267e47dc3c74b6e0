package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/stat"

	"oneway.example/exporter/metric"
)

const (
	noRules = "No recorded series: are deploy/prometheus/rules loaded?" + orSlim
	// orSlim ends what an empty panel says whose families profile slim does not have.
	orSlim  = " Not measured in profile slim"
	noDelay = "No delay: no reply, a clock is not trusted (see Clock), or no recording rules"
)

// summaryRow shows the state of the path, in the units of the alerts.
func summaryRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("Is it well?"))
	b.WithPanel(tile(text{
		"Peer", "Whether the peer replied within the last three intervals.", "none",
		"Not known yet",
	}, instant(of(metric.ProbeUp), "peer")).Span(3).
		Thresholds(steps(step{0, gray})).
		Mappings(values(map[string]dashboard.ValueMappingResult{
			"1": word("replies", green, 0), "0": word("silent", red, 1),
		})))
	b.WithPanel(lossTile("forward", forward))
	b.WithPanel(lossTile("reverse", reverse))
	b.WithPanel(delayTile("forward", forward))
	b.WithPanel(delayTile("reverse", reverse))
	b.WithPanel(clockTile())
	b.WithPanel(tile(text{
		"Call quality R, $codec", "Transmission rating of a call with codec $codec (chosen above) and an adaptive playout buffer, of the last window, by ITU-T G.107. Good from 80, bad below 70 (thesis section 7.1; G.107 Annex B).", "none",
		"No rating: no valid delay, or under 10 packets a window." + orSlim,
	}, instant(call(metric.VoiceR), "{{direction}}")).Span(6).Decimals(1).
		TextMode(common.BigValueTextModeValueAndName).
		Thresholds(steps(step{0, gray}, step{0, red}, step{70, orange}, step{80, green})))
	b.WithPanel(tile(text{
		"Round trip", "Median and 95th percentile of 5 minutes (their limits are recorded as quantile5m_lower and quantile5m_upper), and the smallest of the last window: free of clock error. Profile slim has the smallest alone.", "s",
		"No reply in the last 5 minutes",
	}, instant(rec(recRTT, `quantile_rank="0.5"`), "p50"), instant(rec(recRTT, `quantile_rank="0.95"`), "p95"),
		instant(of(metric.RoundTripTimeMin), "min")).Span(6).Decimals(2).
		TextMode(common.BigValueTextModeValueAndName).Thresholds(steps(step{0, green})))
	b.WithPanel(tile(text{
		"Last reply", "Age of the last reply. Red when older than three intervals and a minute.", "s",
		"No reply yet." + orSlim,
	}, instant("time() - "+of(metric.ProbeLastSuccess), "age")).Span(3).Decimals(0).
		Thresholds(steps(step{0, gray}, step{0, green}, step{63, red})))
	b.WithPanel(factsTile())
}

func lossTile(name, matcher string) *stat.PanelBuilder {
	return tile(text{
		"Loss " + name, "Lost over decided packets in the last 5 minutes (RFC 7680). Orange from 1 %, the default of OnewayLossHigh. Unknown where the reflector does not tell the directions apart.", "percentunit",
		"Unknown in this direction",
	}, instant(rec(recLoss, matcher), name)).Span(3).Decimals(2).
		Thresholds(steps(step{0, gray}, step{0, green}, step{0.01, orange}, step{0.05, red}))
}

// delayTile always names its values, and shows no bound without a delay: a bound
// alone would be taken for one.
func delayTile(name, matcher string) *stat.PanelBuilder {
	p50 := windowMedian(matcher)
	return tile(text{
		"Delay " + name, "Median of the last window, and its bound: the true median of that window's packets is within it (both clocks and both stamps, RFC 7679). p95 is of 5 minutes; its limits are recorded as quantile5m_lower and quantile5m_upper.", "s",
		noDelay,
	}, instant(p50, "p50"), instant(of(metric.DelayErrorBound, matcher)+" and ignoring (quantile_rank) "+p50, "± bound"),
		instant(rec(recDelay, matcher, `quantile_rank="0.95"`), "p95, 5 min")).Span(6).Decimals(2).
		TextMode(common.BigValueTextModeValueAndName).Thresholds(steps(step{0, colorOf(name)}))
}

// clockTile is the state of the clock of the path's agent.
func clockTile() *stat.PanelBuilder {
	return tile(text{
		"Clock", "State of the agent's clock. Delays are reported only while it is trusted (synchronized or holdover).", "none",
		"Nothing said",
	}, instant(here(stateNumber(of)), byInstance)).Span(3).
		Mappings(values(stateNumbers())).Thresholds(steps(step{0, gray}))
}

// factsTile shows text, which is a label joined from others.
func factsTile() *stat.PanelBuilder {
	facts := `label_join(label_replace(label_replace(` + of(metric.PathInfo) +
		`, "size", "$1 B", "payload_bytes", "(.*)"), "mark", "DSCP $1", "dscp", "(.*)"), "facts", " · ", "peer", "reflector", "size", "mark")`
	return tile(text{
		"Measured with", "Peer address, kind of reflector, payload and DSCP of the test packets.", "none",
		"The peer's name does not resolve." + orSlim,
	}, table(facts)).Span(9).
		ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"}).Fields("/^facts$/")).
		Thresholds(steps(step{0, gray})).
		Text(common.NewVizTextDisplayOptionsBuilder().ValueSize(26))
}

func colorOf(direction string) string {
	if direction == "reverse" {
		return orange
	}
	return blue
}
