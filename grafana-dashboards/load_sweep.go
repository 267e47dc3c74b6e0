package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"

	"oneway.example/exporter/metric"
)

const noSweep = "No completed rate sweep (mode: sweep) by the probe that is chosen above"

func sweepRow(b *boardBuilder) {
	offered := axis{label: metric.OfferedL, column: metric.Direction, unit: inBits, bytes: true}
	each := func(d *metric.Desc) string { return "max by (offered, direction) (" + from(saturated, d) + ")" }
	b.WithRow(dashboard.NewRowBuilder("Rate sweep"))
	b.WithPanel(curve(text{
		"Throughput against offered rate",
		"Replaces MASCOTS figure 2: what came through at each step of the last sweep. On the dotted line all of it did; where a curve leaves it the link is full.",
		inBits, noSweep,
	}, offered, bitsOf(each(metric.SweepThroughput))).
		WithTransformation(times(bitField, "1", "all of it")).
		Min(0).
		OverrideByName("forward", props{color(blue)}).
		OverrideByName("reverse", props{color(orange)}).
		OverrideByName("all of it", props{
			color(gray), dotted(), prop("custom.lineWidth", 1), prop("custom.showPoints", "never"),
		}))
	b.WithPanel(curve(text{
		"Loss against offered rate",
		"Replaces MASCOTS figure 2: share lost at each step of the last sweep. A knee at the link's rate is a queue that overflows; loss from the lowest rate on is the path's own.",
		"percentunit", noSweep,
	}, offered, each(metric.SweepLoss)).
		Min(0).AxisSoftMax(0.05).
		OverrideByName("forward", props{color(blue)}).
		OverrideByName("reverse", props{color(orange)}))
	b.WithPanel(runs(lines(text{
		"Highest rate without loss, sweep by sweep",
		"Highest offered rate below which no step of a sweep lost more than the configured share (MASCOTS figure 2).",
		inBits, noSweep + " in this time range, or the lowest step lost more",
	}, ranged(fresh(saturated, bitsOf(from(saturated, metric.SweepLossless))), "{{direction}}"))).Span(24).Height(7).
		Thresholds(steps(step{0, "transparent"})).
		OverrideByName("forward", props{color(blue)}).
		OverrideByName("reverse", props{color(orange)}))
}

// damageRow is rare: its numbers are by the hour.
func damageRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("Damaged packets"))
	b.WithPanel(bars(counted(text{
		"Damaged packets, by kind",
		"Packets of load tests in the hour before each point that arrived with a content that was not sent: truncated, overwritten from some byte on (the bug of thesis figure 5.5), bit errors, or with a damaged header. Only those that passed the UDP checksum, or had none (no_checksum). Samples are in the run's report.",
		"none", "None arrived damaged",
	}, leastMinute, ranged("round(increase("+from(saturated, metric.Damaged)+"[1h]))", "{{direction}} {{kind}}"))).
		Thresholds(steps(step{0, "transparent"}, step{1, red})))
	b.WithPanel(counted(text{
		"Wrong UDP checksums, by the kernel",
		"Datagrams in the hour before each point that the receiving host's kernel dropped for a wrong UDP checksum while load tests ran (Udp: InCsumErrors), of all its traffic: what is damaged on the way and never reaches us (thesis figure 5.5).",
		"none", noLoad,
	}, leastMinute, ranged("round(increase("+from(saturated, metric.KernelChecksumErrors)+"[1h]))", "{{direction}}")).
		DrawStyle(common.GraphDrawStyleBars).FillOpacity(60).LineWidth(0).
		Thresholds(steps(step{0, "transparent"}, step{1, red})).
		OverrideByName("forward", props{color(blue)}).
		OverrideByName("reverse", props{color(orange)}))
}
