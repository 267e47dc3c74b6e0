package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/rules"
)

func lossRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("Loss, duplication, reordering, corruption"))
	b.WithPanel(counted(text{
		"Loss",
		"Loss ratio over 5 minutes by direction, and of round trips regardless of the direction of the loss: lost packets divided by packets received or lost (RFC 7680). The dashed line is the default threshold of " + rules.LossHigh.Name + ". Corresponds to the loss in MASCOTS figure 2 and in figures 16 to 18 and 30 of the D-ITG report.",
		"percentunit", "No packet received or lost in this time range",
	}, leastRatio,
		ranged(rec(rules.LossRatio5m.Name), "{{direction}}"),
		ranged(rec(rules.LossRatio1h.Name), "{{direction}}, 1 h"),
		ranged(rec(rules.RoundTripLossRatio5m.Name), "round trip"),
	).Thresholds(steps(step{0, "transparent"}, step{rules.ThresholdLossRatio.Default, red})).ThresholdsStyle(line()).
		OverrideByName("forward", props{color(colorOf("forward")), prop("custom.lineWidth", 2)}).
		OverrideByName("reverse", props{color(colorOf("reverse")), prop("custom.lineWidth", 2)}).
		OverrideByName("forward, 1 h", props{color(blue), dotted()}).
		OverrideByName("reverse, 1 h", props{color(orange), dotted()}).
		OverrideByName("round trip", props{color(green), dashed()}))
	b.WithPanel(lines(text{
		"Loss bursts",
		"Burst ratio (left): mean length of loss bursts divided by the mean length under random loss; above 1 the loss is bursty (ITU-T G.107 clause 7.5). Mean burst length (right): consecutive lost packets.",
		"none", "No loss in this time range" + orSlim,
	},
		ranged(of(metric.LossBurstRatio), "{{direction}} burst ratio"),
		ranged(meanOf(metric.LossBurst), "{{direction}} mean burst length, packets"),
	).ShowPoints(common.VisibilityModeAlways).PointSize(4).
		OverrideByName("forward burst ratio", props{color(blue), prop("custom.lineWidth", 2)}).
		OverrideByName("reverse burst ratio", props{color(orange), prop("custom.lineWidth", 2)}).
		OverrideByName("forward mean burst length, packets", props{color(blue), dashed(), prop("custom.axisPlacement", "right")}).
		OverrideByName("reverse mean burst length, packets", props{color(orange), dashed(), prop("custom.axisPlacement", "right")}))
	b.WithPanel(counted(text{
		"Duplicated, reordered, late, corrupted",
		"Packets per minute that were received duplicated, out of order, after their waiting time (late), or with a corrupted payload. They are separate counts; none of them reduces the loss.",
		perMinute, "None in this time range, or not reported by this reflector" + orSlim,
	}, leastMinute,
		ranged(minutely(of(metric.PacketsDuplicated)), "{{direction}} duplicated"),
		ranged(minutely(of(metric.PacketsReordered)), "{{direction}} reordered"),
		ranged(minutely(of(metric.PacketsLate)), "{{direction}} late"),
		ranged(minutely(of(metric.PacketsCorrupted)), "{{direction}} corrupted"),
	).
		OverrideByRegexp("/^forward/", props{color(blue)}).OverrideByRegexp("/^reverse/", props{color(orange)}).
		OverrideByRegexp("/reordered/", props{dashed()}).OverrideByRegexp("/late/", props{dotted()}).
		OverrideByName("forward corrupted", props{color(red)}).OverrideByName("reverse corrupted", props{color("dark-red")}))
	b.WithPanel(counted(text{
		"Loss of unknown direction, discarded packets",
		"Lost round trips that could not be assigned to a direction, and received packets that belong to no measurement, both by reason.",
		perMinute, "None in this time range" + orSlim,
	}, leastMinute,
		ranged(minutely(of(metric.DirectionUnknown)), "direction unknown: {{reason}}"),
		ranged(minutely(of(metric.PacketsDiscarded)), "discarded: {{reason}}"),
	))
	b.WithPanel(hops())
	b.WithPanel(marks())
}

