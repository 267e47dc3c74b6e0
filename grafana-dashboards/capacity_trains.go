package main

import (
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	tablepanel "github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
	"github.com/grafana/grafana-foundation-sdk/go/trend"

	"oneway.example/exporter/metric"
)

// Names recorded by deploy/prometheus/rules.
const (
	recCapacityBaseline = "oneway:capacity_bytes_per_second:baseline7d"
	recCapacityHour     = "path_hour:oneway_capacity_bytes_per_second:median"
)

const chosen = `direction="$direction"`

func capacityRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("Capacity by packet trains"))
	b.WithPanel(capacityBySize())
	b.WithPanel(capacityCDF())
	b.WithPanel(capacityOverTime())
	b.WithPanel(capacityByHour())
	b.WithPanel(capacityRuns())
}

// capacityBySize is level for a link that counts bytes; a slope is a cost by packet.
func capacityBySize() *trend.PanelBuilder {
	one := func(q, suffix string) string {
		return `label_replace(max by (packet_bytes, direction) (` + bitsOf(from(trained, metric.Capacity, metric.QuantileL+`="`+q+`"`)) +
			`), "direction", "$1` + suffix + `", "direction", "(.*)")`
	}
	p := curve(text{
		"Capacity by packet size",
		"Replaces WPI figure 15: median of the clean trains of the last run by size of the IP packet, with the 5th and 95th percentiles as a band. A link that counts bytes is level; one with a cost by packet rises; sizes above the path's MTU fall, since they travel in fragments.",
		inBits, noTrains,
	}, axis{label: metric.PacketBytesL, column: metric.Direction, unit: "suffix: B"},
		one("0.5", "")+" or "+one("0.05", " 5th")+" or "+one("0.95", " 95th")).
		Min(0)
	for _, d := range []string{"forward", "reverse"} {
		edge := props{color(colorOf(d)), prop("custom.lineWidth", 0), prop("custom.showPoints", "never"), prop("custom.hideFrom", map[string]bool{"legend": true, "tooltip": false, "viz": false})}
		p.OverrideByName(d, props{color(colorOf(d))}).
			OverrideByName(d+" 95th", append(edge, prop("custom.fillBelowTo", d+" 5th"), prop("custom.fillOpacity", 20))).
			OverrideByName(d+" 5th", edge)
	}
	return p
}

// capacityCDF has one curve a size: sizes that agree are evidence of a capacity.
func capacityCDF() *trend.PanelBuilder {
	return curve(text{
		"Trains, CDF by size, $direction",
		"Replaces WPI figure 7: share of the clean trains in all runs of the time range with at most this capacity. Read off a native histogram at 16 shares, each to 9 %; where the server has none, at the bounds of classic buckets, five a decade, and the lines between those are a guess. The distribution of the runs, below, needs no histogram. Choose the direction above.",
		"percentunit", noTrains + " in this time range",
	}, axis{label: "le", column: metric.PacketBytesL, unit: inBits, log: 10, bytes: true, sorted: true},
		distribution{metric.TrainCapacity, trained, []string{chosen}, metric.PacketBytesL}.curves()).
		Min(0).Max(1).
		OverrideByRegexp("/^[0-9]/", props{prop("displayName", "${__field.name} B")})
}

// capacityRuns is a distribution turned by 90 degrees, so that its capacities need no
// buckets: those of the histogram are too wide to tell sizes apart.
func capacityRuns() *trend.PanelBuilder {
	var terms []string
	for _, share := range []string{"0.02", "0.05", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "0.95", "0.98"} {
		terms = append(terms, "label_replace(quantile_over_time("+share+", "+from(trained, metric.Capacity, metric.QuantileL+`="0.5"`, chosen)+
			dashboardRange+`), "share", "`+share+`", "", "")`)
	}
	return curve(text{
		"Runs, distribution by size, $direction",
		"Replaces WPI figure 7, of runs and without buckets: at 10 %, a tenth of the dashboard's time range had a median capacity of at most this, by size of the IP packet. Sizes that lie on each other are evidence of a capacity; steps are states of the link.",
		inBits, noTrains + " in this time range",
	}, axis{label: "share", column: metric.PacketBytesL, unit: "percentunit", sorted: true},
		bitsOf("max by (share, packet_bytes) ("+strings.Join(terms, " or ")+")")).
		Span(24).Height(8).
		OverrideByRegexp("/^[0-9]/", props{prop("displayName", "${__field.name} B")})
}

