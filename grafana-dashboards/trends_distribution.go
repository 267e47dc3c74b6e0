package main

import (
	"fmt"
	"strconv"
	"strings"

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

// weekdayCDF compares kinds of days.
func weekdayCDF() *trend.PanelBuilder {
	all := overAll(chosen)
	by := distribution{of: metric.Delay, by: dayType}
	p := curve(text{
		"Delay CDF by kind of day, $direction",
		"Share of the known delays on weekdays, weekends and holidays of the time range that are at most this delay. From 16 quantiles of the sum of the hours' histograms (resolution 9 %), connected by lines; of classic buckets interpolated. Corresponds to WPI figure 2.",
		"percentunit", noHours,
	}, axis{label: "le", column: dayType, unit: "s", log: 10},
		by.quantiles(all.counts(metric.Delay, dayType))+" or "+by.quantiles(all.sum(rules.LongBuckets(metric.Delay), dayType+", le"))).Min(0).Max(1)
	for _, d := range dayTypes() {
		p.OverrideByName(d.name, props{color(d.color)})
	}
	return p
}

// longCCDF shows the tail, as far as it is known: a share below 1/n is unknown, not zero.
func longCCDF() *trend.PanelBuilder {
	all := overAll()
	tail := func(histogram, number string) string {
		var out []string
		for _, share := range []float64{0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 5e-4, 2e-4, 1e-4, 5e-5, 2e-5, 1e-5, 5e-6, 2e-6, 1e-6} {
			out = append(out, "count_values by (direction) (\"le\", histogram_quantile("+strconv.FormatFloat(1-share, 'f', -1, 64)+", "+histogram+
				")) * 0 + "+strconv.FormatFloat(share, 'g', -1, 64))
		}
		// Each histogram is a sum of all hours: the cut needs the number once, not for each share.
		cut := "(" + strings.Join(out, " or ") + ") >= on (direction) group_left () 1 / " + number
		named := "(" + cut + ") * on (direction) group_left (n) count_values by (direction) (\"n\", round(" + number + "))"
		return fmt.Sprintf(`label_join(%s, "curve", ", n = ", "direction", "n")`, named)
	}
	native := all.counts(metric.Delay, metric.Direction)
	return curve(text{
		"Delay CCDF",
		"Share of the known delays that are longer than this delay, on logarithmic axes: the tail. It ends at 1/n, the share of one packet of n: what is rarer is not known. Corresponds to WPI figure 6.",
		"percentunit", noHours + ". Native histograms are needed",
	}, axis{label: "le", column: "curve", unit: "s", log: 10}, tail(native, "histogram_count("+native+")")).
		Min(1e-6).Max(1).Decimals(4).ScaleDistribution(scale(10)).
		OverrideByRegexp("/^forward/", props{color(blue)}).
		OverrideByRegexp("/^reverse/", props{color(orange)})
}
