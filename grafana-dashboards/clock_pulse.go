package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/rules"
)

const byPulse = "{{instance}} {{pps}}"

func clockPulseRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("Pulse per second"))
	b.WithPanel(counted(text{
		"Pulses received and missed",
		"Pulses per second that the kernel timestamped (normally 1), and seconds without a pulse, which are counted when the next pulse is received.",
		"suffix:/s", noPulse,
	}, 1.2,
		ranged("rate("+agents(metric.PPSPulses)+rateInterval+")", byPulse+" received"),
		ranged("rate("+agents(metric.PPSMissed)+rateInterval+")", byPulse+" missed"),
	).
		Thresholds(steps(step{0, red}, step{0.9, "transparent"})).ThresholdsStyle(line()).
		OverrideByRegexp("/ received$/", props{color(green), prop("custom.lineWidth", 2)}).
		OverrideByRegexp("/ missed$/", props{color(red), prop("custom.fillOpacity", 30)}))
	b.WithPanel(plot(text{
		"Age of the last pulse",
		"Time from the last pulse to the scrape. The line is at " + amount(rules.ThresholdPPSLostSeconds.Default, "s") + ", the default of " + rules.PPSLost.Name + ".",
		"s", noPulse,
	}, ranged("timestamp("+agents(metric.PPSLast)+") - "+agents(metric.PPSLast), byPulse)).
		AxisSoftMin(0).AxisSoftMax(35).
		Thresholds(steps(step{0, "transparent"}, step{rules.ThresholdPPSLostSeconds.Default, red})).ThresholdsStyle(line()))
	b.WithPanel(lines(text{
		"Pulse jitter",
		"Standard deviation of the last 64 intervals between pulses on the raw counter; it is mostly interrupt latency. Some microseconds are usual. The line is at 10 us: larger values indicate a pulse over USB or CPU idle states.",
		"s", noPulse,
	}, ranged(agents(metric.PPSJitter), byPulse)).
		AxisSoftMax(1.2e-5).
		Thresholds(steps(step{0, "transparent"}, step{1e-5, orange}, step{1e-4, red})).ThresholdsStyle(line()))
	b.WithPanel(bars(counted(text{
		"Pulses rejected",
		"Pulses per minute that the fit of the pulses excludes, by reason: " + meanings(metric.PPSRejected, metric.ReasonL) + ".",
		perMinute, "No pulse rejected, or no pulse configured (clock: pps)",
	}, leastMinute, ranged(minutely(agents(metric.PPSRejected)), byPulse+" {{reason}}")).
		Thresholds(steps(step{0, "transparent"}, step{6, orange}))))
}

// clockJudgeRow compares the clock daemon with the fit of the pulses, the method of the thesis. The panel of the fit is
// repeated for each agent, since the band of one would hide another.
func clockJudgeRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("Clock daemon compared with the fit of the pulses"))
	b.WithPanel(fitLines())
	b.WithPanel(lines(text{
		"Disagreement",
		"Absolute difference of the two offsets, modulo one second (a pulse does not identify its second), and the sum of both error bounds (dashed). " + rules.ClockDisagreement.Name + " fires if the difference exceeds that sum and " + inMicros(rules.ThresholdClockDisagreementSeconds) + " (the line) for " + rules.ClockDisagreement.Alert.ForText() + ": one of the two offsets is wrong by more than its bound.",
		"s", noPulse + "; or too few consistent pulses",
	},
		ranged(agentsRec(rules.Disagreement.Name), byPulse),
		ranged(agentsRec(rules.DisagreementBound.Name), byPulse+" allowed"),
	).Span(24).Height(7).AxisSoftMax(1.2e-4).
		Thresholds(steps(step{0, "transparent"}, step{rules.ThresholdClockDisagreementSeconds.Default, red})).ThresholdsStyle(line()).
		OverrideByRegexp("/ allowed$/", props{dashed()}))
}

func fitLines() *timeseries.PanelBuilder {
	fit := "max by (job, instance) (" + agents(metric.PPSFitOffset) + ")"
	bound := "max by (job, instance) (" + agents(metric.PPSFitBound) + ")"
	return plot(text{
		"Offset by daemon and by pulses, $instance",
		"Clock offset reported by the clock daemon, and offset from the fit of the filtered pulses on the raw counter, which is independent of the daemon. The band is the error bound of the fit. The line of the daemon is expected in or near the band.",
		"s", noPulse + "; or too few consistent pulses",
	},
		ranged(fit, "by the pulses"),
		ranged(agents(metric.ClockOffset)+" and on (job, instance) "+agents(metric.PPSFitOffset), "by the daemon"),
		ranged(fit+" + "+bound, "pulses + bound"),
		ranged(fit+" - "+bound, "pulses − bound"),
	).Span(24).Repeat("instance").RepeatDirection(dashboard.PanelRepeatDirectionH).MaxPerRow(2).
		Thresholds(steps(step{0, "transparent"})).
		OverrideByName("by the pulses", props{color(green), prop("custom.lineWidth", 2)}).
		OverrideByName("by the daemon", props{color(purple), prop("custom.lineWidth", 2)}).
		OverrideByName("pulses + bound", append(edge(color(green)), filledTo("pulses − bound", 20)...)).
		OverrideByName("pulses − bound", edge(color(green)))
}
