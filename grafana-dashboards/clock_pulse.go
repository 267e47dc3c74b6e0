package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"

	"oneway.example/exporter/metric"
)

// Names recorded by deploy/prometheus/rules.
const (
	recDisagreement      = "oneway:clock_disagreement_seconds"
	recDisagreementBound = "oneway:clock_disagreement_bound_seconds"
)

const byPulse = "{{instance}} {{pps}}"

func clockPulseRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("Pulse per second"))
	b.WithPanel(counted(text{
		"Pulses seen and missed",
		"Pulses a second that the kernel has stamped, one if all is well, and seconds without one between two pulses, which are counted when the pulse is back.",
		"suffix:/s", noPulse,
	}, 1.2,
		ranged("rate("+agents(metric.PPSPulses)+rateInterval+")", byPulse+" seen"),
		ranged("rate("+agents(metric.PPSMissed)+rateInterval+")", byPulse+" missed"),
	).
		Thresholds(steps(step{0, red}, step{0.9, "transparent"})).ThresholdsStyle(line()).
		OverrideByRegexp("/ seen$/", props{color(green), prop("custom.lineWidth", 2)}).
		OverrideByRegexp("/ missed$/", props{color(red), prop("custom.fillOpacity", 30)}))
	b.WithPanel(plot(text{
		"Age of the last pulse",
		"Seconds since the last pulse, at the time of the scrape. The line is at 30 s, the default of OnewayPPSLost.",
		"s", noPulse,
	}, ranged("timestamp("+agents(metric.PPSLast)+") - "+agents(metric.PPSLast), byPulse)).
		AxisSoftMin(0).AxisSoftMax(35).
		Thresholds(steps(step{0, "transparent"}, step{30, red})).ThresholdsStyle(line()))
	b.WithPanel(lines(text{
		"Pulse jitter",
		"Standard deviation of the last 64 intervals between pulses on the raw counter (thesis figure 4.2): the latency of the interrupt, mostly. Some microseconds are usual; the line is at 10 us, where a pulse through USB or an idle CPU begins to show.",
		"s", noPulse,
	}, ranged(agents(metric.PPSJitter), byPulse)).
		AxisSoftMax(1.2e-5).
		Thresholds(steps(step{0, "transparent"}, step{1e-5, orange}, step{1e-4, red})).ThresholdsStyle(line()))
	b.WithPanel(bars(counted(text{
		"Pulses rejected",
		"Pulses a minute that the independent judge did not use, by reason: doubled (two in a second), noisy (interval off by more than 1e-4), gap (seconds missing before it), step (the clock jumped), garbled (a stamp that cannot be), late (read too long after it to place it). The filter of thesis figure 4.2.",
		perMinute, "None rejected, or no pulse configured (clock: pps)",
	}, leastMinute, ranged(minutely(agents(metric.PPSRejected)), byPulse+" {{reason}}")).
		Thresholds(steps(step{0, "transparent"}, step{6, orange}))))
}

// clockJudgeRow is the thesis's own method against the daemon. The pulses' fit is
// a panel for each agent: the band of one would hide the next.
func clockJudgeRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("An independent judge: the clock daemon against the pulses themselves"))
	b.WithPanel(fitLines())
	b.WithPanel(lines(text{
		"Disagreement",
		"Distance between both offsets, modulo a second (a pulse does not say which second it begins), against what both bounds together allow (dashed). Above it and above 100 us (the line) for 2 minutes is OnewayClockDisagreement: one of the two is wrong by more than it admits.",
		"s", noPulse + "; or too few pulses agree",
	},
		ranged(agentsRec(recDisagreement), byPulse),
		ranged(agentsRec(recDisagreementBound), byPulse+" allowed"),
	).Span(24).Height(7).AxisSoftMax(1.2e-4).
		Thresholds(steps(step{0, "transparent"}, step{1e-4, red})).ThresholdsStyle(line()).
		OverrideByRegexp("/ allowed$/", props{dashed()}))
}

func fitLines() *timeseries.PanelBuilder {
	fit := "max by (job, instance) (" + agents(metric.PPSFitOffset) + ")"
	bound := "max by (job, instance) (" + agents(metric.PPSFitBound) + ")"
	hidden := prop("custom.hideFrom", map[string]bool{"legend": true, "tooltip": true, "viz": false})
	return plot(text{
		"Offset by daemon and by pulses, $instance",
		"The clock's offset as its daemon believes it, and as the pulses say: interpolated between filtered pulses over the raw counter, independent of the daemon (thesis chapter 4, figures 4.1 to 4.3). The band is how far the pulses' figure itself may be off. The daemon's line belongs into the band, or near it.",
		"s", noPulse + "; or too few pulses agree",
	},
		ranged(fit, "by the pulses"),
		ranged(agents(metric.ClockOffset)+" and on (job, instance) "+agents(metric.PPSFitOffset), "by the daemon"),
		ranged(fit+" + "+bound, "pulses + bound"),
		ranged(fit+" - "+bound, "pulses − bound"),
	).Span(24).Repeat("instance").RepeatDirection(dashboard.PanelRepeatDirectionH).MaxPerRow(2).
		Thresholds(steps(step{0, "transparent"})).
		OverrideByName("by the pulses", props{color(green), prop("custom.lineWidth", 2)}).
		OverrideByName("by the daemon", props{color(purple), prop("custom.lineWidth", 2)}).
		OverrideByName("pulses + bound", props{
			color(green), prop("custom.lineWidth", 0), hidden,
			prop("custom.fillBelowTo", "pulses − bound"), prop("custom.fillOpacity", 20),
		}).
		OverrideByName("pulses − bound", props{color(green), prop("custom.lineWidth", 0), hidden})
}
