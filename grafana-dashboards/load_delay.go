package main

import (
	"strconv"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
	"github.com/grafana/grafana-foundation-sdk/go/trend"

	"oneway.example/exporter/metric"
)

const noLoadedDelay = "No valid delay under load: no completed run, or the clocks were not trusted"

func loadedDelayRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("Delay under load"))
	b.WithPanel(firstSeconds("forward", forward))
	b.WithPanel(firstSeconds("reverse", reverse))
	b.WithPanel(loadedCDF())
	b.WithPanel(loadedDelayOverTime())
}

// firstSeconds is how a queue fills.
func firstSeconds(name, matcher string) *trend.PanelBuilder {
	one := func(q, as string) string {
		return `label_replace(max by (elapsed, quantile_rank) (` + from(saturated, metric.LoadedDelayElapsed, matcher, metric.QuantileL+`="`+q+`"`) +
			`), "quantile_rank", "` + as + `", "", "")`
	}
	main := colorOf(name)
	return curve(text{
		"First seconds " + name,
		"Replaces thesis figure 6.1b: one-way delay in the first seconds of the last run, in fine bins: smallest, median and largest. The straight rise is the queue filling, at the difference of offered and carried rate; where it bends the queue is full and drops.",
		"s", noLoadedDelay,
	}, axis{label: metric.ElapsedL, column: metric.QuantileL, unit: "s"},
		one("0", "smallest")+" or "+one("0.5", "median")+" or "+one("1", "largest")).
		Min(0).PointSize(3).
		OverrideByName("median", props{color(main)}).
		OverrideByName("smallest", props{color("semi-dark-" + main), dotted(), prop("custom.showPoints", "never")}).
		OverrideByName("largest", props{
			color("light-" + main), dashed(), prop("custom.showPoints", "never"),
			prop("custom.fillBelowTo", "smallest"), prop("custom.fillOpacity", 10),
		})
}

// loadedCDF is read off classic buckets, and where there are none off a native histogram
// at the same delays: a server has the one or the other, and Prometheus 3 may have both.
func loadedCDF() *trend.PanelBuilder {
	reached := "sum by (direction, le) (increase(" + classic(metric.LoadedDelay, "_bucket", `le!="+Inf"`) + dashboardRange + "))"
	all := "sum by (direction) (increase(" + classic(metric.LoadedDelay, "_count") + dashboardRange + "))"
	fromBuckets := "(" + reached + " / on (direction) group_left () (" + all + " > 0)) and on (le) " +
		occupiedIn(classic(metric.LoadedDelay, "_bucket"), classic(metric.LoadedDelay, "_count"))
	return cdf(text{
		"Delay under load, CDF",
		"Replaces thesis figure 6.1c: share of the packets that arrived, in all runs of the time range, with at most this delay. Read at the bounds of the classic buckets, of those or of a native histogram, whichever the server has; the lines between the points are a guess.",
		"percentunit", noLoadedDelay,
	}, "("+fromBuckets+") or on (direction) "+
		fractions(metric.LoadedDelay, leastLoaded, metric.Direction, from(saturated, metric.LoadedDelay))).
		OverrideByName("forward", props{color(blue)}).
		OverrideByName("reverse", props{color(orange)})
}

func classic(d *metric.Desc, suffix string, matchers ...string) string {
	return recFrom(saturated, d.Name+suffix, matchers...)
}

// leastLoaded is the smallest delay, in seconds, that the fractions of a native histogram
// are asked for: a loaded link is not faster.
const leastLoaded = 0.002

// fractions are the shares of a native histogram up to the bounds of its classic buckets
// from least on, with the bound as label le.
func fractions(d *metric.Desc, least float64, by string, series string) string {
	var out []string
	for _, bound := range d.Buckets {
		if bound < least {
			continue
		}
		le := strconv.FormatFloat(bound, 'f', -1, 64)
		out = append(out, "label_replace(histogram_fraction(-Inf, "+le+", sum by ("+by+") (increase("+series+dashboardRange+`))), "le", "`+le+`", "", "")`)
	}
	return "(" + strings.Join(out, " or ") + ")"
}

// loadedDelayOverTime has a point a run: the histogram grows with each run only.
func loadedDelayOverTime() *timeseries.PanelBuilder {
	return runs(plot(text{
		"Delay under load, run by run",
		"Median and 99th percentile of the packets that arrived in each run (thesis: about half of them took longer than a second). What is far above the queue's own delay was held or sent again by the link itself. Read off buckets.",
		"s", noLoadedDelay + ", in this time range",
	},
		ranged(quantileIn("0.5", saturated, metric.LoadedDelay), "{{direction}} p50"),
		ranged(quantileIn("0.99", saturated, metric.LoadedDelay), "{{direction}} p99").Exemplar(true),
	)).Height(9).AxisSoftMin(0).
		Thresholds(steps(step{0, "transparent"})).
		OverrideByRegexp("/^forward/", props{color(blue)}).OverrideByRegexp("/^reverse/", props{color(orange)}).
		OverrideByRegexp("/ p99$/", props{dashed()})
}

// quantileIn is a quantile of what was observed lately, by direction; nothing where that
// is nothing.
func quantileIn(q, base string, d *metric.Desc) string {
	return "(histogram_quantile(" + q + ", sum by (direction, le) (rate(" + recFrom(base, d.Name+"_bucket") + rateInterval + ")))" +
		" or histogram_quantile(" + q + ", sum by (direction) (rate(" + from(base, d) + rateInterval + ")))) > -Inf"
}
