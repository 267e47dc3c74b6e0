package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/rules"
)

func variationRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("Delay variation and round-trip time"))
	b.WithPanel(lines(text{
		"Delay variation (PDV)",
		"Delay minus the smallest delay of its window (RFC 5481 section 4.2), which a playout buffer has to cover. A constant clock offset cancels, so PDV is valid even if the delay is not; a clock that is slewed changes it, by at most twice the error bound of the delay where that is known. Over 5 minutes, unless packets whose delay is not known could change it. " + resolution(metric.DelayVariation) + " Between the bounds of classic buckets values are interpolated, and those below the first are not reliable.",
		"s", noRules,
	},
		ranged(rec(rules.DelayVariationQuantiles.Name, `quantile_rank="0.5"`), "{{direction}} p50"),
		ranged(rec(rules.DelayVariationQuantiles.Name, `quantile_rank="0.95"`), "{{direction}} p95"),
		ranged(rec(rules.DelayVariationQuantiles.Name, `quantile_rank="0.99"`), "{{direction}} p99"),
	).
		OverrideByName("forward p50", props{color(blue), prop("custom.lineWidth", 2)}).
		OverrideByName("reverse p50", props{color(orange), prop("custom.lineWidth", 2)}).
		OverrideByName("forward p95", props{color(blue), dashed()}).
		OverrideByName("reverse p95", props{color(orange), dashed()}).
		OverrideByName("forward p99", props{color("light-blue"), dotted()}).
		OverrideByName("reverse p99", props{color("light-orange"), dotted()}))
	b.WithPanel(lines(text{
		"Jitter and IPDV",
		"RTP interarrival jitter (RFC 3550), and the range of 90 % of the delay differences between successive packets (IPDV, RFC 3393); it is negative if the later packet had the smaller delay. Where more than 2.5 % of the delays are not known there is no range: each is missing in two differences. IPDV needs native histograms (resolution 9 %). The jitter of the D-ITG report is another quantity: the standard deviation of the delays.",
		"s", "No two successive packets were received" + orSlim,
	},
		ranged(of(metric.Jitter), "{{direction}} jitter"),
		ranged(ipdv("0.95"), "{{direction}} IPDV p95"),
		ranged(ipdv("0.05"), "{{direction}} IPDV p5"),
	).
		OverrideByName("forward jitter", props{color(blue), prop("custom.lineWidth", 2)}).
		OverrideByName("reverse jitter", props{color(orange), prop("custom.lineWidth", 2)}).
		OverrideByRegexp("/forward IPDV/", props{color(blue), dashed()}).
		OverrideByRegexp("/reverse IPDV/", props{color(orange), dashed()}))
	b.WithPanel(plot(text{
		"Round-trip time",
		"(T4−T1)−(T3−T2): free of clock error and of the residence time in the reflector. Smallest and largest are per window, quantiles over 5 minutes. The axis does not begin at zero. Corresponds to WPI figures 4 to 6.",
		"s", "No reply",
	},
		ranged(of(metric.RoundTripTimeMax), "max"),
		ranged(rec(rules.RoundTripQuantiles5m.Name, `quantile_rank="0.95"`), "p95"),
		ranged(rec(rules.RoundTripQuantiles5m.Name, `quantile_rank="0.5"`), "p50"),
		ranged(of(metric.RoundTripTimeMin), "min"),
	).
		OverrideByName("max", props{color("light-green"), dotted()}).
		OverrideByName("p95", props{color(green), dashed()}).
		OverrideByName("p50", props{color(green), prop("custom.lineWidth", 2)}).
		OverrideByName("min", props{color("dark-green"), dotted()}))
	b.WithPanel(hostTime(text{
		"Residence time in the reflector",
		"T3−T2 by the reflector's clock. It is excluded from all delays; a large value indicates an overloaded reflector, whose timestamps may be late, too. " + resolution(metric.Residence),
		"s", "No reply with both timestamps of the reflector" + orSlim,
	}, metric.Residence))
}

// ipdv is a quantile of IPDV, 0.05 or 0.95, where the delays that are not known are too few to move it anywhere.
func ipdv(q string) string {
	return quantile(q, metric.IPDV, metric.Direction) + " unless on (" + metric.Direction + ") " + rec(rules.DelayVariationUnknown.Name) + " > 0.025"
}
