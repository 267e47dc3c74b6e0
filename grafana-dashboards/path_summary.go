package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/stat"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/rules"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/estimate/voice"
)

const (
	noRules = "No recorded series: load deploy/prometheus/rules into Prometheus" + orSlim
	// orSlim ends the text of an empty panel whose families are absent in profile slim.
	orSlim   = ", or profile slim"
	noRating = "No valid delay, fewer than 10 packets per window" + orSlim
	noDelay  = "No valid delay: no reply, a clock is not synchronized (see Clock), or no recording rules"
)

// summaryRow shows the current state in the units of the alerts.
func summaryRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("Summary"))
	b.WithPanel(tile(text{
		"Peer", "Whether a reply was received within the last three intervals.", "none",
		"No result so far",
	}, instant(of(metric.ProbeUp), "peer")).Span(3).
		Thresholds(steps(step{0, gray})).
		Mappings(values(map[string]dashboard.ValueMappingResult{
			"1": word("up", green, 0), "0": word("no reply", red, 1),
		})))
	bothDirections(b, lossTile)
	bothDirections(b, delayTile)
	b.WithPanel(clockTile())
	b.WithPanel(tile(text{
		"Call quality R, $codec", "Transmission rating factor R of the last window by ITU-T G.107, for codec $codec (selected above) and an adaptive playout buffer. Good from " + plain(voice.Satisfied) + ", bad below " + plain(rules.ThresholdRFactor.Default) + " (G.107 Annex B).", "none",
		"No delay, or few packets" + orSlim,
	}, instant(call(metric.VoiceR), "{{direction}}")).Span(6).Decimals(1).
		TextMode(common.BigValueTextModeValueAndName).
		Thresholds(steps(step{0, gray}, step{0, red}, step{rules.ThresholdRFactor.Default, orange}, step{voice.Satisfied, green})))
	b.WithPanel(tile(text{
		"Round-trip time", "Median and 95th percentile over 5 minutes (limits are recorded as quantile5m_lower and quantile5m_upper), and the smallest of the last window. Free of clock error. Profile slim has only the smallest.", "s",
		"No reply in the last 5 minutes",
	}, instant(rec(rules.RoundTripQuantiles5m.Name, `quantile_rank="0.5"`), "p50, 5 min"), instant(rec(rules.RoundTripQuantiles5m.Name, `quantile_rank="0.95"`), "p95, 5 min"),
		instant(of(metric.RoundTripTimeMin), "min, now")).Span(6).Decimals(2).
		TextMode(common.BigValueTextModeValueAndName).Thresholds(inColor(green)))
	stale := rules.ReplyAge().Default(1)
	b.WithPanel(tile(text{
		"Last reply", "Time since the last reply. Red above " + amount(stale, "s") + ", the default of " + rules.ResultStale.Name + " at an interval of 1 s.", "s",
		"No reply" + orSlim,
	}, instant("time() - "+of(metric.ProbeLastSuccess), "age")).Span(3).Decimals(0).
		Thresholds(steps(step{0, gray}, step{0, green}, step{stale, red})))
	b.WithPanel(factsTile())
}

func lossTile(name, matcher string) *stat.PanelBuilder {
	return tile(text{
		"Loss " + name, "Loss ratio over 5 minutes: lost packets divided by packets received or lost (RFC 7680). Orange from " + inPercent(rules.ThresholdLossRatio) + ", the default of " + rules.LossHigh.Name + ". Unknown if the reflector does not report loss by direction.", "percentunit",
		"Unknown for this direction",
	}, instant(rec(rules.LossRatio5m.Name, matcher), name)).Span(3).Decimals(2).
		Thresholds(steps(step{0, gray}, step{0, green}, step{rules.ThresholdLossRatio.Default, orange}, step{0.05, red}))
}

// delayTile always shows the names of its values. It shows no bound without a delay, since a lone value reads as one.
func delayTile(name, matcher string) *stat.PanelBuilder {
	p50 := windowMedian(matcher)
	return tile(text{
		"Delay " + name, "Median of the last window with its error bound, which contains the true median (both clocks and both timestamps, RFC 7679 section 3.7). p95 covers 5 minutes; its limits are recorded as quantile5m_lower and quantile5m_upper.", "s",
		"No valid delay: no reply, or see Clock",
	}, instant(p50, "p50"), instant(of(metric.DelayErrorBound, matcher)+" and ignoring (quantile_rank) "+p50, "± bound"),
		instant(rec(rules.DelayQuantiles5m.Name, matcher, `quantile_rank="0.95"`), "p95, 5 min")).Span(6).Decimals(2).
		TextMode(common.BigValueTextModeValueAndName).Thresholds(inColor(colorOf(name)))
}

// clockTile shows the state of the agent's clock.
func clockTile() *stat.PanelBuilder {
	return tile(text{
		"Clock", "State of the agent's clock. Delays are reported only in the states synchronized and holdover.", "none",
		"No clock state",
	}, instant(here(stateNumber(of)), byInstance)).Span(3).
		Mappings(values(stateNumbers())).Thresholds(steps(step{0, gray}))
}

// factsTile shows a label that is joined from several labels.
func factsTile() *stat.PanelBuilder {
	facts := `label_join(label_replace(label_replace(` + of(metric.PathInfo) +
		`, "size", "$1 B", "payload_bytes", "(.*)"), "mark", "DSCP $1", "dscp", "(.*)"), "facts", " · ", "peer", "reflector", "size", "mark")`
	return tile(text{
		"Measured with", "Peer address, kind of reflector, UDP payload size and DSCP of the test packets.", "none",
		"The peer's name does not resolve" + orSlim,
	}, table(facts)).Span(9).
		ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"}).Fields("/^facts$/")).
		Thresholds(steps(step{0, gray})).
		Text(common.NewVizTextDisplayOptionsBuilder().ValueSize(26))
}

// directions are the values of the label direction.
func directions() (all []string) {
	for _, d := range sample.Directions() {
		all = append(all, d.String())
	}
	return all
}

// colorOf is the color of a direction in all panels.
func colorOf(direction string) string {
	if direction == sample.Reverse.String() {
		return orange
	}
	return blue
}
