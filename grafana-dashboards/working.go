package main

import (
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	tablepanel "github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/rules"
	"oneway.example/exporter/estimate/voice"
)

const (
	loaded    = metric.LoadedL
	idle      = loaded + `="none"`
	noWorking = slimOr + "no completed run, working_delay_interval 0, or too few packets"
	// noWorkingDelay is for values that need synchronized clocks.
	noWorkingDelay = slimOr + "no completed run, working_delay_interval 0, or a clock was not synchronized"
)

// underLoad has the value of each direction while that direction was loaded.
func underLoad(base string, d *metric.Desc) string {
	return "max without (" + loaded + ") (" + from(base, d, forward, rules.UnderLoad("forward")) + " or " + from(base, d, reverse, rules.UnderLoad("reverse")) + ")"
}

// workingRow shows what others feel while the probe of base loads the link.
func workingRow(b *boardBuilder, base string) {
	b.WithRow(dashboard.NewRowBuilder("Working delay: what others feel while this test runs"))
	b.WithPanel(workingTable(base))
	bothDirections(b, func(name, matcher string) *timeseries.PanelBuilder { return workingDelay(name, base, matcher) })
	b.WithPanel(idleAndLoaded(text{
		"R of a call, run by run",
		"Transmission rating R (G.107, codec G.711) of a call in each direction while its direction was loaded, and before the load (dotted). The line is at " + plain(rules.ThresholdRFactor.Default) + ": many users are dissatisfied below it (Annex B).",
		"none", noWorkingDelay + " in this time range",
	}, base, metric.WorkingR).Span(6).Min(0).Max(100).
		Thresholds(steps(step{0, "transparent"}, step{rules.ThresholdRFactor.Default, red})).ThresholdsStyle(line()))
	b.WithPanel(idleAndLoaded(text{
		"Loss of others, run by run",
		"Share of the light test packets that each direction lost while it was loaded, and before the load (dotted).",
		"percentunit", noWorking + " in this time range",
	}, base, metric.WorkingLoss).Span(6).Min(0).AxisSoftMax(leastRatio).Thresholds(steps(step{0, "transparent"})))
	rtt := runs(lines(text{
		"Round trip of others, run by run",
		"Median and 95th percentile (dashed) of the round-trip time of light test packets in each run, by the loaded direction, without the time in the reflector. It needs no synchronized clock.",
		"s", noWorking + " in this time range",
	},
		ranged(fresh(base, from(base, metric.WorkingRTT, half)), "{{loaded}}"), ranged(fresh(base, from(base, metric.WorkingRTT, most)), "{{loaded}} 95 %"),
	)).Span(6).Thresholds(steps(step{0, "transparent"}))
	b.WithPanel(inLoads(inLoads(rtt, "", prop("custom.lineWidth", 2)), " 95 %", dashed(), prop("custom.pointSize", 3)))
	b.WithPanel(inLoads(runs(lines(text{
		"Round trips per minute",
		"60 divided by the median round-trip time of light test packets in each run, by the loaded direction: the round trips one after another that a minute has, as a page or an application needs them. Low is bad. It needs no synchronized clock. Not the RPM of an HTTP transfer.",
		"none", noWorking + " in this time range",
	}, ranged(fresh(base, from(base, metric.WorkingRoundTrips)), "{{loaded}}"))).Span(6).
		Thresholds(steps(step{0, "transparent"})), ""))
}

// idleAndLoaded has a solid line of the direction under its own load and a dotted one before it.
func idleAndLoaded(t text, base string, d *metric.Desc) *timeseries.PanelBuilder {
	p := runs(plot(t,
		ranged(fresh(base, underLoad(base, d)), "{{direction}} loaded"),
		ranged(fresh(base, from(base, d, idle)), "{{direction}} idle"),
	))
	colored(p, " loaded", prop("custom.lineWidth", 2))
	return colored(p, " idle", dotted(), prop("custom.pointSize", 2))
}

// loadNames are the values of label loaded with their colors: purple is both directions.
var loadNames = []struct{ value, words, color string }{
	{"none", "idle", gray}, {"forward", "forward loaded", blue}, {"reverse", "reverse loaded", orange}, {"both", "both loaded", purple},
}

// inLoads names and colors the lines by what was loaded.
func inLoads(p *timeseries.PanelBuilder, suffix string, own ...dashboard.DynamicConfigValue) *timeseries.PanelBuilder {
	for _, n := range loadNames {
		p.OverrideByName(n.value+suffix, append(props{color(n.color), prop("displayName", n.words+suffix)}, own...))
	}
	return p
}

