package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
	"github.com/grafana/grafana-foundation-sdk/go/trend"

	"oneway.example/exporter/core/metric"
)

const noLoadedDelay = slimOr + "no valid delay under load: no completed run, or a clock was not synchronized"

func loadedDelayRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("Delay under load"))
	bothDirections(b, firstSeconds)
	b.WithPanel(loadedCDF())
	b.WithPanel(loadedDelayOverTime())
}

// elapsedUnit keeps fractions of a second short, as the labels of an axis are 40 px apart.
const elapsedUnit = "suffix:s"

// firstSeconds shows the delay while the queue fills.
func firstSeconds(name, matcher string) *trend.PanelBuilder {
	one := func(q, as string) string {
		return `label_replace(max by (elapsed_seconds, quantile_rank) (` + from(saturated, metric.LoadedDelayElapsed, matcher, metric.QuantileL+`="`+q+`"`) +
			`), "quantile_rank", "` + as + `", "", "")`
	}
	main := colorOf(name)
	return curve(text{
		"First seconds " + name,
		"One-way delay in the first seconds of the last run: median of each time bin, with elapsed_range also the smallest and the largest. The linear rise is the queue being filled at the difference between offered rate and link rate; where the curve flattens the queue is full and drops packets.",
		"s", noLoadedDelay,
	}, axis{label: metric.ElapsedL, column: metric.QuantileL, unit: elapsedUnit},
		one("0", "smallest")+" or "+one("0.5", "median")+" or "+one("1", "largest")).
		Min(0).PointSize(3).
		OverrideByName("median", props{color(main)}).
		OverrideByName("smallest", props{color("semi-dark-" + main), dotted(), prop("custom.showPoints", "never")}).
		OverrideByName("largest", append(filledTo("smallest", 10), color("light-"+main), dashed(), prop("custom.showPoints", "never")))
}

// loadedCDF covers all runs of the time range.
func loadedCDF() *trend.PanelBuilder {
	return cdf(text{
		"Delay under load, CDF",
		"Share of the received packets of all runs in the time range with at most this delay. " + readOff,
		"percentunit", noLoadedDelay,
	}, distribution{metric.LoadedDelay, saturated, nil, metric.Direction, false}.curves())
}

// loadedDelayOverTime has one point per run: the histogram changes only at the end of a run.
func loadedDelayOverTime() *timeseries.PanelBuilder {
	return runs(plot(text{
		"Delay under load, run by run",
		"Median and 99th percentile of the delay of the packets received in each run. Values far above the queue delay indicate buffering or retransmission on the link layer. Resolution: 9 % with native histograms, else a few classic buckets.",
		"s", noLoadedDelay + ", in this time range",
	},
		ranged(quantileIn("0.5", saturated, metric.LoadedDelay), "{{direction}} p50"),
		ranged(quantileIn("0.99", saturated, metric.LoadedDelay), "{{direction}} p99").Exemplar(true),
	)).Height(9).AxisSoftMin(0).
		Thresholds(steps(step{0, "transparent"})).
		OverrideByRegexp("/^forward/", props{color(blue)}).OverrideByRegexp("/^reverse/", props{color(orange)}).
		OverrideByRegexp("/ p99$/", props{dashed()})
}

// quantileIn is a quantile of the observations in the rate interval, by direction; no series without observations.
func quantileIn(q, base string, d *metric.Desc) string {
	return "(histogram_quantile(" + q + ", sum by (direction) (rate(" + from(base, d) + rateInterval + ")))" +
		" or histogram_quantile(" + q + ", sum by (direction, le) (rate(" + recFrom(base, d.Name+"_bucket") + rateInterval + ")))) > -Inf"
}
