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
		"Instead of thesis figures 5.3, 5.4 and 6.1b, which have the delay of the load itself: here it is that of light test packets beside whatever the path carries. Median and smallest delay of each window (what the path takes when no queue stands), and the 95th percentile of 5 minutes. The strong band around a window's median is the error bound of the same window: the true median of its packets is in it. The pale band reaches from the smallest delay to p95. The axis does not begin at zero. No line where no delay could be proven, and no median where half of a window was lost.",
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

// delayHeat falls back to a native histogram only where there are no classic
// buckets: the two kinds cannot share a heatmap.
func delayHeat(name, matcher string) *heatmap.PanelBuilder {
	classic := bucket(metric.Delay, matcher)
	return heats(text{
		"Delay " + name + ", all packets",
		"How many packets took how long. Two bands are two routes or two states of a radio link; a band that grows upwards is a queue.",
		"s", noDelay,
	}, heat("sum by (le) (increase("+classic+rateInterval+")) and on (le) "+occupied(metric.Delay, matcher)+
		" or (sum(increase("+of(metric.Delay, matcher)+rateInterval+")) unless on () group("+classic+"))"))
}

// delayCDF is read off the classic buckets of the whole time range. "of sent"
// counts lost packets as never arriving, so that its end below 100 % is the loss.
func delayCDF() *trend.PanelBuilder {
	reached := "sum by (direction, le) (increase(" + bucket(metric.Delay, `le!="+Inf"`) + dashboardRange + "))"
	valid := "sum by (direction) (increase(" + count(metric.Delay) + dashboardRange + "))"
	received := "sum by (direction) (increase(" + of(metric.PacketsReceived) + dashboardRange + "))"
	lost := "sum by (direction) (increase(" + of(metric.PacketsLost) + dashboardRange + "))"
	ofReceived := reached + " / on (direction) group_left () (" + valid + " > 0)"
	ofSent := "label_replace(" + ofReceived + " * on (direction) group_left () (" + received +
		" / (" + received + " + " + lost + " > 0)), \"direction\", \"$1, of sent\", \"direction\", \"(.*)\")"
	return cdf(text{
		"Delay CDF",
		"Instead of thesis figures 5.4c and 6.1c, which have packets of the load: the share of test packets of the time range with at most this delay. \"of sent\" takes lost packets as never arriving; exact at the points, which are bounds of buckets; the lines between them are a guess. Needs classic buckets.",
		"percentunit", "No classic buckets in this time range: no valid delay, or the server ingests native histograms only",
	}, "("+ofReceived+" or "+ofSent+") and on (le) "+occupied(metric.Delay)).
		OverrideByName("forward", props{color(blue)}).
		OverrideByName("reverse", props{color(orange)}).
		OverrideByName("forward, of sent", props{color(blue), dashed()}).
		OverrideByName("reverse, of sent", props{color(orange), dashed()})
}

// cdf is a curve over the bounds of a histogram of delays.
func cdf(t text, query string) *trend.PanelBuilder {
	return curve(t, axis{label: "le", column: metric.Direction, unit: "s", log: 10}, query).Min(0).Max(1)
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
