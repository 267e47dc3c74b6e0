package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
	"github.com/grafana/grafana-foundation-sdk/go/trend"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/rules"
)

// Recorded series of deploy/prometheus/rules.

func throughputRow(b *boardBuilder) {
	words := numbers(saturationStates())
	words["-1"] = word(noState, faint, int32(len(words)))
	b.WithRow(dashboard.NewRowBuilder("Throughput"))
	b.WithPanel(throughputElapsed())
	b.WithPanel(throughputOverTime())
	b.WithPanel(rateDistribution())
	b.WithPanel(states(text{
		"Results of the runs",
		"State of each direction in its last run: filled (the queue drops at its tail), not filled (" + rules.LinkNotFilled.Name + ": increase the offered rate), policer (loss without delay), aqm (drops before the queue was full), time limited (drops after a time in the queue); empty if the state cannot be determined. A state is shown until the next run.",
		"none", noDetail,
	}, ranged("("+stateOf()+`) or on () label_replace(vector(-1), "direction", "no run", "", "")`, "{{direction}}")).Height(9).ShowValue(common.VisibilityModeAuto).
		Mappings(values(words)).Thresholds(steps(step{0, gray})).
		Legend(common.NewVizLegendOptionsBuilder().ShowLegend(false).
			DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom)))
	b.WithPanel(runs(counted(text{
		"Sender underrun and loss under load",
		"Left: sender underrun, the share of the planned packets that the sending host did not send; it is no loss of the path (figure 21 of the D-ITG report). The line is at " + inPercent(rules.ThresholdSenderUnderrunRatio) + ", the default of " + rules.SenderTooSlow.Name + ". Right, dashed: share of the sent packets that were lost.",
		"percentunit", noLoad,
	}, 0.03,
		ranged(fresh(saturated, from(saturated, metric.UDPUnderrun)), "{{direction}} underrun"),
		ranged(fresh(saturated, from(saturated, metric.LoadedLoss)), "{{direction}} lost"),
	)).Span(24).Height(7).
		Thresholds(steps(step{0, "transparent"}, step{rules.ThresholdSenderUnderrunRatio.Default, red})).ThresholdsStyle(line()).
		OverrideByRegexp("/^forward/", props{color(blue)}).OverrideByRegexp("/^reverse/", props{color(orange)}).
		OverrideByRegexp("/ lost$/", props{
			dashed(), prop("custom.axisPlacement", "right"), prop("max", 1), prop("custom.axisSoftMax", 1),
			prop("custom.thresholdsStyle", map[string]any{"mode": "off"}),
		}))
}

// rateDistribution shows the variation of the link's rate within each run.
func rateDistribution() *timeseries.PanelBuilder {
	p := runs(lines(text{
		"Rate by the second, run by run",
		"Rate of the link per second from the first to the last loss of a run: median, 5th and 95th percentile (dotted, shaded between). A narrow band indicates a link of constant rate; a wide band a link of variable rate such as a radio link, whose queue has a size in bytes but no constant delay.",
		inBits, noDetail + " in this time range",
	},
		ranged(bitsOf(fresh(saturated, from(saturated, metric.UDPRate, half))), "{{direction}}"),
		ranged(bitsOf(fresh(saturated, from(saturated, metric.UDPRate, most))), "{{direction}} 95 %"),
		ranged(bitsOf(fresh(saturated, from(saturated, metric.UDPRate, least))), "{{direction}} 5 %"),
	)).Height(9).AxisSoftMin(0).Thresholds(steps(step{0, "transparent"}))
	for _, d := range directions() {
		edge := props{color(colorOf(d)), dotted(), prop("custom.showPoints", "never")}
		p.OverrideByName(d, props{color(colorOf(d)), prop("custom.lineWidth", 2)}).
			OverrideByName(d+" 95 %", append(filledTo(d+" 5 %", 20), edge...)).
			OverrideByName(d+" 5 %", edge)
	}
	return p
}

// throughputElapsed is within the last run: what a scrape every 10 s cannot hold.
func throughputElapsed() *trend.PanelBuilder {
	return curve(text{
		"Throughput in the last run",
		"Throughput in each second (or time bin) of the last run, by the kernel timestamps at the receiver. Steps indicate a radio link that changes its coding; a high first second indicates a token bucket.",
		inBits, noDetail,
	}, axis{label: metric.ElapsedL, column: metric.Direction, unit: elapsedUnit},
		"max by (elapsed_seconds, direction) ("+bitsOf(from(saturated, metric.UDPThroughputElapsed))+")").
		Min(0).
		OverrideByName("forward", props{color(colorOf("forward"))}).
		OverrideByName("reverse", props{color(colorOf("reverse"))})
}

func throughputOverTime() *timeseries.PanelBuilder {
	return runs(lines(text{
		"Throughput, run by run",
		"A point where a run was completed: its median second, what was offered (dotted), and the median of the same hours of the last " + baselineDays() + " (dashed), below " + inPercent(rules.ThresholdThroughputRatio) + " of which is " + rules.ThroughputDegraded.Name + ".",
		inBits, noLoad + " in this time range",
	},
		ranged(fresh(saturated, bitsOf(from(saturated, metric.UDPThroughput))), "{{direction}}"),
		ranged(fresh(saturated, bitsOf(from(saturated, metric.UDPOffered))), "{{direction}} offered"),
		ranged(bitsOf(recFrom(saturated, rules.UDPThroughputBaseline.Name)), "{{direction}} baseline"),
	)).Height(9).
		Thresholds(steps(step{0, "transparent"})).
		OverrideByName("forward", props{color(colorOf("forward")), prop("custom.lineWidth", 2)}).
		OverrideByName("reverse", props{color(colorOf("reverse")), prop("custom.lineWidth", 2)}).
		OverrideByName("forward offered", props{color(blue), dotted(), prop("custom.showPoints", "never")}).
		OverrideByName("reverse offered", props{color(orange), dotted(), prop("custom.showPoints", "never")}).
		OverrideByName("forward baseline", props{color(blue), dashed(), prop("custom.showPoints", "never")}).
		OverrideByName("reverse baseline", props{color(orange), dashed(), prop("custom.showPoints", "never")})
}
