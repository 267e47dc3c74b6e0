package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	tablepanel "github.com/grafana/grafana-foundation-sdk/go/table"

	"oneway.example/exporter/metric"
)

const noSizeSweep = "No completed run of the probe size_sweep on this path"

func one(q *prometheus.DataqueryBuilder) []*prometheus.DataqueryBuilder {
	return []*prometheus.DataqueryBuilder{q}
}

// sizeSweepRow is the D-ITG report's experiment: each cell a size and a rate.
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
				"Received", "Replaces figures 4 to 9 and 20 of the D-ITG report: IP bytes at the receiver, in bits a second, the median of the cell's repetitions. The redder, the more.",
				inBits, noSizeSweep,
			},
			bitsOf(received), scheme("continuous-BlYlRd"), steps(step{0, gray}),
		},
		{
			text{
				"Loss", "Replaces figures 16 to 18 and 30 of the D-ITG report: share of the packets sent that did not arrive, median of the repetitions. What the sender did not send is no loss.",
				"percentunit", noSizeSweep,
			},
			from(crossed, metric.SizeSweepLoss), byStep, steps(step{0, green}, step{0.001, yellow}, step{0.01, orange}, step{0.1, red}),
		},
		{
			text{
				"Delay", "Median one-way delay of the cell. The D-ITG report shows the round trip instead, as an upper bound of it. The redder, the longer: a row or column that turns red is where the queue stood.",
				"s", noSizeSweep + ", or the clocks were not trusted",
			},
			from(crossed, metric.SizeSweepDelay), scheme("continuous-GrYlRd"), steps(step{0, gray}),
		},
		{
			text{
				"Mean |IPDV|", "Mean absolute difference in delay of packets sent one after the other (RFC 3393, RFC 5481), median of the repetitions. It stands where the D-ITG report has jitter (figures 13 to 15 and 26), and is another figure: that is the standard deviation of the delays, which also grows with a queue that fills slowly.",
				"s", noSizeSweep,
			},
			from(crossed, metric.SizeSweepIPDV), scheme("continuous-GrYlRd"), steps(step{0, gray}),
		},
		{
			text{
				"Not sent", "Share of the cell's planned packets that the sending host did not send, or too late, the largest of the repetitions: figure 21 of the D-ITG report. Such a cell says what this host can do, and not the path.",
				"percentunit", noSizeSweep,
			},
			from(crossed, metric.SizeSweepUnderrun), byStep, steps(step{0, green}, step{0.001, yellow}, step{0.02, orange}, step{0.1, red}),
		},
		{
			text{
				"Spread of the repetitions", "Largest less smallest rate at the receiver over the cell's repetitions, as a share of what was sent: how far a single figure of this cell can be trusted.",
				"percentunit", noSizeSweep + ", or a single repetition",
			},
			from(crossed, metric.SizeSweepSpread) + " / (" + sent + " > 0)", byStep, steps(step{0, green}, step{0.02, yellow}, step{0.1, orange}, step{0.3, red}),
		},
	} {
		b.WithPanel(cells(c.t, c.query, c.shades, c.steps))
	}
}

// cells is a colored table over two labels: sizes down, rates across.
func cells(t text, query string, shades props, thresholds *dashboard.ThresholdsConfigBuilder) *tablepanel.PanelBuilder {
	p := plainTable(t).Height(8).Decimals(1).
		Targets(targets(one(table("max by (packet_bytes, packet_rate) ("+query+")")))).
		Thresholds(thresholds).
		OverrideByRegexp("/^[0-9]/", append(props{
			prop("custom.cellOptions", map[string]string{"type": "color-background", "mode": "basic"}),
			prop("custom.align", "center"),
			prop("displayName", "${__field.name}/s"),
		}, shades...)).
		OverrideByName(metric.PacketBytesL, props{
			prop("unit", "suffix: B"), prop("decimals", 0), prop("custom.width", 90),
			prop("custom.align", "right"), prop("displayName", "IP packet"),
		})
	// Columns stand in the order in which the rows name them: by rate, then by size. The
	// sizes become text: numbers would take part in the scale of the colors.
	p.WithTransformation(numberOf(metric.PacketRateL)).WithTransformation(sortedBy(metric.PacketRateL))
	for _, s := range pivot(metric.PacketBytesL, metric.PacketRateL) {
		p.WithTransformation(s)
	}
	p.WithTransformation(fieldAs(metric.PacketBytesL, "string"))
	return p
}