// Ranges of the axes of hops and DSCP.
const (
	leastHops = 10
	mostDSCP  = 63
)

// hops shows route changes: a simultaneous step of delay and hop count is another route.
func hops() *timeseries.PanelBuilder {
	return plot(text{
		"Hops and their changes",
		"Left: number of routers on the route of the last packet, from its TTL or hop limit. Right, as bars: packets per minute with another hop count than the packet before; one change is a new route, many changes are load balancing over several routes. A new route with the same hop count is not detected.",
		"none", "No reply so far; forward: the reflector does not report the TTL" + orSlim,
	},
		ranged(of(metric.Hops), "{{direction}}"),
		ranged(minutely(of(metric.HopChanges)), "{{direction}} changes"),
	).Decimals(0).AxisSoftMin(0).AxisSoftMax(leastHops).
		OverrideByName("forward", stepped(colorOf("forward"), 5)).OverrideByName("reverse", stepped(colorOf("reverse"), 2)).
		OverrideByRegexp("/ changes$/", barsPerMinute()).
		OverrideByName("forward changes", props{color("light-blue")}).
		OverrideByName("reverse changes", props{color("light-orange")})
}

// marks shows what routers did to the DSCP and ECN fields of the test packets.
func marks() *timeseries.PanelBuilder {
	return plot(text{
		"DSCP and ECN of received packets",
		"Left: DSCP of the last received packet, 0 to 63 (RFC 2474 section 3). Right, as bars: packets per minute received with another DSCP than they were sent with (remarked), and with ECN codepoint CE (RFC 3168 section 5). Test packets are not ECN-capable: CE marks show a router that rewrites the whole byte or marks packets against RFC 3168. Profile slim has none of these series.",
		"none", "No reply so far; forward: the reflector does not report the DSCP, or packets are too small for the Receipt TLV" + orSlim,
	},
		ranged(of(metric.DSCP), "{{direction}}"),
		ranged(minutely(of(metric.DSCPRemarked)), "{{direction}} remarked"),
		ranged(minutely(of(metric.CongestionExperienced)), "{{direction}} CE"),
	).Decimals(0).AxisSoftMin(0).AxisSoftMax(mostDSCP).
		OverrideByName("forward", stepped(colorOf("forward"), 5)).OverrideByName("reverse", stepped(colorOf("reverse"), 2)).
		OverrideByRegexp("/ (remarked|CE)$/", barsPerMinute()).
		OverrideByName("forward remarked", props{color("light-blue")}).
		OverrideByName("reverse remarked", props{color("light-orange")}).
		OverrideByName("forward CE", props{color(red)}).
		OverrideByName("reverse CE", props{color("dark-red")})
}

// stepped draws a value that holds until the next packet. Two equal values are both visible if the first line is wider.
func stepped(colorName string, width int) props {
	return props{color(colorName), prop("custom.lineWidth", width), prop("custom.lineInterpolation", "stepAfter")}
}

// barsPerMinute draws a rate per minute as bars on the right axis.
func barsPerMinute() props {
	return props{
		prop("unit", perMinute), prop("custom.axisPlacement", "right"), prop("min", 0), prop("custom.axisSoftMax", leastMinute),
		prop("custom.drawStyle", "bars"), prop("custom.fillOpacity", 60), prop("decimals", 1),
	}
}

// meanOf is the mean of the observations in the rate interval, from a native histogram or a classic one.
func meanOf(d *metric.Desc) string {
	native := "rate(" + of(d) + rateInterval + ")"
	return "histogram_sum(" + native + ") / (histogram_count(" + native + ") > 0) or rate(" + sum(d) + rateInterval + ") / (rate(" + count(d) + rateInterval + ") > 0)"
}
