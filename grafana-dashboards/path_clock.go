package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"

	"oneway.example/exporter/metric"
)

func clockRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("Can the delays be believed? Clocks"))
	b.WithPanel(lines(text{
		"Error bounds",
		"How far this end's clock may be from UTC, and the bound on each reported delay: both clocks and the stamps. Where a bound comes near the delay, only changes of the delay can be believed.",
		"s", "No bound: the clock is not trusted",
	},
		ranged(of(metric.DelayErrorBound), "delay {{direction}}"),
		ranged(here(of(metric.ClockErrorBound)), "clock {{instance}}"),
	).
		OverrideByName("delay forward", props{color(blue)}).OverrideByName("delay reverse", props{color(orange)}).
		OverrideByRegexp("/^clock/", props{color(purple), prop("custom.lineWidth", 2)}))
	b.WithPanel(states(text{
		"Clock state of this end",
		"What the agent's clock was in; delays are reported in synchronized and holdover only.",
		"none", "The agent says nothing of its clock",
	}, ranged(here(of(metric.ClockState)), "{{state}}")).
		Mappings(values(map[string]dashboard.ValueMappingResult{
			"1": word("in it", purple, 0), "0": word("not", "transparent", 1),
		})).
		OverrideByName("synchronized", props{prop("mappings", stateWords("synchronized", green))}).
		OverrideByName("unsynchronized", props{prop("mappings", stateWords("unsynchronized", red))}).
		OverrideByName("stepping", props{prop("mappings", stateWords("stepping", red))}).
		OverrideByName("silent", props{prop("mappings", stateWords("silent", orange))}).
		OverrideByName("holdover", props{prop("mappings", stateWords("holdover", yellow))}).
		Legend(common.NewVizLegendOptionsBuilder().ShowLegend(false).
			DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom)))
	b.WithPanel(counted(text{
		"Invalid delays by reason",
		"Delays that were measured and not reported because no bound could be given; local_* is this end, remote_* the other. Loss and round trips are not affected.",
		perMinute, "None: every delay had a bound." + orSlim,
	}, leastMinute, ranged(minutely(of(metric.DelayInvalid)), "{{direction}} {{reason}}")).
		DrawStyle(common.GraphDrawStyleBars).FillOpacity(60).LineWidth(0).
		Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal).Group("A")))
	b.WithPanel(lines(text{
		"Clock offset and negative delays",
		"Left: what the daemon is still correcting, positive if the clock is fast. Right: packets a minute that arrived before they were sent by more than their bound, between clocks that both said they were synchronized: one is wrong.",
		"s", "The clock daemon is silent",
	},
		ranged(here(of(metric.ClockOffset)), "offset {{instance}}"),
		ranged(minutely(of(metric.DelayNegative)), "{{direction}} negative"),
	).
		OverrideByRegexp("/^offset/", props{color(purple)}).
		OverrideByRegexp("/negative/", props{prop("unit", perMinute), prop("custom.axisPlacement", "right"), prop("min", 0), prop("custom.axisSoftMax", leastMinute), dashed()}).
		OverrideByName("forward negative", props{color(blue)}).OverrideByName("reverse negative", props{color(orange)}))
}

func stateWords(name, colorName string) []dashboard.ValueMapping {
	return values(map[string]dashboard.ValueMappingResult{
		"1": word(name, colorName, 0), "0": word("not", "transparent", 1),
	})
}
