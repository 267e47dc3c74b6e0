package main

import (
	"strconv"

	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	tablepanel "github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
	"github.com/grafana/grafana-foundation-sdk/go/trend"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/rules"
)

const (
	noStamps = slimOr + "no completed run with stamps on this path"
	// A run has no burst if no consecutive segments of it were stamped. It is short, as noDataDelay.
	noBursts = slimOr + "no run with bursts of stamped segments"
	// noDataDelay is short: a curve without points shows it as a legend, which Grafana does not wrap.
	noDataDelay = slimOr + "no run with stamps and synchronized clocks"
)

// tcpDataRow shows what the kernels' timestamps of the stream itself say.
func tcpDataRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("TCP data: delay, ACKs, split TCP"))
	bothDirections(b, dataDelay)
	b.WithPanel(dataDelayCDF())
	b.WithPanel(hostQueue())
	b.WithPanel(recovery())
	b.WithPanel(ackInterarrival())
	b.WithPanel(compressedAcks())
	b.WithPanel(dataSamples())
	b.WithPanel(splitOverTime())
	b.WithPanel(splitEvidence())
}

// dataQuantile is a quantile of the delay of TCP data, and how its line and the interval around it are drawn.
type dataQuantile struct {
	name, rank, color string
	line              props
	fill              int // of the interval, in percent
}

func dataQuantiles(main string) []dataQuantile {
	return []dataQuantile{
		{"median", half, main, props{prop("custom.lineWidth", 2)}, 20},
		{"5 %", least, "semi-dark-" + main, props{dotted(), prop("custom.pointSize", 2)}, 10},
		{"95 %", most, "light-" + main, props{dashed(), prop("custom.pointSize", 3)}, 10},
		{"99 %", metric.QuantileL + `="0.99"`, "super-light-" + main, props{dashed(), prop("custom.pointSize", 3)}, 10},
	}
}

// dataDelay shows one direction run by run, beside the light probe's packets on the same path.
func dataDelay(name, matcher string) *timeseries.PanelBuilder {
	family := func(d *metric.Desc, rank string) string {
		return "sum without (" + metric.QuantileL + ") (" + from(transferred, d, rank, matcher) + ")"
	}
	quantiles := dataQuantiles(colorOf(name))
	var queries []*prometheus.DataqueryBuilder
	for _, q := range quantiles {
		value, bound := family(metric.TCPDelayQuantile, q.rank), family(metric.TCPDelayQuantileBound, q.rank)
		queries = append(queries,
			ranged(fresh(transferred, value), q.name),
			ranged(fresh(transferred, value+" + "+bound), q.name+" + bound"),
			ranged(fresh(transferred, value+" - "+bound), q.name+" − bound"),
		)
	}
	panel := runs(plot(text{
		"Delay of TCP data " + name + ", run by run",
		"One-way delay of the bytes of the transfer itself, from the first departure from the sending host to the arrival at the receiving one (kernel timestamps of both ends), of bytes sent once: median, 5th (dotted), 95th and 99th percentile (dashed) of each run, each in the interval of its error bound (shaded). UDP: median over 5 minutes of the packets of the light probes on the same path; the distance is the queue that the transfer makes.",
		"s", noDataDelay + " in this time range",
	}, append(queries, ranged(recFrom(anyTest, rules.DelayQuantiles5m.Name, matcher, half), "UDP, {{probe}}"))...)).
		Height(9).AxisSoftMin(0).Thresholds(steps(step{0, "transparent"})).
		OverrideByRegexp("/^UDP/", props{color(gray), prop("custom.showPoints", "never"), prop("custom.spanNulls", false)})
	for _, q := range quantiles {
		panel.OverrideByName(q.name, append(q.line, color(q.color))).
			OverrideByName(q.name+" + bound", append(edge(color(q.color)), filledTo(q.name+" − bound", q.fill)...)).
			OverrideByName(q.name+" − bound", edge(color(q.color)))
	}
	return panel
}

// dataDelayCDF covers all runs of the time range.
func dataDelayCDF() *trend.PanelBuilder {
	return cdf(text{
		"Delay of TCP data, CDF",
		"Share of the sampled bytes of all runs in the time range, sent once, with at most this one-way delay. " + readOff,
		"percentunit", noDataDelay,
	}, distribution{metric.TCPDelay, transferred, nil, metric.Direction, false}.curves()).Span(8)
}

func hostQueue() *timeseries.PanelBuilder {
	quantile := func(rank string) string {
		return fresh(transferred, from(transferred, metric.TCPHostQueue, metric.QuantileL+`="`+rank+`"`))
	}
	p := runs(lines(text{
		"Queue of the sending host, run by run",
		"Time of the sampled bytes in the sending host's packet scheduler, from entering it to the departure (SCM_TSTAMP_SCHED to SCM_TSTAMP_SND): median, 95th (dashed) and 99th percentile (dotted) of each run. It is no part of the delay on the path. High values: the slowest link is the one of this host, and its queue is here.",
		"s", noStamps + " in this time range",
	},
		ranged(quantile("0.5"), "{{direction}}"), ranged(quantile("0.95"), "{{direction}} 95 %"), ranged(quantile("0.99"), "{{direction}} 99 %"),
	)).Span(8).Height(9).Thresholds(steps(step{0, "transparent"}))
	colored(p, "", prop("custom.lineWidth", 2))
	colored(p, " 95 %", dashed(), prop("custom.pointSize", 3))
	return colored(p, " 99 %", dotted(), prop("custom.pointSize", 3))
}

