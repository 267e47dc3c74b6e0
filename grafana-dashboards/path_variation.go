package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"

	"oneway.example/exporter/metric"
)

func variationRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("Variation and round trip"))
	b.WithPanel(lines(text{
		"Delay variation (PDV)",
		"Delay less the smallest of its window (RFC 5481 section 4.2): what a playout buffer has to cover. Free of a constant clock offset, so it can be believed when the delay itself cannot. Of 5 minutes: to 9 % off a native histogram; else interpolated in a classic bucket, whose bounds are 1, 5, 20 and 100 ms, so that what is below 1 ms is a guess.",
		"s", noRules,
	},
		ranged(rec(recVariation, `quantile_rank="0.5"`), "{{direction}} p50"),
		ranged(rec(recVariation, `quantile_rank="0.95"`), "{{direction}} p95"),
		ranged(rec(recVariation, `quantile_rank="0.99"`), "{{direction}} p99"),
	).
		OverrideByName("forward p50", props{color(blue), prop("custom.lineWidth", 2)}).
		OverrideByName("reverse p50", props{color(orange), prop("custom.lineWidth", 2)}).
		OverrideByName("forward p95", props{color(blue), dashed()}).
		OverrideByName("reverse p95", props{color(orange), dashed()}).
		OverrideByName("forward p99", props{color("light-blue"), dotted()}).
		OverrideByName("reverse p99", props{color("light-orange"), dotted()}))
	b.WithPanel(lines(text{
		"Jitter and IPDV",
		"RTP interarrival jitter (RFC 3550), and the range that 90 % of the differences between successive packets fall into (IPDV, RFC 3393): negative is a packet that caught up. The range is read to 9 % off a native histogram, and absent from a server that takes none: it has the jitter. Neither is the jitter of the D-ITG report, a standard deviation of the delays.",
		"s", "No two successive packets received." + orSlim,
	},
		ranged(of(metric.Jitter), "{{direction}} jitter"),
		ranged(quantile("0.95", metric.IPDV, metric.Direction), "{{direction}} IPDV p95"),
		ranged(quantile("0.05", metric.IPDV, metric.Direction), "{{direction}} IPDV p5"),
	).
		OverrideByName("forward jitter", props{color(blue), prop("custom.lineWidth", 2)}).
		OverrideByName("reverse jitter", props{color(orange), prop("custom.lineWidth", 2)}).
		OverrideByRegexp("/forward IPDV/", props{color(blue), dashed()}).
		OverrideByRegexp("/reverse IPDV/", props{color(orange), dashed()}))
	b.WithPanel(plot(text{
		"Round trip",
		"(T4−T1)−(T3−T2): without clock error and without the reflector's own time. Replaces WPI figures 4 to 6; the smallest and largest are of each window. The axis does not begin at zero.",
		"s", "No reply",
	},
		ranged(of(metric.RoundTripTimeMax), "max"),
		ranged(rec(recRTT, `quantile_rank="0.95"`), "p95"),
		ranged(rec(recRTT, `quantile_rank="0.5"`), "p50"),
		ranged(of(metric.RoundTripTimeMin), "min"),
	).
		OverrideByName("max", props{color("light-green"), dotted()}).
		OverrideByName("p95", props{color(green), dashed()}).
		OverrideByName("p50", props{color(green), prop("custom.lineWidth", 2)}).
		OverrideByName("min", props{color("dark-green"), dotted()}))
	b.WithPanel(lines(text{
		"Time spent in the reflector",
		"T3−T2 on the reflector's clock. It is part of no delay here; a reflector that takes long also stamps late. Read to 9 % off a native histogram, else off classic buckets at 1 and 10 ms.",
		"s", "No reply with both of the reflector's stamps." + orSlim,
	},
		ranged(quantile("0.5", metric.Residence, ""), "p50"),
		ranged(quantile("0.99", metric.Residence, ""), "p99"),
	).
		OverrideByName("p50", props{color(purple), prop("custom.lineWidth", 2)}).
		OverrideByName("p99", props{color(purple), dashed()}))
}
