package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"

	"oneway.example/exporter/core/metric"
)

func clockRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("Clocks of this path"))
	b.WithPanel(lines(text{
		"Error bounds",
		"Error bound of the local clock relative to UTC, and error bound of the reported delays: both clocks and the timestamps. Where the bound is close to the delay, only changes of the delay are significant.",
		"s", "No bound: the clock is not synchronized",
	},
		ranged(of(metric.DelayErrorBound), "delay {{direction}}"),
		ranged(here(of(metric.ClockErrorBound)), "clock {{instance}}"),
	).
		OverrideByName("delay forward", props{color(blue)}).OverrideByName("delay reverse", props{color(orange)}).
		OverrideByRegexp("/^clock/", props{color(purple), prop("custom.lineWidth", 2)}))
	b.WithPanel(errorComponents())
	clock := states(text{
		"Local clock state",
		"State of the agent's clock over time. Delays are reported only in the states synchronized and holdover.",
		"none", "The agent reports no clock state",
	}, ranged(here(of(metric.ClockState)), "{{state}}")).
		Mappings(values(map[string]dashboard.ValueMappingResult{
			"1": word("yes", purple, 0), "0": word("no", "transparent", 1),
		})).
		Legend(common.NewVizLegendOptionsBuilder().ShowLegend(false).
			DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom))
	for _, s := range clockStates() {
		clock.OverrideByName(s.name, props{prop("mappings", stateWords(s.name, s.color))})
	}
	b.WithPanel(clock)
	b.WithPanel(counted(text{
		"Invalid delays by reason",
		"Delays that were measured and not reported because they have no error bound; local_* concerns the local end, remote_* the remote end. Loss and round-trip times are not affected.",
		perMinute, "None: every delay had a bound" + orSlim,
	}, leastMinute, ranged(minutely(of(metric.DelayInvalid)), "{{direction}} {{reason}}")).
		DrawStyle(common.GraphDrawStyleBars).FillOpacity(60).LineWidth(0).
		Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal).Group("A")))
	b.WithPanel(lines(text{
		"Clock offset and negative delays",
		"Left: offset that the clock daemon is still correcting, positive if the clock is fast. Right: packets per minute with a negative delay larger than its error bound while both clocks reported that they were synchronized: at least one clock is wrong.",
		"s", "No reply from the clock daemon",
	},
		ranged(here(of(metric.ClockOffset)), "offset {{instance}}"),
		ranged(minutely(of(metric.DelayNegative)), "{{direction}} negative"),
	).Span(24).
		OverrideByRegexp("/^offset/", props{color(purple)}).
		OverrideByRegexp("/negative/", props{prop("unit", perMinute), prop("custom.axisPlacement", "right"), prop("min", 0), prop("custom.axisSoftMax", leastMinute), dashed()}).
		OverrideByName("forward negative", props{color(blue)}).OverrideByName("reverse negative", props{color(orange)}))
}

// errorComponents has a logarithmic axis and no stack: one timestamp taken in user space on a busy host is a thousand times
// larger than the bounds of both clocks.
func errorComponents() *timeseries.PanelBuilder {
	return plot(text{
		"Error bound by component",
		"Largest part of each component in the delay error bounds of a window, both directions: local clock, remote clock, timestamps (RFC 7679 section 3.7). Dashed: the reported bounds by direction; they are not above the sum of the components. No line for a component of 0: both ends read one clock. A component far above the bounds is that of a few packets of the window. Profile slim has the bounds only.",
		"s", "No valid delay: no reply, or a clock is not synchronized (see Clock)",
	},
		ranged(of(metric.DelayErrorComponent), "{{component}}"),
		ranged(of(metric.DelayErrorBound), "bound {{direction}}"),
	).
		LineWidth(2).ScaleDistribution(scale(10)).
		OverrideByName("local_clock", props{color(purple), prop("displayName", "local clock")}).
		OverrideByName("remote_clock", props{color(yellow), prop("displayName", "remote clock")}).
		OverrideByName("timestamps", props{color(green)}).
		OverrideByRegexp("/^bound/", props{dashed()}).
		OverrideByName("bound forward", props{color(blue)}).OverrideByName("bound reverse", props{color(orange)})
}

func stateWords(name, colorName string) []dashboard.ValueMapping {
	return values(map[string]dashboard.ValueMappingResult{
		"1": word(name, colorName, 0), "0": word("no", "transparent", 1),
	})
}
