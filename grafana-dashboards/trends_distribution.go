package main

import (
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/trend"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/rules"
)

func longDistributionRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("Distributions of all packets"))
	b.WithPanel(weekdayCDF())
	b.WithPanel(longCCDF())
}

// quantilesAt are quantiles of a histogram by labels, as points with the quantile as label le and the share as value: of as many shares as steps. A
// subquery evaluates a share in each minute; the histogram shall be the same in all of them (past.atEnd), so that Prometheus adds the hours of
// a year once and not for each share. If several shares have the same quantile, the largest one is kept.
func quantilesAt(steps int, share func(step string) (share, rank string), by, histogram string) string {
	value, rank := share(fmt.Sprintf("(time() / 60 %% %d)", steps))
	return fmt.Sprintf(`max_over_time((count_values by (%s) ("le", histogram_quantile(%s, %s) > -Inf) * 0 + %s)[%dm:1m])`, by, rank, histogram, value, steps)
}

// oddsSteps is the number of shares of odds.
const oddsSteps = 25

// odds are shares from 0 to 1 in equal ratios of the odds, four to a decade: closer to each other at both ends.
func odds(step string) (share, rank string) {
	s := fmt.Sprintf("(%s > bool 0) / (1 + 10 ^ (%d / 4 - %s / 4) * (%s < bool %d))", step, oddsSteps/2, step, step, oddsSteps-1)
	return s, s
}

// weekdayCDF compares kinds of days.
func weekdayCDF() *trend.PanelBuilder {
	all := overAll(chosen)
	all.per, all.atEnd, all.offset = true, true, "-"+per
	curves := func(histogram string) string {
		begin := "10 ^ floor(log10(histogram_quantile(0, " + histogram + ") > 0))" // a logarithmic axis has round numbers only if it begins with one
		return quantilesAt(oddsSteps, odds, dayType, histogram) + " or count_values by (" + dayType + `) ("le", ` + begin + ") * 0"
	}
	p := curve(text{
		"Delay CDF by kind of day, $direction",
		"Share of the known delays on weekdays, weekends and holidays of the time range that are at most this delay. From 25 quantiles of the sum of the hours' histograms (resolution 9 %), connected by lines; of classic buckets interpolated. Corresponds to WPI figure 2.",
		"percentunit", noHours,
	}, axis{label: "le", column: dayType, unit: "s", log: 10},
		curves(all.counts(metric.Delay, dayType))+" or "+curves(all.sum(rules.LongBuckets(metric.Delay), dayType+", le"))).Min(0).Max(1)
	for _, d := range dayTypes() {
		p.OverrideByName(d.name, props{color(d.color)})
	}
	return p
}

// longCCDF shows the tail, as far as it is known: a share below 1/n is unknown, not zero.
func longCCDF() *trend.PanelBuilder {
	all := overAll()
	all.per, all.atEnd, all.offset = true, true, "-"+per
	native := all.counts(metric.Delay, metric.Direction)
	number := "histogram_count(" + native + ")"
	// 19 shares from 1 to 1e-6, three to a decade.
	tail := quantilesAt(19, func(step string) (share, rank string) {
		share = "10 ^ (-1 * " + step + " / 3)"
		return share, "1 - " + share
	}, metric.Direction, native)
	cut := "(" + tail + ") >= on (direction) group_left () 1 / " + number
	named := "(" + cut + ") * on (direction) group_left (n) count_values by (direction) (\"n\", round(" + number + "))"
	return curve(text{
		"Delay CCDF",
		"Share of the known delays that are longer than this delay, on logarithmic axes: the tail. It ends at 1/n, the share of one packet of n: what is rarer is not known. Corresponds to WPI figure 6.",
		"percentunit", noHours + ". Native histograms are needed",
	}, axis{label: "le", column: "curve", unit: "s", log: 10}, fmt.Sprintf(`label_join(%s, "curve", ", n = ", "direction", "n")`, named)).
		Min(1e-6).Max(1).Decimals(4).ScaleDistribution(scale(10)).
		OverrideByRegexp("/^forward/", props{color(blue)}).
		OverrideByRegexp("/^reverse/", props{color(orange)})
}