func capacityOverTime() *timeseries.PanelBuilder {
	capacity, bound := from(trained, metric.PathCapacity), from(trained, metric.PathCapacityBound)
	return runs(lines(text{
		"Capacity, run by run",
		"Replaces WPI figures 8 to 13. A point where a run was completed: the capacity, what it may be off (dotted), and the median of the last 7 days (dashed), below 60 % of which is OnewayCapacityDegraded. No point: refused, see Trains by result.",
		inBits, noTrains + " in this time range",
	},
		ranged(fresh(trained, bitsOf(capacity)), "{{direction}}"),
		ranged(fresh(trained, bitsOf(capacity+" - "+bound)), "{{direction}} at least"),
		ranged(fresh(trained, bitsOf(capacity+" + "+bound)), "{{direction}} at most"),
		ranged(bitsOf(recFrom(trained, recCapacityBaseline)), "{{direction}} baseline"),
	)).Height(9).
		Thresholds(steps(step{0, "transparent"})).
		OverrideByName("forward", props{color(blue), prop("custom.lineWidth", 2)}).
		OverrideByName("reverse", props{color(orange), prop("custom.lineWidth", 2)}).
		OverrideByRegexp("/^forward at /", props{color(blue), dotted(), prop("custom.pointSize", 2)}).
		OverrideByRegexp("/^reverse at /", props{color(orange), dotted(), prop("custom.pointSize", 2)}).
		OverrideByName("forward baseline", props{color(blue), dashed(), prop("custom.showPoints", "never")}).
		OverrideByName("reverse baseline", props{color(orange), dashed(), prop("custom.showPoints", "never")})
}

// capacityByHour reads a recorded series: PromQL knows the hour of now only.
func capacityByHour() *trend.PanelBuilder {
	mean := bitsOf(`avg by (hour, direction) (avg_over_time(` + recFrom(trained, recCapacityHour) + dashboardRange + `))`)
	return curve(text{
		"Capacity by time of day",
		"Replaces WPI figures 8 to 13: mean over the dashboard's time range of the median capacity, by hour of the day (local time: oneway:threshold:utc_offset_hours). Level: nobody else is seen; a valley in the evening is other people's traffic.",
		inBits, "No recorded hours yet: are deploy/prometheus/rules loaded?",
	}, axis{label: "hour", column: metric.Direction, unit: "suffix: h"}, mean).
		Min(0).
		OverrideByName("forward", props{color(blue)}).
		OverrideByName("reverse", props{color(orange)})
}

func trainRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("Trains: dispersion, and which say nothing"))
	b.WithPanel(dispersionTable())
	b.WithPanel(quoted(
		"WPI figure 15, for comparison",
		"What the WPI report measured over EvDO on 30 November 2005; nothing of it is measured here.",
		`**Not measured here:** WPI 2006, figure 15, EvDO, 30 November 2005.

| size | median | mean dispersion | 5th percentile |
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
		"Replaces WPI figure 15, for the last run: median, how far the capacity may be off it, mean time between the packets of a clean train at the receiver, 5th and 95th percentile, and whether such packets are fragmented. Capacity is (N-1) L / dispersion, in IP bytes. Choose the direction above.",
		"none", noTrains,
	},
		column{title: "IP packet", label: metric.PacketBytesL, empty: "no clean trains", own: props{prop("unit", "suffix: B")}},
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
		"Trains by result, of the hour before",
		"Trains of all sizes that were sent within the hour before each point. clean: it counts. lost, reordered, duplicated: repeated, as in the WPI report. unstamped: no kernel stamp. sender_pace: the sender was no faster than the link. coalesced, batched: the receiver's card gave its packets in groups. token_bucket: the first packets went through a shaper's bucket. interleaved: packets of others, or pauses of the link, were in between. too_short: the stamps may be off by more than a tenth of the train.",
		"none", "No trains in this time range",
	}, leastMinute, ranged("round(sum by (direction, result) (increase("+from(trained, metric.Trains, chosen)+"[1h])))", "{{result}}"))).
		Thresholds(steps(step{0, "transparent"}))
	for _, r := range trainResults() {
		p.OverrideByName(r.name, props{color(r.color)})
	}
	return p
}

// trainResults are what becomes of a train, the good one first.
func trainResults() []state {
	return []state{
		{"clean", green},
		{"lost", red},
		{"reordered", orange},
		{"duplicated", yellow},
		{"unstamped", "dark-red"},
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
		"The same by size of the IP packet, over the dashboard's time range. Where one size has few clean trains, its capacity is absent rather than guessed.",
		"none", "No trains in this time range",
	}).Height(8).Decimals(0).
		Targets(targets(one(table("round(sum by (packet_bytes, result) (increase("+from(trained, metric.Trains, chosen)+dashboardRange+"))) > 0")))).
		Thresholds(steps(step{0, gray})).
		OverrideByName("clean", props{
			prop("color", map[string]any{"mode": "fixed", "fixedColor": green}),
			prop("custom.cellOptions", map[string]string{"type": "color-text"}),
		}).
		OverrideByName(metric.PacketBytesL, props{prop("unit", "suffix: B"), prop("displayName", "IP packet")})
	for _, s := range pivot(metric.PacketBytesL, metric.ResultL) {
		p.WithTransformation(s)
	}
	return p.WithTransformation(transform("sortBy", map[string]any{
		"fields": map[string]any{}, "sort": []map[string]any{{"field": metric.PacketBytesL, "desc": true}},
	}))
}
