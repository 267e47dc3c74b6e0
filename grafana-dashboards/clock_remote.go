package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"

	"oneway.example/exporter/core/bound"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/rules"
)

func clockRemoteRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("Remote clocks as reported by the remote ends"))
	b.WithPanel(states(text{
		"Remote end synchronized",
		"S bit of the Error Estimate in reflected packets (RFC 8762 section 4.2.1): whether the remote clock is synchronized. With S=0 no one-way delay of the path is reported. Some implementations never set the bit. Paths whose remote clock was not synchronized at some time of the range are first.",
		"none", "No reply from a remote end so far" + orSlim,
	}, ranged(orNone(faultsFirst(metric.RemoteClockSynchronized), "-1", metric.Path, metric.Probe), byPath)).PerPage(10).ShowValue(common.VisibilityModeAuto).
		Thresholds(steps(step{0, gray}, step{0, red}, step{1, green})).
		Mappings(values(map[string]dashboard.ValueMappingResult{
			"1": word("synchronized", green, 0), "0": word("not synchronized", red, 1), "-1": word("no reply from a remote end"+orSlim, faint, 2),
		})))
	b.WithPanel(plot(text{
		"Remote clock error bound",
		"Error bound of the remote clock from the Error Estimate in reflected packets (RFC 4656 section 4.1.2). The line is at " + inMillis(rules.ThresholdClockErrorSeconds) + ", the lower limit of " + rules.ClockErrorTooLarge.Name + ". Click a line to open its path.",
		"s", "No remote end reports a synchronized clock" + orSlim,
	}, ranged(agents(metric.RemoteClockErrorBound), byPath)).
		ScaleDistribution(scale(10)).AxisSoftMax(0.002).Legend(ranked()).DataLinks(toPath()).
		Thresholds(steps(step{0, "transparent"}, step{rules.ThresholdClockErrorSeconds.Default, orange})).ThresholdsStyle(line()))
}

// faultsFirst adds a label by which series that were 0 at some time of the range are first: Prometheus sorts the result of
// a range query by its labels, and Grafana shows ten rows a page.
func faultsFirst(d *metric.Desc) string {
	all := agents(d)
	faulty := all + " and (min_over_time(" + all + dashboardRange + " @ end()) < 1)"
	ordered := func(expr, order string) string {
		return "label_replace(" + expr + `, "_order", "` + order + `", "", "")`
	}
	return ordered(faulty, "0") + " or " + ordered(all+" unless ("+faulty+")", "1")
}

func clockDelayRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("Effect on the delays"))
	b.WithPanel(bars(counted(text{
		"Invalid delays by reason",
		"Delays per minute that were measured and not reported, because they have no error bound or one that is too large; local_* concerns the local end, remote_* the remote end. Loss and round-trip times are not affected.",
		perMinute, "None: every delay had a bound" + orSlim,
	}, leastMinute, ranged("sum by (job, instance, path, reason) ("+minutely(agents(metric.DelayInvalid))+")", "{{reason}} · {{path}} · {{instance}}")).
		Legend(ranked()).DataLinks(toPath()).
		Thresholds(steps(step{0, "transparent"}, step{1, red}))))
	b.WithPanel(counted(text{
		"Low-confidence delays", "Share of the delays of 5 minutes that are smaller than their own error bound. On a short path with a good clock these are all delays; this is no fault. They are included in all distributions.",
		"percentunit", "No delay measured, no recording rules" + orSlim,
	}, 1, ranged(agentsRec(rules.LowConfidenceRatio.Name), byDirection)).
		Legend(ranked()).DataLinks(toPath()).Thresholds(steps(step{0, "transparent"})))
	for _, d := range []struct {
		title, description, empty string
		of                        *metric.Desc
		alarm                     step
	}{
		{
			"Negative delays", "Packets per minute with a negative delay larger than its error bound while both clocks reported that they were synchronized: at least one clock is wrong (" + rules.NegativeDelay.Name + "). Negative delays are not clamped to 0.",
			"No delay measured in this time range" + orSlim, metric.DelayNegative,
			step{1e-3, red},
		},
		{
			"TX uncertainty", "Packets per minute that may have left the sending host more than " + amount(bound.KernelError.Seconds()*1e6, "us") + " after their TX timestamp, for example because a virtual machine was paused. Their delays may be too large by that time; their error bounds include it.",
			"No packet with TX uncertainty in this time range" + orSlim, metric.DelayTXUncertainty,
			step{60, orange},
		},
	} {
		b.WithPanel(bars(counted(text{d.title, d.description, perMinute, d.empty}, leastMinute, ranged(minutely(agents(d.of)), byDirection)).
			Legend(ranked()).DataLinks(toPath()).
			Thresholds(steps(step{0, "transparent"}, d.alarm))))
	}
	b.WithPanel(tile(text{
		"Timestamp calibration", "Timestamp error of an interface as measured by `oneway calibrate` (RFC 7679 section 3.7.3). The systematic part is subtracted from the delays, the random part is included in their error bounds.", "s",
		"No interface is calibrated (oneway calibrate)",
	}, instant(agents(metric.TimestampCalibration), "{{instance}} {{interface}} {{kind}}")).Span(24).Decimals(1).
		Text(common.NewVizTextDisplayOptionsBuilder().TitleSize(16).ValueSize(26)).
		TextMode(common.BigValueTextModeValueAndName).
		Thresholds(steps(step{0, gray}, step{0, green}, step{5e-5, orange}, step{1e-3, red})))
}
