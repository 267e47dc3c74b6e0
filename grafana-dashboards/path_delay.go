package main

import (
	"strconv"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/heatmap"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
	"github.com/grafana/grafana-foundation-sdk/go/trend"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/rules"
)

// noPackets is short: a curve without points shows it as a legend, which Grafana does not wrap.
const noPackets = "No valid delay (see Clock), or profile slim without native histograms"

func delayRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("One-way delay"))
	bothDirections(b, delayLines)
	bothDirections(b, delayHeat)
	b.WithPanel(delayCDF())
	b.WithPanel(delayExcess())
}

// delayLines shows one direction over time. The strong band around the median of a window is its error bound, the pale
// band from min to p95 is the variation. The axis does not begin at zero, where a constant delay would be a flat line at
// the top; the band keeps the range of the axis at least as large as the bound.
func delayLines(name, matcher string) *timeseries.PanelBuilder {
	p50 := windowMedian(matcher)
	bound := "ignoring (quantile_rank) " + of(metric.DelayErrorBound, matcher)
	main := colorOf(name)
	return plot(text{
		"Delay " + name,
		"Median and smallest delay of each window (the smallest is close to the delay with empty queues), and 95th percentile over 5 minutes, unless packets whose delay is not known could change it. Profile slim has no smallest delay. Strong band: error bound of the window's median, which contains the true median. Pale band: from the smallest delay to p95. The axis does not begin at zero. No line in windows without a valid delay; no median where half of the packets were lost.",
		"s", noDelay,
	},
		ranged(rec(rules.DelayQuantiles5m.Name, matcher, `quantile_rank="0.95"`), "p95"),
		ranged(p50, "p50"),
		ranged(of(metric.DelayMin, matcher), "min"),
		ranged(p50+" + "+bound, "p50 + bound"),
		ranged(p50+" - "+bound, "p50 − bound"),
	).Height(9).
		OverrideByName("p95", append(filledTo("min", 10), color("light-"+main), dashed())).
		OverrideByName("p50", props{color(main), prop("custom.lineWidth", 2)}).
		OverrideByName("min", props{color("semi-dark-" + main), dotted()}).
		OverrideByName("p50 + bound", append(edge(color(main)), filledTo("p50 − bound", 20)...)).
		OverrideByName("p50 − bound", edge(color(main)))
}

// windowMedian selects the median of each window, to which oneway_delay_error_bound_seconds applies.
func windowMedian(matchers ...string) string {
	return of(metric.DelayQuantile, append(matchers, metric.QuantileL+`="0.5"`)...)
}

// delayHeat uses classic buckets only where the server has no native histogram: a heatmap cannot show both kinds.
func delayHeat(name, matcher string) *heatmap.PanelBuilder {
	native, classic := of(metric.Delay, matcher), bucket(metric.Delay, matcher)
	return heats(text{
		"Delay " + name + ", all packets",
		"Number of packets by delay over time, without those whose delay is not known, such as where the reply was lost. Two bands indicate two routes or two states of a radio link; a band that grows upwards indicates a growing queue. Rows of a native histogram are 9 % high. Without native histograms the rows are the few classic buckets, which are too wide to separate such bands.",
		"s", noPackets,
	}, heat("sum(increase("+native+rateInterval+")) or (sum by (le) (increase("+classic+rateInterval+")) and on (le) "+
		occupied(metric.Delay, matcher)+" unless on () count_over_time("+native+dashboardRange+" @ end()))"))
}

// delayCDF covers the whole time range. "of sent" assigns lost packets an infinite delay, and none to those whose delay is not known: the
// curve ends below 100 % by the share of both.
func delayCDF() *trend.PanelBuilder {
	packets := rules.Packets{Sum: true, Series: func(d *metric.Desc, matchers ...string) string { return of(d, matchers...) + dashboardRange }}
	all := distribution{metric.Delay, thisPath, nil, metric.Direction, false}
	return cdf(text{
		"Delay CDF",
		"Share of the known delays of the time range that are at most this delay. \"of sent\" is the share of all packets with an outcome: lost ones and those whose delay is not known, such as where the reply was lost, are missing at the top. The share of all that are at most this delay is on the curve or above it, by as many as are not known. " + readOff,
		"percentunit", noPackets,
	}, all.curves()+" or "+all.scaled("clamp_max(("+all.count()+") / ("+packets.Outcomes()+" > 0), 1)", ", of sent")).
		OverrideByRegexp("/of sent/", props{dashed()})
}

func delayExcess() *timeseries.PanelBuilder {
	return lines(text{
		"Delay above its baseline",
		"95th percentile over 5 minutes minus its " + strconv.Itoa(rules.BaselineDays) + "-day baseline, as evaluated by " + rules.DelayBlowUp.Name + " (default: above " + inMillis(rules.ThresholdDelayBlowUpSeconds) + " and above " + amount(rules.ThresholdDelayBlowUpRatio.Default, "times") + " the baseline). Points on the zero line show the likely cause of a large excess.",
		"s", "No baseline yet: it needs the recording rules and " + amount(rules.ThresholdBaselineHours.Default, "hours") + " of history (" + rules.ThresholdBaselineHours.Name + ")",
	},
		ranged(rec(rules.DelayExcess.Name), "{{direction}}"),
		ranged(rec(rules.DelayBaseline.Name), "{{direction}} baseline"),
		ranged(rec(rules.DelayExcessCause.Name)+" * 0", "{{direction}}, likely cause: {{cause}}"),
	).Height(9).Thresholds(steps(step{0, "transparent"}, step{rules.ThresholdDelayBlowUpSeconds.Default, red})).ThresholdsStyle(line()).
		OverrideByName("forward", props{color(colorOf("forward")), prop("custom.lineWidth", 2)}).
		OverrideByName("reverse", props{color(colorOf("reverse")), prop("custom.lineWidth", 2)}).
		OverrideByName("forward baseline", props{color(blue), dotted()}).
		OverrideByName("reverse baseline", props{color(orange), dotted()}).
		OverrideByRegexp("/likely cause/", props{prop("custom.drawStyle", "points"), prop("custom.pointSize", 6), prop("custom.showPoints", "always")})
}
