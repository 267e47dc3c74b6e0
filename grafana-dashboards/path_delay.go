package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/heatmap"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
	"github.com/grafana/grafana-foundation-sdk/go/trend"

	"oneway.example/exporter/metric"
)

func delayRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("One-way delay"))
	b.WithPanel(delayLines("forward", forward))
	b.WithPanel(delayLines("reverse", reverse))
	b.WithPanel(delayHeat("forward", forward))
	b.WithPanel(delayHeat("reverse", reverse))
	b.WithPanel(delayCDF())
	b.WithPanel(delayExcess())
}

// delayLines is one direction over time. The bound is drawn around the median of the same
// window as a band: what the truth may be, not how much the delay varies; that is the
// paler band from min to p95. The axis does not begin at zero, where a quiet path would be
// a flat line at the top: the bound is its smallest range, so that variation which
// the clocks could have made looks small, too.
func delayLines(name, matcher string) *timeseries.PanelBuilder {
	p50 := windowMedian(matcher)
	bound := "ignoring (quantile_rank) " + of(metric.DelayErrorBound, matcher)
	main := colorOf(name)
	return plot(text{
		"Delay " + name,
		"Instead of thesis figures 5.3, 5.4 and 6.1b, which have the delay of the load itself: here it is that of light test packets beside whatever the path carries. Median and smallest delay of each window (what the path takes when no queue stands), and the 95th percentile of 5 minutes (profile slim has no smallest delay). The strong band around a window's median is the error bound of the same window: the true median of its packets is in it. The pale band reaches from the smallest delay to p95. The axis does not begin at zero. No line where no delay could be proven, and no median where half of a window was lost.",
		"s", noDelay,
	},
		ranged(rec(recDelay, matcher, `quantile_rank="0.95"`), "p95"),
		ranged(p50, "p50"),
		ranged(of(metric.DelayMin, matcher), "min"),
		ranged(p50+" + "+bound, "p50 + bound"),
		ranged(p50+" - "+bound, "p50 − bound"),
	).Height(9).
		OverrideByName("p95", props{
			color("light-" + main), dashed(),
			prop("custom.fillBelowTo", "min"), prop("custom.fillOpacity", 10),
		}).
		OverrideByName("p50", props{color(main), prop("custom.lineWidth", 2)}).
		OverrideByName("min", props{color("semi-dark-" + main), dotted()}).
		OverrideByName("p50 + bound", props{
			color(main), prop("custom.lineWidth", 0),
			prop("custom.fillBelowTo", "p50 − bound"), prop("custom.fillOpacity", 20),
			prop("custom.hideFrom", map[string]bool{"legend": true, "tooltip": true, "viz": false}),
		}).
		OverrideByName("p50 − bound", props{
			color(main), prop("custom.lineWidth", 0),
			prop("custom.hideFrom", map[string]bool{"legend": true, "tooltip": true, "viz": false}),
		})
}

// windowMedian is the median of each window: what oneway_delay_error_bound_seconds is of.
func windowMedian(matchers ...string) string {
	return of(metric.DelayQuantile, append(matchers, metric.QuantileL+`="0.5"`)...)
}

// delayHeat falls back to classic buckets only where there is no native histogram:
// the two kinds cannot share a heatmap.
func delayHeat(name, matcher string) *heatmap.PanelBuilder {
	native, classic := of(metric.Delay, matcher), bucket(metric.Delay, matcher)
	return heats(text{
		"Delay " + name + ", all packets",
		"How many packets took how long. Two bands are two routes or two states of a radio link; a band that grows upwards is a queue. The rows of a native histogram are 9 % high; from a server that takes none they are its few classic buckets, too wide to tell such bands apart.",
		"s", noDelay + "; of profile slim also where the server takes no native histograms",
	}, heat("sum(increase("+native+rateInterval+")) or (sum by (le) (increase("+classic+rateInterval+")) and on (le) "+
		occupied(metric.Delay, matcher)+" unless on () count_over_time("+native+dashboardRange+" @ end()))"))
}

// delayCDF is of the whole time range. "of sent" counts lost packets as never arriving, so
// that its end below 100 % is the loss. Profile slim does not count what was received.
func delayCDF() *trend.PanelBuilder {
	moved := func(d *metric.Desc) string { return "sum by (direction) (increase(" + of(d) + dashboardRange + "))" }
	received, lost, sent := moved(metric.PacketsReceived), moved(metric.PacketsLost), moved(metric.PacketsSent)
	arrived := "(" + received + " / (" + received + " + " + lost + " > 0) or 1 - " + lost + " / (" + sent + " > 0))"
	all := distribution{metric.Delay, thisPath, nil, metric.Direction}
	return cdf(text{
		"Delay CDF",
		"Instead of thesis figures 5.4c and 6.1c, which have packets of the load: the share of test packets of the time range with at most this delay. \"of sent\" takes lost packets as never arriving. " + readOff,
		"percentunit", noDelay + "; of profile slim also where the server takes no native histograms",
	}, all.curves()+" or "+all.scaled(arrived, ", of sent")).
		OverrideByRegexp("/of sent/", props{dashed()})
}

func delayExcess() *timeseries.PanelBuilder {
	return lines(text{
		"Delay above its baseline",
		"95th percentile of 5 minutes less its 7-day baseline: what OnewayDelayBlowUp watches (default: above 50 ms and above three times the baseline). Points on the zero line name the likely cause of a large excess.",
		"s", "No baseline yet: it takes a day of history (oneway:threshold:baseline_hours), and the recording rules",
	},
		ranged(rec(recExcess), "{{direction}}"),
		ranged(rec(recBaseline), "{{direction}} baseline"),
		ranged(rec(recExcessCause)+" * 0", "{{direction}}: looks like {{cause}}"),
	).Height(9).Thresholds(steps(step{0, "transparent"}, step{0.05, red})).ThresholdsStyle(line()).
		OverrideByName("forward", props{color(blue), prop("custom.lineWidth", 2)}).
		OverrideByName("reverse", props{color(orange), prop("custom.lineWidth", 2)}).
		OverrideByName("forward baseline", props{color(blue), dotted()}).
		OverrideByName("reverse baseline", props{color(orange), dotted()}).
		OverrideByRegexp("/looks like/", props{prop("custom.drawStyle", "points"), prop("custom.pointSize", 6), prop("custom.showPoints", "always")})
}
