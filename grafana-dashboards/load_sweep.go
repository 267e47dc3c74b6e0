package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"

	"oneway.example/exporter/core/metric"
)

const noSweep = slimOr + "no completed run in mode sweep"

func sweepRow(b *boardBuilder) {
	offered := axis{label: metric.OfferedL, column: metric.Direction, unit: inBits, bytes: true}
	each := func(d *metric.Desc) string {
		return "max by (offered_bytes_per_second, direction) (" + from(saturated, d) + ")"
	}
	b.WithRow(dashboard.NewRowBuilder("Rate sweep"))
	b.WithPanel(curve(text{
		"Throughput against offered rate",
		"Throughput at each step of the last sweep. On the dotted line throughput equals the offered rate; where a curve leaves it the link is full. Corresponds to MASCOTS figure 2.",
		inBits, noSweep,
	}, offered, bitsOf(each(metric.SweepThroughput))).
		WithTransformation(times(bitField, "1", "offered rate")).
		Min(0).
		OverrideByName("forward", props{color(colorOf("forward"))}).
		OverrideByName("reverse", props{color(colorOf("reverse"))}).
		OverrideByName("offered rate", props{
			color(gray), dotted(), prop("custom.lineWidth", 1), prop("custom.showPoints", "never"),
		}))
	b.WithPanel(curve(text{
		"Loss against offered rate",
		"Loss ratio at each step of the last sweep. A rise at the rate of the link is queue overflow; loss from the lowest rate on is independent of the load. Corresponds to MASCOTS figure 2.",
		"percentunit", noSweep,
	}, offered, each(metric.SweepLoss)).
		Min(0).AxisSoftMax(0.05).
		OverrideByName("forward", props{color(colorOf("forward"))}).
		OverrideByName("reverse", props{color(colorOf("reverse"))}))
	b.WithPanel(runs(lines(text{
		"Highest rate without loss, sweep by sweep",
		"Highest offered rate up to which no step of a sweep lost more than the configured share (MASCOTS figure 2).",
		inBits, noSweep + " in this time range, or the lowest step lost more",
	}, ranged(fresh(saturated, bitsOf(from(saturated, metric.SweepLossless))), "{{direction}}"))).Span(24).Height(7).
		Thresholds(steps(step{0, "transparent"})).
		OverrideByName("forward", props{color(colorOf("forward"))}).
		OverrideByName("reverse", props{color(colorOf("reverse"))}))
}

// corruptionRow counts rare events, by the hour.
func corruptionRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("Corrupted packets"))
	b.WithPanel(bars(counted(text{
		"Corrupted packets, by kind",
		"Packets of load tests, in the hour before each point, that were received with changed content: truncated, overwritten from some byte on, with bit errors, or with a corrupted header. Only packets that passed the UDP checksum or had none (checksum: false). The report of the run contains samples.",
		"none", slimOr + "no corrupted packet received",
	}, leastMinute, ranged("round(increase("+from(saturated, metric.RunPacketsCorrupted)+"[1h])) > 0", "{{direction}} {{kind}}"))).
		Thresholds(steps(step{0, "transparent"}, step{1, red})))
	b.WithPanel(counted(text{
		"UDP checksum errors counted by the kernel",
		"Datagrams, in the hour before each point, that the kernel of the receiving host dropped for a wrong UDP checksum while load tests ran (Udp: InCsumErrors), including other traffic of the host.",
		"none", noDetail,
	}, leastMinute, ranged("round(increase("+from(saturated, metric.KernelChecksumErrors)+"[1h]))", "{{direction}}")).
		DrawStyle(common.GraphDrawStyleBars).FillOpacity(60).LineWidth(0).
		Thresholds(steps(step{0, "transparent"}, step{1, red})).
		OverrideByName("forward", props{color(colorOf("forward"))}).
		OverrideByName("reverse", props{color(colorOf("reverse"))}))
}
