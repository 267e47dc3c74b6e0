package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/rules"
)

const (
	trendsTitle = "Trends"
	trendsUID   = "oneway-trends"
)

// noHours is the text of a panel without long-term series.
const noHours = "No recorded hours so far: an hour is recorded when it has ended, a day, for ranges of more than 60 days, on the morning after (deploy/prometheus/rules). Ranges of up to 60 days show hours from before the rule of days was loaded"

// trendsBoard shows months and years of one path.
func trendsBoard() *boardBuilder {
	b := board(trendsTitle, trendsUID, "now-1y",
		"Months and years of one path: delay with its error bound, loss, voice quality and throughput; by hour and kind of day; distributions; months; outages. From long-term series, which have one sample an hour.").
		Links(append(links(append([]page{{pathTitle, pathUID, "The last hours of this path"}}, loadTestPages(pathUID)...)...), runbooks()))
	from := rules.LongIncrease(metric.PacketsSent)
	agentVariables(b, from)
	b.WithVariable(labelValues(metric.Path, "Path", from+"{"+thisAgent+"}"))
	b.WithVariable(agentVariable(from))
	b.WithVariable(labelValues(metric.Probe, "Probe", from+"{"+thisAgent+`,path="$path"}`))
	b.WithVariable(labelValues(metric.CodecL, "Codec", rec(rules.LongR.Name)))
	b.WithVariable(directionVariable())
	b.WithVariable(perVariable())
	maintenanceAnnotation(b, agentsRec(rules.MaintenanceNow.Name, `path="$path"`), "{{path}}")
	yearRow(b)
	timeOfDayRow(b)
	longDistributionRow(b)
	longRunsRow(b)
	monthsRow(b)
	comparedRow(b)
	return b
}

func yearRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("The whole time"))
	bothDirections(b, longDelay)
	b.WithPanel(longLoss())
	b.WithPanel(longAvailability())
	b.WithPanel(longVoice())
	b.WithPanel(longRoundTrip())
}

// byTime is a plot of long-term series whose samples are of the time least: hourly or per.
func byTime(least string, p *timeseries.PanelBuilder) *timeseries.PanelBuilder {
	return p.Interval(least).SpanNulls(common.BoolOrFloat64{Bool: new(false)})
}

func longDelay(name, matcher string) *timeseries.PanelBuilder {
	all, main := overTime(matcher), colorOf(name)
	least := all.minimum(rules.LongDelayMin.Name, metric.Direction)
	p50 := all.quantile("0.5", metric.Delay, metric.Direction)
	p50 = "(" + p50 + ") > on (" + metric.Direction + ") " + least + " or " + least + " or " + p50 // a bucket begins below the least delay
	bound := all.largest(rules.LongBound.Name, metric.Direction)
	// One query has the median and its band, so that a server adds the histograms once for them.
	band := "(" + p50 + ") + on (" + metric.Direction + ") group_right () (" + edgeOf(bound, "p50 + bound") + " or " + edgeOf("-1 * "+bound, "p50 − bound") + " or " + edgeOf("0 * "+bound, "p50") + ")"
	return byTime(per, plot(text{
		"Delay " + name + ", p50 and p95",
		"Median and 95th percentile of the known delays of each interval, from the sum of the histograms of its hours: they are right at each zoom (resolution 9 %). Strong band: the largest error bound of the interval's delays around the median. The least delay (dotted) is the floor: a step is another route, or a clock. The axis does not begin at zero. Corresponds to WPI figures 4 and 5, one way.",
		"s", noHours,
	},
		ranged(all.quantile("0.95", metric.Delay, metric.Direction), "p95"),
		ranged(band, "{{edge}}"),
		ranged(least, "min"),
	)).Height(9).
		OverrideByName("p95", props{color("light-" + main), dashed()}).
		OverrideByName("p50", props{color(main), prop("custom.lineWidth", 2)}).
		OverrideByName("min", props{color("semi-dark-" + main), dotted()}).
		OverrideByName("p50 + bound", append(edge(color(main)), filledTo("p50 − bound", 20)...)).
		OverrideByName("p50 − bound", edge(color(main)))
}

