package main

import (
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
		"Replaces thesis figure 6.1b: one-way delay in the first seconds of the last run, the median of each bin; with elapsed_range the smallest and the largest, too. The straight rise is the queue filling, at the difference of offered and carried rate; where it bends the queue is full and drops.",
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

// loadedCDF is of all runs of the time range.
func loadedCDF() *trend.PanelBuilder {
	return cdf(text{
		"Delay under load, CDF",
		"Replaces thesis figure 6.1c: share of the packets that arrived, in all runs of the time range, with at most this delay. " + readOff,
		"percentunit", noLoadedDelay,
	}, distribution{metric.LoadedDelay, saturated, nil, metric.Direction}.curves())
}

// loadedDelayOverTime has a point a run: the histogram grows with each run only.
func loadedDelayOverTime() *timeseries.PanelBuilder {
	return runs(plot(text{
		"Delay under load, run by run",
		"Median and 99th percentile of the packets that arrived in each run (thesis: about half of them took longer than a second). What is far above the queue's own delay was held or sent again by the link itself. Read to 9 % off a native histogram, else off a few classic buckets.",
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
	return "(histogram_quantile(" + q + ", sum by (direction) (rate(" + from(base, d) + rateInterval + ")))" +
		" or histogram_quantile(" + q + ", sum by (direction, le) (rate(" + recFrom(base, d.Name+"_bucket") + rateInterval + ")))) > -Inf"
}