func recovery() *timeseries.PanelBuilder {
	quantile := func(rank string) string {
		return fresh(transferred, from(transferred, metric.TCPRecovery, metric.QuantileL+`="`+rank+`"`))
	}
	p := runs(lines(text{
		"Recovery of retransmitted data, run by run",
		"Time from the first departure of a retransmitted sampled byte to its arrival: median and 95th percentile (dashed) of each run. It includes the time until the sender noticed the loss, and is in no quantile of the delay.",
		"s", slimOr + "no sampled byte was retransmitted in this time range, or a clock was not synchronized",
	},
		ranged(quantile("0.5"), "{{direction}}"), ranged(quantile("0.95"), "{{direction}} 95 %"),
	)).Span(8).Height(9).Thresholds(steps(step{0, "transparent"}))
	colored(p, "", prop("custom.lineWidth", 2))
	return colored(p, " 95 %", dashed(), prop("custom.pointSize", 3))
}

// dataSamples tells used samples from withheld ones.
func dataSamples() *tablepanel.PanelBuilder {
	of := func(matcher string) string {
		return "sum by (result) (increase(" + from(transferred, metric.TCPDelaySamples, matcher) + dashboardRange + "))"
	}
	some := func(matcher string) string { return "(sum(" + of(matcher) + ") > 0)" }
	count := func(matcher string) string { return "round(" + of(matcher) + ") and on () " + some(matcher) }
	share := func(matcher string) string { return of(matcher) + " / on () group_left () " + some(matcher) }
	return columns(text{
		"Samples by result, in the time range",
		"Sampled bytes of all runs in the time range: with a delay (in the quantiles and the CDF); retransmitted (in the recovery instead); withheld because data arrived out of order about then, because a kernel gave no timestamp, or because a clock was not synchronized. A large withheld share can hide the worst delays.",
		"none", noStamps,
	},
		column{title: "result", label: metric.ResultL, empty: "no run with stamps", own: props{
			prop("mappings", sampleWords()), prop("custom.cellOptions", map[string]string{"type": "color-text"}), prop("custom.width", 160),
		}},
		column{title: "forward", query: count(forward), own: props{prop("decimals", 0), prop("custom.minWidth", 80)}},
		column{title: "share", query: share(forward), unit: "percentunit", own: props{prop("decimals", 2), prop("custom.minWidth", 80)}},
		column{title: "reverse", query: count(reverse), own: props{prop("decimals", 0), prop("custom.minWidth", 80)}},
		column{title: "share ", query: share(reverse), unit: "percentunit", own: props{prop("decimals", 2), prop("custom.minWidth", 80)}},
	).Span(10).Height(9).Thresholds(steps(step{0, gray})).WithTransformation(sortedBy("result"))
}

func sampleWords() []dashboard.ValueMapping {
	return values(map[string]dashboard.ValueMappingResult{
		"delay": word("delay", green, 0), "retransmitted": word("retransmitted", blue, 1),
		"reordered": word("withheld: reordered", orange, 2), "no_stamp": word("withheld: no stamp", orange, 3),
		"clocks": word("withheld: clocks", orange, 4),
	})
}

// ackInterarrival is a histogram: the step of a bin ends at its upper bound.
func ackInterarrival() *trend.PanelBuilder {
	return curve(text{
		"ACK inter-arrival",
		"Share of the times between ACKs that advanced, by length, in bursts of consecutive stamped segments of all runs in the time range; up to " + strconv.FormatFloat(longestBin(), 'g', -1, 64) + " s. A path without queueing of ACKs has one peak, at the time that the slowest link needs for the data of one ACK. A second peak far below it: ACKs were queued and arrived in groups (ACK compression). Corresponds to Halepovic figure 18.",
		"percentunit", noBursts,
	}, axis{label: "le", column: metric.Direction, unit: "s", log: 10, most: new(longestBin())}, bins{metric.TCPAckInterarrival, transferred, metric.Direction}.shares()).
		Span(8).Min(0).LineInterpolation(common.LineInterpolationStepBefore).FillOpacity(15).ShowPoints(common.VisibilityModeNever).
		OverrideByName("forward", props{color(colorOf("forward"))}).OverrideByName("reverse", props{color(colorOf("reverse"))})
}

// longestBin is the end of the axis, in seconds.
func longestBin() float64 {
	bounds := metric.TCPAckInterarrival.Buckets
	return bounds[len(bounds)-1]
}

func compressedAcks() *timeseries.PanelBuilder {
	return colored(runs(counted(text{
		"Compressed ACKs, run by run",
		"Share of the pairs of ACKs in each run's bursts that arrived in less than 0.75 of the time between the arrivals of their bytes at the receiver: they waited in a queue of the other direction (Mogul 1992; Halepovic section 5.3). Many of them make the sender send in bursts.",
		"percentunit", noBursts + " in this time range",
	}, leastRatio, ranged(fresh(transferred, from(transferred, metric.TCPAckCompressed)), "{{direction}}"))).
		Span(6).Height(9).Thresholds(steps(step{0, "transparent"})), "")
}