// edgeOf names a curve of a query that has several.
func edgeOf(expr, name string) string {
	return `label_replace(` + expr + `, "edge", "` + name + `", "", "")`
}

func longLoss() *timeseries.PanelBuilder {
	all := overTime()
	return byTime(per, counted(text{
		"Loss",
		"Lost over received, lost and undecided packets of each interval (RFC 7680), by the sums of its hours: the same at each zoom. Dotted: if all undecided packets had been lost; in reverse also those that are undecided forward, whose replies may be lost.",
		"percentunit", noHours,
	}, leastRatio,
		ranged(all.loss(metric.Direction), "{{direction}}"),
		ranged(all.highestLoss(), "{{direction}}, highest"),
	)).
		OverrideByRegexp("/^forward/", props{color(blue)}).
		OverrideByRegexp("/^reverse/", props{color(orange)}).
		OverrideByRegexp("/highest$/", props{dotted()})
}

func longAvailability() *timeseries.PanelBuilder {
	return byTime(per, plot(text{
		"Availability",
		"Share of the measured minutes of each interval in which the path replied. A gap is a time without measurement: the agent or Prometheus was off.",
		"percentunit", noHours,
	}, ranged(overTime().availability("path"), "available"))).Max(1).
		OverrideByName("available", props{color(green)})
}

// longVoice shows R of the codec, with an adaptive playout buffer if it is configured.
func longVoice() *timeseries.PanelBuilder {
	best := func(of func(past) string) string {
		return ofBuffer(func(matchers ...string) string { return of(overTime(matchers...)) }, selectedCodec, g107)
	}
	return byTime(per, plot(text{
		"R of a call, $codec",
		"Transmission rating R of ITU-T G.107: mean of the hours (in a long range of the days' means), and their lowest window (dotted). Below 80 some users are dissatisfied, below 70 many (G.109). Corresponds to thesis figure 7.2, in months.",
		"none", slimOr + "no recorded hour with a voice rating so far",
	},
		ranged(best(func(p past) string { return p.mean(rules.LongR.Name, metric.Direction) }), "{{direction}}"),
		ranged(best(func(p past) string { return p.minimum(rules.LongRMin.Name, metric.Direction) }), "{{direction}}, lowest"),
	)).Min(0).Max(100).Decimals(0).
		Thresholds(steps(step{0, red}, step{70, yellow}, step{80, green})).ThresholdsStyle(line()).
		OverrideByRegexp("/^forward/", props{color(blue)}).
		OverrideByRegexp("/^reverse/", props{color(orange)}).
		OverrideByRegexp("/lowest$/", props{dotted()})
}

func longRoundTrip() *timeseries.PanelBuilder {
	all := overTime()
	return byTime(per, lines(text{
		"Round trip",
		"Median and 95th percentile of each interval, least and largest round trip: free of clock errors. Corresponds to WPI figures 4 and 5.",
		"s", slimOr + "no recorded hour with round trips so far",
	},
		ranged(all.largest(rules.LongRoundTripMax.Name, metric.Path), "max"),
		ranged(all.quantile("0.95", metric.RoundTripTime, metric.Path), "p95"),
		ranged(all.quantile("0.5", metric.RoundTripTime, metric.Path), "p50"),
		ranged(all.minimum(rules.LongRoundTripMin.Name, metric.Path), "min"),
	)).
		OverrideByName("max", props{color("light-green"), dotted()}).
		OverrideByName("p95", props{color("light-green"), dashed()}).
		OverrideByName("p50", props{color(green), prop("custom.lineWidth", 2)}).
		OverrideByName("min", props{color("dark-green"), dotted()})
}
