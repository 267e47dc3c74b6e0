package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	tablepanel "github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"

	"oneway.example/exporter/metric"
)

const noQueue = "No queue: the link was not filled, or something else dropped (see What it found)"

func queueRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("The queue"))
	b.WithPanel(queueTable())
	b.WithPanel(quoted(
		"Thesis table 6.1, for comparison",
		"What Woo measured by hand on KT's test bed of WiBro Wave 2 in May 2009 (chapter 6); nothing of it is measured here.",
		`**Not measured here:** Woo 2010, table 6.1, WiBro, three days in May 2009.

| direction | full-queue delay, min | bandwidth | queue |
|---|---|---|---|
| up (forward) | 409 · 417 · 380 ms | 2650 · 2628 · 2876 kb/s | 108 · 111 · 109 KB |
| down (reverse) | 815 · 961 · 839 ms | 10479 · 9603 · 10479 kb/s | 1044 · 1133 · 1077 KB |

The queue is what full-queue delays are above those without a queue, times the bandwidth: the rows imply some 80 ms up and 17 ms down without one.
`))
	b.WithPanel(queueDelayLines())
	b.WithPanel(queueSizeLines())
	b.WithPanel(runs(plot(text{
		"Idle and full",
		"What the queue's delay is made of: the smallest one-way delay of the idle packets before the load and after it, and that of packets that filled the queue. A constant error of the clocks is in both and not in their difference.",
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
		"Replaces thesis table 6.1: smallest delay with the link idle and with the queue full. What the queue adds is the median, and 5 % and 95 %, of the packets that filled it; a constant offset of the clocks cancels in it. The thesis took the smallest, and for the size that times the rate; here the size is counted: between what the queue held with the packets that it took, and with those that it dropped, in IP bytes of this test.",
		"s", noQueue,
	},
		column{title: "direction", label: metric.Direction, empty: "no queue found"},
		column{title: "adds", query: each(metric.QueueDelay, half), unit: "s", own: props{
			prop("decimals", 1), prop("custom.cellOptions", map[string]string{"type": "color-text"}),
		}},
		column{title: "±", query: each(metric.QueueDelayBound, half), unit: "s", own: props{prop("decimals", 1)}},
		column{title: "5 %", query: each(metric.QueueDelay, least), unit: "s", own: props{prop("decimals", 1)}},
		column{title: "95 %", query: each(metric.QueueDelay, most), unit: "s", own: props{prop("decimals", 1)}},
		column{title: "size", query: each(metric.QueueSize), unit: "decbytes", own: props{prop("decimals", 2)}},
		column{title: "± ", query: each(metric.QueueSizeBound), unit: "decbytes", own: props{prop("decimals", 1)}},
		column{title: "rate", query: bitsOf(each(metric.UDPThroughput)), unit: inBits, own: props{prop("decimals", 2), prop("custom.minWidth", 95)}},
		column{title: "full", query: each(metric.QueueFullDelay), unit: "s", own: props{prop("decimals", 1)}},
		column{title: "idle", query: each(metric.QueueIdleDelay), unit: "s", own: props{prop("decimals", 1)}},
	).Span(14).Thresholds(steps(step{0, green}, step{bloat, red}))
}

func queueDelayLines() *timeseries.PanelBuilder {
	return banded(text{
		"Queue delay, run by run",
		"What a full queue adds to half of the packets that fill it (thesis table 6.1, over time) within its bound: the drift of both clocks during the run, the stamps' errors, and what the idle delay has changed by. Dotted: 5 % and 95 %, far apart where the link's rate moves. The line is at 200 ms, the default of OnewayBufferbloat; a link with a bounded queue or with AQM stays far below.",
		"s", noQueue + " in this time range",
	}, metric.QueueDelay, metric.QueueDelayBound, half).
		WithTarget(ranged(fresh(saturated, from(saturated, metric.QueueDelay, least)), "{{direction}} 5 %")).
		WithTarget(ranged(fresh(saturated, from(saturated, metric.QueueDelay, most)), "{{direction}} 95 %")).
		OverrideByRegexp("/^forward .* %$/", props{color(blue), dotted(), prop("custom.showPoints", "never")}).
		OverrideByRegexp("/^reverse .* %$/", props{color(orange), dotted(), prop("custom.showPoints", "never")}).
		AxisSoftMin(0).AxisSoftMax(0.25).
		Thresholds(steps(step{0, "transparent"}, step{bloat, red})).ThresholdsStyle(line())
}

func queueSizeLines() *timeseries.PanelBuilder {
	return banded(text{
		"Queue size, run by run",
		"Size of the queue in IP bytes of this test within its bound, counted from what it held with the packets that came through and those that were dropped. A queue whose size stays while its delay moves is one of bytes; the other way round it is one of time.",
		"decbytes", noQueue + " in this time range",
	}, metric.QueueSize, metric.QueueSizeBound).
		ScaleDistribution(scale(10)).Thresholds(steps(step{0, "transparent"}))
}

// banded draws a value of runs within its bound, both directions.
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
	hidden := prop("custom.hideFrom", map[string]bool{"legend": true, "tooltip": true, "viz": false})
	for _, d := range []string{"forward", "reverse"} {
		edge := props{color(colorOf(d)), prop("custom.lineWidth", 0), prop("custom.showPoints", "never"), hidden}
		p.OverrideByName(d, props{color(colorOf(d)), prop("custom.lineWidth", 2)}).
			OverrideByName(d+" + bound", append(edge, prop("custom.fillBelowTo", d+" − bound"), prop("custom.fillOpacity", 20))).
			OverrideByName(d+" − bound", edge)
	}
	return p
}
