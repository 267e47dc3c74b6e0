package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"

	"oneway.example/exporter/metric"
)

func clockRemoteRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("The remote ends, by their own account"))
	b.WithPanel(states(text{
		"Remote end synchronized",
		"Whether the remote end says that its clock is synchronized: the S bit of its Error Estimate (RFC 8762 section 4.2.1). While it does not, no one-way delay of the path is reported. Reflectors of others may never say so.",
		"none", "No remote end has replied",
	}, ranged(orNone(agents(metric.RemoteClockSynchronized), "-1", metric.Path, metric.Probe), byPath)).ShowValue(common.VisibilityModeAuto).
		Thresholds(steps(step{0, gray}, step{0, red}, step{1, green})).
		Mappings(values(map[string]dashboard.ValueMappingResult{
			"1": word("synchronized", green, 0), "0": word("not", red, 1), "-1": word("no remote end replies", faint, 2),
		})))
	b.WithPanel(plot(text{
		"Remote end's bound",
		"How far the remote end's clock may be off by its own Error Estimate (RFC 4656 section 4.1.2). The line is at 1 ms, the floor of OnewayClockErrorTooLarge. Click a line for its path.",
		"s", "No remote end says that it is synchronized",
	}, ranged(agents(metric.RemoteClockErrorBound), byPath)).
		ScaleDistribution(scale(10)).DataLinks(toPath()).
		Thresholds(steps(step{0, "transparent"}, step{0.001, orange})).ThresholdsStyle(line()))
}

func clockDelayRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("What it does to the delays"))
	b.WithPanel(bars(counted(text{
		"Delays not reported, by reason",
		"Delays a minute that were measured and not reported, since no bound could be given or it was too large; local_* is this end, remote_* the other. Loss and round trips are not affected.",
		perMinute, "None: every delay had a bound",
	}, leastMinute, ranged("sum by (job, instance, path, reason) ("+minutely(agents(metric.DelayInvalid))+")", "{{reason}} · {{path}} · {{instance}}")).
		DataLinks(toPath()).
		Thresholds(steps(step{0, "transparent"}, step{1, red}))))
	b.WithPanel(counted(text{
		"Low-confidence delays", "Share of the delays of 5 minutes that are smaller than their own error bound: on a short path with a good clock that is all of them, and no fault. They are part of every distribution.",
		"percentunit", "No delay was measured, or no recording rules",
	}, 1, ranged(agentsRec(recLowConfident), byDirection)).
		DataLinks(toPath()).Thresholds(steps(step{0, "transparent"})))
	for _, d := range []struct {
		title, description, empty string
		of                        *metric.Desc
		alarm                     step
	}{
		{
			"Negative delays", "Packets a minute that arrived before they were sent by more than their bound, between clocks that both said they were synchronized: one of them is wrong (OnewayNegativeDelay). They are counted and shown, never clamped.",
			"Nothing measured in this time range", metric.DelayNegative,
			step{1e-3, red},
		},
		{
			"Held packets", "Packets a minute that the sending host may have held for longer than 25 us after their stamp, such as a virtual machine that stood still: their delays may be too large by that, and their bounds say so.",
			"None was held", metric.DelayTXUncertainty,
			step{60, orange},
		},
	} {
		b.WithPanel(bars(counted(text{d.title, d.description, perMinute, d.empty}, leastMinute, ranged(minutely(agents(d.of)), byDirection)).
			DataLinks(toPath()).
			Thresholds(steps(step{0, "transparent"}, d.alarm))))
	}
	b.WithPanel(tile(text{
		"Calibration of the stamps", "Error of the time stamps of an interface, found by `oneway calibrate` (RFC 7679 section 3.7.3): the systematic part is taken off the delays, the random one is part of their bound.", "s",
		"No interface was calibrated (oneway calibrate)",
	}, instant(agents(metric.StampCalibration), "{{instance}} {{interface}} {{kind}}")).Span(24).Decimals(1).
		Text(common.NewVizTextDisplayOptionsBuilder().TitleSize(16).ValueSize(26)).
		TextMode(common.BigValueTextModeValueAndName).
		Thresholds(steps(step{0, gray}, step{0, green}, step{5e-5, orange}, step{1e-3, red})))
}
