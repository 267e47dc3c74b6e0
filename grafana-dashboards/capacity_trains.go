package main

import (
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	tablepanel "github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
	"github.com/grafana/grafana-foundation-sdk/go/trend"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/rules"
)

const chosen = `direction="$direction"`

func capacityRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder(metric.TitleCapacity))
	b.WithPanel(capacityBySize())
	b.WithPanel(capacityCDF())
	b.WithPanel(capacityOverTime())
	b.WithPanel(capacityByHour())
	b.WithPanel(capacityRuns())
}

// capacityBySize is constant for a link whose transmission time depends on bytes only; a slope is a cost per packet.
func capacityBySize() *trend.PanelBuilder {
	one := func(q, suffix string) string {
		return `label_replace(max by (packet_bytes, direction) (` + bitsOf(from(trained, metric.Capacity, metric.QuantileL+`="`+q+`"`)) +
			`), "direction", "$1` + suffix + `", "direction", "(.*)")`
	}
	p := curve(text{
		"Capacity by packet size",
		"Median capacity of the clean trains of the last run by size of the IP packet, with the 5th and 95th percentiles as a band. A constant curve is a link without a cost per packet; with one the curve rises. It falls above the path MTU, where packets are fragmented. Corresponds to WPI figure 15.",
		inBits, noTrains,
	}, axis{label: metric.PacketBytesL, column: metric.Direction, unit: "suffix:B"},
		one("0.5", "")+" or "+one("0.05", " 5th")+" or "+one("0.95", " 95th")).
		Min(0)
	for _, d := range directions() {
		p.OverrideByName(d, props{color(colorOf(d))}).
			OverrideByName(d+" 95th", append(valuedEdge(color(colorOf(d))), filledTo(d+" 5th", 20)...)).
			OverrideByName(d+" 5th", valuedEdge(color(colorOf(d))))
	}
	return p
}

// capacityCDF has one curve per packet size; curves that coincide confirm the capacity.
func capacityCDF() *trend.PanelBuilder {
	return curve(text{
		"Trains, CDF by size, $direction",
		"Share of the clean trains in all runs of the time range with at most this capacity. From 16 quantiles of a native histogram (resolution 9 %), else interpolated in classic buckets, five per decade. The distribution of the runs, below, needs no histogram. Select the direction above. Corresponds to WPI figure 7.",
		"percentunit", noTrains + " in this time range",
	}, axis{label: "le", column: metric.PacketBytesL, unit: inBits, least: new(0.0), bytes: true, sorted: true},
		distribution{metric.TrainCapacity, trained, []string{chosen}, metric.PacketBytesL, true}.curves()).
		Min(0).Max(1).
		OverrideByRegexp("/^[0-9]/", props{prop("displayName", "${__field.name} B")})
}

// capacityRuns has the quantile on the x axis and needs no buckets: those of the histogram are too wide to separate sizes.
func capacityRuns() *trend.PanelBuilder {
	var terms []string
	for _, share := range []string{"0.02", "0.05", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "0.95", "0.98"} {
		terms = append(terms, "label_replace(quantile_over_time("+share+", "+from(trained, metric.Capacity, metric.QuantileL+`="0.5"`, chosen)+
			dashboardRange+`), "share", "`+share+`", "", "")`)
	}
	return curve(text{
		"Runs, distribution by size, $direction",
		"Quantiles of the runs' median capacity over the dashboard's time range, by size of the IP packet: at 10 %, a tenth of the time range had at most this capacity. Curves that coincide confirm the capacity; steps indicate states of the link. Corresponds to WPI figure 7, by run and without buckets.",
		inBits, noTrains + " in this time range",
	}, axis{label: "share", column: metric.PacketBytesL, unit: "percentunit", sorted: true},
		bitsOf("max by (share, packet_bytes) ("+strings.Join(terms, " or ")+")")).
		Span(24).Height(8).Min(0).
		OverrideByRegexp("/^[0-9]/", props{prop("displayName", "${__field.name} B")})
}

