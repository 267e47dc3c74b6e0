package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	tablepanel "github.com/grafana/grafana-foundation-sdk/go/table"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/rules"
)

const noSizeSweep = slimOr + "no completed run of the probe size_sweep on this path"

func one(q *prometheus.DataqueryBuilder) []*prometheus.DataqueryBuilder {
	return []*prometheus.DataqueryBuilder{q}
}

// sizeSweepRow shows the experiment of the D-ITG report: a cell per packet size and packet rate.
func sizeSweepRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("Packet size (down) by packet rate (across), $direction"))
	scheme := func(name string) props {
		return props{prop("color", map[string]any{"mode": name})}
	}
	byStep := props{prop("color", map[string]any{"mode": "thresholds"})}
	received, sent := from(crossed, metric.SizeSweepReceived), from(crossed, metric.SizeSweepSent)
	for _, c := range []struct {
		t      text
		query  string
		shades props
		steps  *dashboard.ThresholdsConfigBuilder
	}{
		{
			text{
				"Received", "Rate of received IP bytes, in bits per second, median of the cell's repetitions; red is high. Corresponds to figures 4 to 9 and 20 of the D-ITG report.",
				inBits, noSizeSweep,
			},
			bitsOf(received), scheme("continuous-BlYlRd"), steps(step{0, gray}),
		},
		{
			text{
				"Loss", "Share of the sent packets that were lost, median of the repetitions. Sender underrun does not count as loss. Corresponds to figures 16 to 18 and 30 of the D-ITG report.",
				"percentunit", noSizeSweep,
			},
			from(crossed, metric.SizeSweepLoss), byStep, steps(step{0, green}, step{0.001, yellow}, step{0.01, orange}, step{0.1, red}),
		},
		{
			text{
				"Delay", "Median one-way delay of the cell; red is high. Cells with high delay had a standing queue. The D-ITG report shows the round-trip time as an upper bound.",
				"s", noSizeSweep + ", or a clock was not synchronized",
			},
			from(crossed, metric.SizeSweepDelay), scheme("continuous-GrYlRd"), steps(step{0, gray}),
		},
		{
			text{
				"Mean |IPDV|", "Mean absolute delay difference of successive packets (RFC 3393, RFC 5481), median of the repetitions. The jitter of the D-ITG report (figures 13 to 15 and 26) is another quantity: the standard deviation of the delays, which also grows with a queue that fills slowly.",
				"s", noSizeSweep,
			},
			from(crossed, metric.SizeSweepIPDV), scheme("continuous-GrYlRd"), steps(step{0, gray}),
		},
		{
			text{
				"Sender underrun", "Share of the cell's planned packets that the sending host did not send or sent too late, maximum of the repetitions. Cells with underrun show a limit of the host, not of the path. Corresponds to figure 21 of the D-ITG report.",
				"percentunit", noSizeSweep,
			},
			from(crossed, metric.SizeSweepUnderrun), byStep, steps(step{0, green}, step{0.001, yellow}, step{rules.ThresholdSenderUnderrunRatio.Default, orange}, step{0.1, red}),
		},
		{
			text{
				"Spread of the repetitions", "Largest minus smallest received rate of the cell's repetitions, relative to the sent rate: the repeatability of the cell's values.",
				"percentunit", noSizeSweep + ", or a single repetition",
			},
			from(crossed, metric.SizeSweepSpread) + " / (" + sent + " > 0)", byStep, steps(step{0, green}, step{0.02, yellow}, step{0.1, orange}, step{0.3, red}),
		},
	} {
		b.WithPanel(cells(c.t, c.query, c.shades, c.steps))
	}
}

// cells is a colored table over two labels: packet sizes as rows, packet rates as columns.
func cells(t text, query string, shades props, thresholds *dashboard.ThresholdsConfigBuilder) *tablepanel.PanelBuilder {
	p := plainTable(t).Height(8).Decimals(1).
		Targets(targets(one(table("max by (packet_bytes, packet_rate) ("+query+")")))).
		Thresholds(thresholds).
		OverrideByRegexp("/^[0-9]/", append(props{
			prop("custom.cellOptions", map[string]string{"type": "color-background", "mode": "basic"}),
			prop("custom.align", "center"),
			prop("displayName", "${__field.name}/s"),
		}, append(shades, dashes()...)...)).
		OverrideByName(metric.PacketBytesL, props{
			prop("unit", "suffix:B"), prop("decimals", 0), prop("custom.width", 90),
			prop("custom.align", "right"), prop("displayName", "IP packet"),
		})
	// The order of the columns is that of the rows: by rate, then by size. The sizes become text, since numbers would
	// extend the color scale.
	p.WithTransformation(numberOf(metric.PacketRateL)).WithTransformation(sortedBy(metric.PacketRateL))
	for _, s := range pivot(metric.PacketBytesL, metric.PacketRateL) {
		p.WithTransformation(s)
	}
	p.WithTransformation(fieldAs(metric.PacketBytesL, "string"))
	return p
}