// workingDelay shows the delay of others in a direction, by what was loaded.
func workingDelay(name, base, matcher string) *timeseries.PanelBuilder {
	quantile := func(rank string) string { return from(base, metric.WorkingDelay, rank, matcher) }
	median, bound := "sum without (quantile_rank) ("+quantile(half)+")", from(base, metric.WorkingDelayBound, matcher)
	p := runs(plot(text{
		"Delay of others " + name + ", run by run",
		"Median one-way delay of light test packets in this direction, with its error bound (shaded), and the 95th percentile (dashed): before the load (idle), and while the load was in this direction, in the other, or in both. What the load adds is the queue in front of the slowest link; " + rules.WorkingDelayHigh.Name + " fires if its own direction adds more than " + inMillis(rules.ThresholdWorkingDelaySeconds) + " in " + fmt.Sprint(rules.WorkingDelayRuns) + " runs. A load in the other direction should add nothing.",
		"s", noWorkingDelay + " in this time range",
	},
		ranged(fresh(base, quantile(half)), "{{loaded}}"), ranged(fresh(base, quantile(most)), "{{loaded}} 95 %"),
		ranged(fresh(base, median+" + "+bound), "{{loaded}} +"), ranged(fresh(base, median+" - "+bound), "{{loaded}} -"),
	)).Height(9).AxisSoftMin(0).Thresholds(steps(step{0, "transparent"}))
	inLoads(p, "", prop("custom.lineWidth", 2))
	inLoads(p, " 95 %", dashed(), prop("custom.pointSize", 3))
	inLoads(p, " -", edge()...)
	for _, n := range loadNames {
		p.OverrideByName(n.value+" +", append(edge(color(n.color)), filledTo(n.value+" -", 20)...))
	}
	return p
}

// workingTable is the last run.
func workingTable(base string) *tablepanel.PanelBuilder {
	each := func(expr string) string { return "max by (direction, loaded) (" + expr + ")" }
	of := func(d *metric.Desc, matchers ...string) string { return each(from(base, d, matchers...)) }
	words := map[string]dashboard.ValueMappingResult{}
	for i, n := range loadNames {
		words[n.value] = word(n.words, n.color, int32(i))
	}
	median := of(metric.WorkingDelay, half)
	return columns(text{
		"Delay, variation, loss and R of others, the last run",
		"Light test packets of each direction before the load (idle) and while it ran: median one-way delay with its error bound, what the load added to the idle median (a constant clock error cancels), 95th percentile, delay variation (95th percentile above the least), loss, and transmission rating R of a call (G.107, codec G.711) with its change by one packet more or less lost.",
		"none", noWorking,
	},
		column{title: "direction", label: metric.Direction, empty: "no completed run"},
		column{title: "load", label: loaded, own: props{prop("custom.minWidth", 120), prop("mappings", values(words)), prop("custom.cellOptions", map[string]string{"type": "color-text"})}},
		// The first query has no row only without a run: loss needs no synchronized clock.
		column{title: "loss", query: of(metric.WorkingLoss), unit: "percentunit", own: props{prop("decimals", 2)}},
		column{title: "delay", query: median, unit: "s"},
		column{title: "± bound", query: of(metric.WorkingDelayBound), unit: "s"},
		column{title: "added", query: median + " - on (direction) group_left () max by (direction) (" + from(base, metric.WorkingDelay, half, idle) + ")", unit: "s"},
		column{title: "95 %", query: of(metric.WorkingDelay, most), unit: "s"},
		column{title: "variation 95 %", query: of(metric.WorkingVariation, most), unit: "s", own: props{prop("custom.minWidth", 110)}},
		column{title: "R", query: of(metric.WorkingR), own: props{
			prop("decimals", 0), prop("custom.cellOptions", map[string]string{"type": "color-text"}),
			prop("thresholds", map[string]any{"mode": "absolute", "steps": []map[string]any{
				{"value": nil, "color": red}, {"value": rules.ThresholdRFactor.Default, "color": yellow}, {"value": voice.Satisfied, "color": green},
			}}),
		}},
		column{title: "R by a packet", query: of(metric.WorkingRStep), own: props{prop("decimals", 0), prop("custom.minWidth", 110)}},
	).Span(24).Height(8).Decimals(1).Thresholds(steps(step{0, gray})).WithTransformation(sortedBy("load")).WithTransformation(sortedBy("direction"))
}