func capacityOverTime() *timeseries.PanelBuilder {
	capacity, bound := from(trained, metric.PathCapacity), from(trained, metric.PathCapacityBound)
	return runs(lines(text{
		"Capacity, run by run",
		"Capacity of each completed run, its error bound (dotted), and the median of the last " + baselineDays() + " (dashed); " + rules.CapacityDegraded.Name + " fires below " + inPercent(rules.ThresholdThroughputRatio) + " of it. A run without clean trains has no point (see Trains by result). Corresponds to WPI figures 8 to 13.",
		inBits, noTrains + " in this time range",
	},
		ranged(fresh(trained, bitsOf(capacity)), "{{direction}}"),
		ranged(fresh(trained, bitsOf(capacity+" - "+bound)), "{{direction}} lower limit"),
		ranged(fresh(trained, bitsOf(capacity+" + "+bound)), "{{direction}} upper limit"),
		ranged(bitsOf(recFrom(trained, rules.CapacityBaseline.Name)), "{{direction}} baseline"),
	)).Height(9).
		Thresholds(steps(step{0, "transparent"})).
		OverrideByName("forward", props{color(colorOf("forward")), prop("custom.lineWidth", 2)}).
		OverrideByName("reverse", props{color(colorOf("reverse")), prop("custom.lineWidth", 2)}).
		OverrideByRegexp("/^forward (lower|upper) /", props{color(blue), dotted(), prop("custom.pointSize", 2)}).
		OverrideByRegexp("/^reverse (lower|upper) /", props{color(orange), dotted(), prop("custom.pointSize", 2)}).
		OverrideByName("forward baseline", props{color(blue), dashed(), prop("custom.showPoints", "never")}).
		OverrideByName("reverse baseline", props{color(orange), dashed(), prop("custom.showPoints", "never")})
}

// capacityByHour reads a recorded series: PromQL has no grouping by the hour of a sample.
func capacityByHour() *trend.PanelBuilder {
	series := recFrom(trained, rules.CapacityByHour.Name) + dashboardRange
	mean := bitsOf(`sum by (hour, direction) (sum_over_time(` + series + `)) / sum by (hour, direction) (count_over_time(` + series + `))`) // of all days, not of both kinds
	return curve(text{
		"Capacity by time of day",
		"Mean over the dashboard's time range of the median capacity, by hour of the day (local time of the agent). A decrease at some hours indicates cross traffic. Corresponds to WPI figures 8 to 13.",
		inBits, "No recorded hours so far: load deploy/prometheus/rules into Prometheus",
	}, axis{label: "hour", column: metric.Direction, unit: "suffix:h", least: new(0.0), most: new(24.0)}, mean).
		Min(0).
		OverrideByName("forward", props{color(colorOf("forward"))}).
		OverrideByName("reverse", props{color(colorOf("reverse"))})
}

func trainRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("Packet trains: dispersion and results"))
	b.WithPanel(dispersionTable())
	b.WithPanel(quoted(
		"WPI figure 15, for comparison",
		"Measurements of the WPI report over EvDO on 30 November 2005. None of these values is measured by oneway.",
		`**Not measured here:** WPI 2006, figure 15, EvDO, 30 November 2005.

| size | median | mean dispersion | 5th |
|---|---|---|---|
| 1472 B (fragmented) | 500 kb/s | 24.0 ms | 500 kb/s |
| 1200 B | 517 kb/s | 19.0 ms | 491 kb/s |
| 1000 B | 514 kb/s | 16.0 ms | 484 kb/s |
| 800 B | 510 kb/s | 13.0 ms | 510 kb/s |
`).Height(8))
	b.WithPanel(trainsByResult())
	b.WithPanel(trainsTable())
}

