package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/rules"
)

// offsetLimit is the offset in seconds at which a clock's line is orange.
const offsetLimit = 1e-3

// skewCoarse is a skew in ppm; it adds 3.6 ms to the bound per hour of holdover.
const skewCoarse = 1

func clockBoundRow(b *boardBuilder) {
	median := agents(metric.DelayQuantile, metric.QuantileL+`="0.5"`)
	b.WithRow(dashboard.NewRowBuilder("Error bounds against delays, offset, frequency"))
	b.WithPanel(plot(text{
		"Error bound relative to the delay",
		"Error bound of a window's delays divided by their median: both clocks and both timestamps. The line is at " + inPercent(rules.ThresholdClockErrorRatio) + "; above it, " + rules.ClockErrorTooLarge.Name + " fires for bounds above " + inMillis(rules.ThresholdClockErrorSeconds) + ". A short path with a good clock can be at 300 % (a delay of 20 us with a bound of 56 us); this is no fault. Click a line to open its path.",
		"percentunit", "No window with a bound and a median: no path with synchronized clocks",
	}, ranged(agents(metric.DelayErrorBound)+" / ignoring (quantile_rank) ("+median+" > 0)", byDirection)).
		Height(11).ScaleDistribution(scale(10)).Legend(ranked()).DataLinks(toPath()).
		AxisSoftMin(0.01).AxisSoftMax(1).
		Thresholds(steps(step{0, "transparent"}, step{rules.ThresholdClockErrorRatio.Default, orange})).ThresholdsStyle(line()))
	b.WithPanel(plot(text{
		"Clock error bound and delays",
		"Error bound of the agent's clock relative to UTC (thick), and the smallest and the largest median delay of a window among its paths (dashed): the larger the ratio of delay and bound, the more accurate the delays. The line is at " + inMillis(rules.ThresholdClockErrorSeconds) + ", the lower limit of " + rules.ClockErrorTooLarge.Name + ".",
		"s", "No clock is synchronized",
	},
		ranged(agents(metric.ClockErrorBound), "bound "+byInstance),
		ranged("min by (job, instance) ("+median+")", "smallest delay "+byInstance),
		ranged("max by (job, instance) ("+median+")", "largest delay "+byInstance),
	).
		Height(11).ScaleDistribution(scale(10)).
		Thresholds(steps(step{0, "transparent"}, step{rules.ThresholdClockErrorSeconds.Default, orange})).ThresholdsStyle(line()).
		OverrideByRegexp("/^bound /", props{prop("custom.lineWidth", 3)}).
		OverrideByRegexp("/^(smallest|largest) /", props{dashed()}))
	b.WithPanel(plot(text{
		"Clock offset",
		"Offset that the clock daemon is still correcting, positive if the clock is fast, and the offset reported by gpsd from its pulse (dotted). Lines at ± " + amount(offsetLimit*1e3, "ms") + ".",
		"s", noDaemon,
	},
		ranged(agents(metric.ClockOffset), byInstance),
		ranged(agents(metric.GNSSPulseOffset), "{{instance}} by {{receiver}}"),
	).
		Thresholds(steps(step{0, orange}, step{-offsetLimit, "transparent"}, step{offsetLimit, orange})).ThresholdsStyle(line()).
		OverrideByRegexp("/ by /", props{dotted()}))
	b.WithPanel(plot(text{
		"Frequency and skew",
		"Left: frequency error of the undisciplined clock, which depends on temperature. Right, dashed: skew, the error bound of that frequency; in holdover the clock error bound grows by it. The line is at 1 ppm of skew, 3.6 ms per hour.",
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
		"Clock state over time",
		"State of each agent's clock. Delays are reported in the states synchronized and holdover, and not in the states stepping, unsynchronized and silent (no reply from the clock daemon).",
		"none", "The agent reports no clock state",
	}, ranged(stateNumber(agents), byInstance)).Height(6).ShowValue(common.VisibilityModeAuto).
		Mappings(values(stateNumbers())).Thresholds(steps(step{0, gray})))
	b.WithPanel(counted(text{
		"Failed clock daemon queries",
		"Queries to the clock daemon per minute without a valid reply, by reason. After some seconds without a reply the state is silent and no delay is reported: the clock may be correct, but its error bound is unknown.",
		perMinute, "No failed query in this time range",
	}, leastMinute, ranged(minutely(agents(metric.ClockQueryFailures))+" > 0", "{{instance}} {{reason}}")).Height(6).
		DrawStyle(common.GraphDrawStyleBars).FillOpacity(60).LineWidth(0).
		Thresholds(steps(step{0, "transparent"}, step{1, red})))
}
