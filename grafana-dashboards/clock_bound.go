package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"

	"oneway.example/exporter/metric"
)

// shareTooLarge is the share of the median delay from which a bound that is above a
// millisecond, too, is too large for the path (OnewayClockErrorTooLarge), by default.
const shareTooLarge = 0.1

// skewCoarse is a skew, in ppm, with which an hour of holdover costs 3.6 ms.
const skewCoarse = 1

func clockBoundRow(b *boardBuilder) {
	median := agents(metric.DelayQuantile, metric.QuantileL+`="0.5"`)
	b.WithRow(dashboard.NewRowBuilder("How good? Bounds against the delays, offset, frequency"))
	b.WithPanel(plot(text{
		"Bound as share of the delay",
		"Error bound of a window's delays over their median: both clocks and both stamps. The line is at 10 %: above it, OnewayClockErrorTooLarge tells of bounds above 1 ms. A short path with a good clock may be at 300 % (20 us within 56 us), and that is no problem. Click a line for its path.",
		"percentunit", "No bound and median together: no path with trusted clocks",
	}, ranged(agents(metric.DelayErrorBound)+" / ignoring (quantile_rank) ("+median+" > 0)", byDirection)).
		Height(11).ScaleDistribution(scale(10)).DataLinks(toPath()).
		AxisSoftMin(0.01).AxisSoftMax(1).
		Thresholds(steps(step{0, "transparent"}, step{shareTooLarge, orange})).ThresholdsStyle(line()))
	b.WithPanel(plot(text{
		"Clock bound and delays",
		"How far the agent's clock may be from UTC (thick), against the median delay of each window of its paths (dashed): the further apart, the more a delay is worth. The line is at 1 ms, the floor of OnewayClockErrorTooLarge.",
		"s", "No clock is trusted",
	},
		ranged(agents(metric.ClockErrorBound), "bound "+byInstance),
		ranged(median, byDirection),
	).
		Height(11).ScaleDistribution(scale(10)).
		Thresholds(steps(step{0, "transparent"}, step{0.001, orange})).ThresholdsStyle(line()).
		OverrideByRegexp("/^bound /", props{prop("custom.lineWidth", 3)}).
		OverrideByRegexp("/(forward|reverse)/", props{dashed()}))
	b.WithPanel(plot(text{
		"Clock offset",
		"What the daemon is still correcting, positive if the clock is fast, and the same by gpsd's pulse where there is one. Lines at ± 1 ms.",
		"s", noDaemon,
	},
		ranged(agents(metric.ClockOffset), byInstance),
		ranged(agents(metric.GNSSPulseOffset), "{{instance}} by {{receiver}}"),
	).
		Thresholds(steps(step{0, orange}, step{-0.001, "transparent"}, step{0.001, orange})).ThresholdsStyle(line()).
		OverrideByRegexp("/ by /", props{dotted()}))
	b.WithPanel(plot(text{
		"Frequency and skew",
		"Left: rate by which the clock would gain or lose if left alone, which follows the temperature. Right, dashed: how well that is known; in holdover the bound grows by it. The line is at 1 ppm of skew, which is 3.6 ms an hour.",
		"ppm", noDaemon,
	},
		ranged("1e6 * "+agents(metric.ClockFrequency), byInstance),
		ranged("1e6 * "+agents(metric.ClockSkew), "{{instance}} skew"),
	).
		Thresholds(steps(step{0, "transparent"})).
		OverrideByRegexp("/ skew$/", props{
			dashed(), prop("custom.axisPlacement", "right"), prop("min", 0), prop("custom.axisSoftMax", skewCoarse),
			prop("thresholds", map[string]any{"mode": "absolute", "steps": []map[string]any{
				{"color": "transparent", "value": nil}, {"color": orange, "value": skewCoarse},
			}}),
			prop("custom.thresholdsStyle", map[string]any{"mode": "dashed"}),
		}))
	b.WithPanel(states(text{
		"State over time",
		"What each agent's clock was in. Delays are reported while it is synchronized or in holdover; none is reported while it steps, is unsynchronized, or while the daemon is silent for too long.",
		"none", "The agent says nothing of its clock",
	}, ranged(stateNumber(agents), byInstance)).Height(6).ShowValue(common.VisibilityModeAuto).
		Mappings(values(stateNumbers())).Thresholds(steps(step{0, gray})))
	b.WithPanel(counted(text{
		"Clock daemon without a reply",
		"Queries of the clock daemon a minute that had no usable reply, by reason. After some seconds the clock is silent: it may be right, and nothing proves it.",
		perMinute, "None: every query got a reply",
	}, leastMinute, ranged(minutely(agents(metric.ClockQueryFailures)), "{{instance}} {{reason}}")).Height(6).
		DrawStyle(common.GraphDrawStyleBars).FillOpacity(60).LineWidth(0).
		Thresholds(steps(step{0, "transparent"}, step{1, red})))
}