func dispersionTable() *tablepanel.PanelBuilder {
	each := func(d *metric.Desc, matchers ...string) string {
		return "max by (packet_bytes) (" + from(trained, d, append(matchers, chosen)...) + ")"
	}
	of := func(q string) string { return bitsOf(each(metric.Capacity, metric.QuantileL+`="`+q+`"`)) }
	return columns(text{
		"Capacity and dispersion by size, $direction",
		"Last run: median capacity, its error bound, dispersion of the clean trains at the receiver, 5th and 95th percentile of the capacity, and whether packets of this size are fragmented. Capacity is (N-1) L / dispersion, with L in IP bytes. Select the direction above. Corresponds to WPI figure 15.",
		"none", noTrains,
	},
		column{title: "IP packet", label: metric.PacketBytesL, empty: "no clean trains", own: props{prop("unit", "suffix:B")}},
		column{title: "median", query: of("0.5"), unit: inBits, own: props{prop("decimals", 2), prop("custom.minWidth", 100)}},
		column{title: "±", query: bitsOf(each(metric.CapacityBound)), unit: inBits, own: props{prop("decimals", 2)}},
		column{title: "dispersion", query: each(metric.TrainDispersion), unit: "s", own: props{prop("decimals", 2)}},
		column{title: "5th", query: of("0.05"), unit: inBits, own: props{prop("decimals", 2), prop("custom.minWidth", 100)}},
		column{title: "95th", query: of("0.95"), unit: inBits, own: props{prop("decimals", 2), prop("custom.minWidth", 100)}},
		column{title: "fragmented", query: each(metric.TrainFragmented), own: props{
			prop("mappings", values(map[string]dashboard.ValueMappingResult{
				"0": word("no", green, 0), "1": word("yes", orange, 1),
			})), prop("custom.cellOptions", map[string]string{"type": "color-text"}),
		}},
	).Span(14).Height(8).Thresholds(steps(step{0, gray})).
		WithTransformation(transform("convertFieldType", map[string]any{
			"conversions": []map[string]any{{"targetField": "IP packet", "destinationType": "number"}}, "fields": map[string]any{},
		})).
		WithTransformation(transform("sortBy", map[string]any{"fields": map[string]any{}, "sort": []map[string]any{{"field": "IP packet", "desc": true}}}))
}

func trainsByResult() *timeseries.PanelBuilder {
	p := bars(counted(text{
		"Trains by result, per hour",
		"Trains of all sizes that were sent in the hour before each point, by result. clean: used for the capacity. lost, reordered, duplicated: repeated, as in the WPI report. no_timestamp: no kernel timestamp. sender_pace: the sender was not faster than the link. coalesced, batched: the receiver's network card delivered packets in groups. token_bucket: the first packets passed on the tokens of a shaper. interleaved: cross traffic or pauses of the link between packets. too_short: timestamp errors may exceed a tenth of the train's duration.",
		"none", slimOr + "no trains in this time range",
	}, leastMinute, ranged("round(sum by (direction, result) (increase("+from(trained, metric.Trains, chosen)+"[1h]))) > 0", "{{result}}"))).
		Thresholds(steps(step{0, "transparent"}))
	for _, r := range trainResults() {
		p.OverrideByName(r.name, props{color(r.color)})
	}
	return p
}

// trainResults are the results of a train, the valid one first.
func trainResults() []state {
	return []state{
		{"clean", green},
		{"lost", red},
		{"reordered", orange},
		{"duplicated", yellow},
		{"no_timestamp", "dark-red"},
		{"sender_pace", purple},
		{"coalesced", blue},
		{"batched", "light-blue"},
		{"token_bucket", "super-light-orange"},
		{"interleaved", "dark-yellow"},
		{"too_short", "dark-purple"},
	}
}

func trainsTable() *tablepanel.PanelBuilder {
	p := plainTable(text{
		"Trains by size and result, $direction",
		"Number of trains by size of the IP packet and result over the dashboard's time range. The capacity of a size with too few clean trains is absent.",
		"none", slimOr + "no trains in this time range",
	}).Height(8).Decimals(0).
		Targets(targets(one(table("round(sum by (packet_bytes, result) (increase("+from(trained, metric.Trains, chosen)+dashboardRange+"))) > 0")))).
		Thresholds(steps(step{0, gray})).
		OverrideByFieldType("number", dashes()).
		OverrideByName("clean", props{
			prop("color", map[string]any{"mode": "fixed", "fixedColor": green}),
			prop("custom.cellOptions", map[string]string{"type": "color-text"}),
		}).
		OverrideByName(metric.PacketBytesL, props{prop("unit", "suffix:B"), prop("displayName", "IP packet")})
	for _, s := range pivot(metric.PacketBytesL, metric.ResultL) {
		p.WithTransformation(s)
	}
	return p.WithTransformation(transform("sortBy", map[string]any{
		"fields": map[string]any{}, "sort": []map[string]any{{"field": metric.PacketBytesL, "desc": true}},
	}))
}
