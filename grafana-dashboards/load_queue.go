package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	tablepanel "github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/rules"
)

const noQueue = slimOr + "no queue measured: the link was not filled, or packets were dropped for another reason (see Result)"

func queueRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("Queue"))
	b.WithPanel(queueTable())
	b.WithPanel(quoted(
		"Woo 2010, table 6.1, for comparison",
		"Manual measurements by Woo on KT's WiBro Wave 2 testbed in May 2009 (chapter 6). None of these values is measured by oneway.",
		`**Not measured here:** Woo 2010, table 6.1, WiBro, three days in May 2009.

| direction | full-queue delay, min | bandwidth | queue |
|---|---|---|---|
| up (forward) | 409 · 417 · 380 ms | 2650 · 2628 · 2876 kb/s | 108 · 111 · 109 KB |
| down (reverse) | 815 · 961 · 839 ms | 10479 · 9603 · 10479 kb/s | 1044 · 1133 · 1077 KB |

Queue size = (delay with a full queue - delay without a queue) x bandwidth. The rows imply a delay without a queue of about 80 ms up and 17 ms down.
`).Span(24))
	b.WithPanel(queueDelayLines())
	b.WithPanel(queueSizeLines())
	b.WithPanel(runs(plot(text{
		"Delay with idle link and full queue",
		"Smallest one-way delay of the packets before and after the load (idle), and of the packets while the queue is full. The queue delay is the difference; a constant clock error cancels in it. No line for the full queue where its packets cannot be identified (varying rate, cross traffic, losses).",
		"s", noQueue,
	},
		ranged(fresh(saturated, from(saturated, metric.QueueIdleDelay)), "{{direction}} idle"),
		ranged(fresh(saturated, from(saturated, metric.QueueFullDelay)), "{{direction}} full"),
	)).Height(8).Span(24).ScaleDistribution(scale(10)).
		Thresholds(steps(step{0, "transparent"})).
		OverrideByRegexp("/^forward/", props{color(blue)}).OverrideByRegexp("/^reverse/", props{color(orange)}).
		OverrideByRegexp("/ idle$/", props{dotted()}))
}

func queueTable() *tablepanel.PanelBuilder {
	each := func(d *metric.Desc, matchers ...string) string {
		return "max by (direction) (" + from(saturated, d, matchers...) + ")"
	}
	return columns(text{
		"Queue, last run",
		"Delay added by the full queue (median, 5th and 95th percentile, error bound), queue size, throughput, and smallest delay with full queue and with idle link. A constant clock offset cancels in the added delay. The size is counted in IP bytes of this test, between the fill level at which packets were still accepted and the one at which packets were dropped.",
		"s", noQueue,
	},
		column{title: "direction", label: metric.Direction, empty: "no queue measured"},
		column{title: "added delay", query: each(metric.QueueDelay, half), unit: "s", own: props{
			prop("decimals", 1), prop("custom.cellOptions", map[string]string{"type": "color-text"}),
		}},
		column{title: "±", query: each(metric.QueueDelayBound, half), unit: "s", own: props{prop("decimals", 1)}},
		column{title: "5 %", query: each(metric.QueueDelay, least), unit: "s", own: props{prop("decimals", 1)}},
		column{title: "95 %", query: each(metric.QueueDelay, most), unit: "s", own: props{prop("decimals", 1)}},
		column{title: "size", query: each(metric.QueueSize), unit: "decbytes", own: props{prop("decimals", 2)}},
		column{title: "± ", query: each(metric.QueueSizeBound), unit: "decbytes", own: props{prop("decimals", 1)}},
		column{title: "size at most", query: each(metric.QueueAtMost), unit: "decbytes", own: props{prop("decimals", 2)}},
		column{title: "rate", query: bitsOf(each(metric.UDPThroughput)), unit: inBits, own: props{prop("decimals", 2), prop("custom.minWidth", 95)}},
		column{title: "full", query: each(metric.QueueFullDelay), unit: "s", own: props{prop("decimals", 1)}},
		column{title: "idle", query: each(metric.QueueIdleDelay), unit: "s", own: props{prop("decimals", 1)}},
	).Span(24).Height(5).Thresholds(steps(step{0, green}, step{rules.ThresholdBufferbloatSeconds.Default, red}))
}

func queueDelayLines() *timeseries.PanelBuilder {
	return banded(text{
		"Queue delay, run by run",
		"Median delay added by a full queue with its error bound: drift of both clocks during the run, timestamp errors, and change of the idle delay. Dotted: 5th and 95th percentile, which are far apart if the rate of the link varies. The line is at " + inMillis(rules.ThresholdBufferbloatSeconds) + ", the default of " + rules.Bufferbloat.Name + "; links with a small queue or with AQM stay far below it.",
		"s", noQueue + " in this time range",
	}, metric.QueueDelay, metric.QueueDelayBound, half).
		WithTarget(ranged(fresh(saturated, from(saturated, metric.QueueDelay, least)), "{{direction}} 5 %")).
		WithTarget(ranged(fresh(saturated, from(saturated, metric.QueueDelay, most)), "{{direction}} 95 %")).
		OverrideByRegexp("/^forward .* %$/", props{color(blue), dotted(), prop("custom.showPoints", "never")}).
		OverrideByRegexp("/^reverse .* %$/", props{color(orange), dotted(), prop("custom.showPoints", "never")}).
		AxisSoftMin(0).AxisSoftMax(0.25).
		Thresholds(steps(step{0, "transparent"}, step{rules.ThresholdBufferbloatSeconds.Default, red})).ThresholdsStyle(line())
}

func queueSizeLines() *timeseries.PanelBuilder {
	return banded(text{
		"Queue size, run by run",
		"Queue size in IP bytes of this test with its error bound, counted from the fill level at accepted and at dropped packets. A constant size with varying delay indicates a queue limited in bytes; a constant delay with varying size indicates one limited in time.",
		"decbytes", noQueue + " in this time range",
	}, metric.QueueSize, metric.QueueSizeBound).
		ScaleDistribution(scale(10)).Thresholds(steps(step{0, "transparent"}))
}

// banded draws a value of runs with its error bound as a band, both directions.
func banded(t text, value, bound *metric.Desc, matchers ...string) *timeseries.PanelBuilder {
	var qs []*prometheus.DataqueryBuilder
	v := fresh(saturated, from(saturated, value, matchers...))
	for _, q := range []struct{ expr, suffix string }{
		{v, ""},
		{"(" + v + ") + on (job, instance, path, probe, direction) " + from(saturated, bound, matchers...), " + bound"},
		{"(" + v + ") - on (job, instance, path, probe, direction) " + from(saturated, bound, matchers...), " − bound"},
	} {
		qs = append(qs, ranged(q.expr, "{{direction}}"+q.suffix))
	}
	p := runs(plot(t, qs...)).Height(8)
	for _, d := range directions() {
		p.OverrideByName(d, props{color(colorOf(d)), prop("custom.lineWidth", 2)}).
			OverrideByName(d+" + bound", append(edge(color(colorOf(d))), filledTo(d+" − bound", 20)...)).
			OverrideByName(d+" − bound", edge(color(colorOf(d))))
	}
	return p
}
