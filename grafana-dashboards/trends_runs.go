package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/candlestick"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
	"github.com/grafana/grafana-foundation-sdk/go/trend"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/rules"
)

const noLongRuns = "No recorded runs of this path so far: an hour with completed load tests is recorded when it has ended (deploy/prometheus/rules)"

func longRunsRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("Throughput, run by run"))
	b.WithPanel(longThroughput())
	b.WithPanel(throughputCDF())
	b.WithPanel(throughputByHour())
	b.WithPanel(candles(per, overTime()))
}

// tested are the long-term series of all load tests of the path.
func tested(within string, matchers ...string) past {
	return past{base: anyTest, within: within, matchers: matchers}
}

// joined names curves by kind of day and direction.
func joined(expr string) string {
	return `label_join(` + expr + `, "curve", " ", "` + dayType + `", "direction")`
}

// longThroughput shows runs as points. A line between runs that are apart would suggest values.
func longThroughput() *timeseries.PanelBuilder {
	all := tested(stepRange)
	return byTime(hourly, lines(text{
		"Throughput of runs",
		"TCP throughput, UDP throughput and capacity by packet trains of the runs of each interval: the mean of the last run of each hour. Corresponds to Halepovic figure 15 and WPI figures 3 and 8 to 13, over all time.",
		inBits, noLongRuns,
	},
		ranged(bitsOf(all.mean(rules.LongLast(metric.TCPThroughput), "probe, direction")), "TCP {{probe}} {{direction}}"),
		ranged(bitsOf("("+all.mean(rules.LongLast(metric.UDPThroughput), "probe, direction")+" or "+all.mean(rules.LongLast(metric.SearchMaximum), "probe, direction")+")"), "UDP {{probe}} {{direction}}"),
		ranged(bitsOf(all.mean(rules.LongLast(metric.PathCapacity), "probe, direction")), "capacity {{probe}} {{direction}}"),
	)).Span(24).DrawStyle(common.GraphDrawStylePoints).ShowPoints(common.VisibilityModeAlways).PointSize(4)
}

func throughputCDF() *trend.PanelBuilder {
	all := tested(dashboardRange)
	const by = dayType + ", direction"
	p := curve(text{
		"TCP throughput CDF by kind of day",
		"Share of the runs on weekdays, weekends and holidays with at most this throughput; each run counts once. From 16 quantiles of native histograms with a resolution of 2.2 %. Corresponds to WPI figure 2.",
		"percentunit", noLongRuns + ". Native histograms are needed",
	}, axis{label: "le", column: "curve", unit: inBits, bytes: true}, joined(distribution{of: metric.TCPRunThroughput, by: by}.quantiles(all.counts(metric.TCPRunThroughput, by)))).Min(0).Max(1)
	for _, d := range dayTypes() {
		p.OverrideByRegexp("/^"+d.name+"/", props{shades(d.color)})
	}
	return p
}

// throughputByHour is a mean of runs: each hour has few.
func throughputByHour() *trend.PanelBuilder {
	all := tested(dashboardRange)
	p := curve(text{
		"TCP throughput by hour of day",
		"Mean of the last run of each hour, by hour of the day, on weekdays, weekends and holidays. Whether hours differ by more than chance, and by how much, says oneway trends. Corresponds to WPI figure 3.",
		inBits, noLongRuns,
	}, axis{label: "hour", column: "curve", unit: "suffix:h", least: new(0.0), most: new(23.0)}, joined(bitsOf("("+all.mean(rules.LongLast(metric.TCPThroughput), "hour, direction, "+dayType)+")"))).Min(0)
	for _, d := range dayTypes() {
		p.OverrideByRegexp("/^"+d.name+"/", props{shades(d.color)})
	}
	return p
}

// candles are boxes of the round trip, of intervals of the time least and longer: core Grafana has no box plot.
func candles(least string, all past) *candlestick.PanelBuilder {
	value := func(query, name string) string {
		return `label_replace(` + query + `, "value", "` + name + `", "", "")`
	}
	return candlestick.NewPanelBuilder().
		Title("Round trip, boxes").
		Description("Round trip of each interval: the box has the middle half of the packets (25th to 75th percentile, resolution 9 %), the line reaches from the least to the largest. Corresponds to the bars of WPI figures 4 and 5.").
		Unit("s").NoValue(slimOr + "no recorded hour with round trips so far").Datasource(datasource()).Span(24).Height(9).Interval(least).MaxDataPoints(120).
		Targets(targets([]*prometheus.DataqueryBuilder{
			ranged(value(all.quantile("0.25", metric.RoundTripTime, metric.Path), "25 %"), "25 %"),
			ranged(value(all.largest(rules.LongRoundTripMax.Name, metric.Path), "largest"), "largest"),
			ranged(value(all.minimum(rules.LongRoundTripMin.Name, metric.Path), "least"), "least"),
			ranged(value(all.quantile("0.75", metric.RoundTripTime, metric.Path), "75 %"), "75 %"),
		})).
		Mode(candlestick.VizDisplayModeCandles).CandleStyle(candlestick.CandleStyleCandles).
		ColorStrategy(candlestick.ColorStrategyOpenClose).
		Colors(candlestick.NewCandlestickColorsBuilder().Up(green).Down(green).Flat(green)).
		Fields(candlestick.NewCandlestickFieldMapBuilder().Open("25 %").High("largest").Low("least").Close("75 %")).
		WithTransformation(transform("joinByField", map[string]any{"byField": "Time", "mode": "outer"}))
}
