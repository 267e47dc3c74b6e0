package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"

	"oneway.example/exporter/metric"
)

func lossRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("Loss, duplication, reordering, corruption"))
	b.WithPanel(counted(text{
		"Loss",
		"Lost over decided packets of 5 minutes by direction, and of round trips whichever direction lost them (RFC 7680). The dashed line is the default threshold of OnewayLossHigh. Replaces the loss of MASCOTS figure 2 and figures 16 to 18 and 30 of the D-ITG report.",
		"percentunit", "Nothing decided in this time range",
	}, leastRatio,
		ranged(rec(recLoss), "{{direction}}"),
		ranged(rec(recLossHour), "{{direction}}, 1 h"),
		ranged(rec(recRoundLoss), "round trip"),
	).Thresholds(steps(step{0, "transparent"}, step{0.01, red})).ThresholdsStyle(line()).
		OverrideByName("forward", props{color(blue), prop("custom.lineWidth", 2)}).
		OverrideByName("reverse", props{color(orange), prop("custom.lineWidth", 2)}).
		OverrideByName("forward, 1 h", props{color(blue), dotted()}).
		OverrideByName("reverse, 1 h", props{color(orange), dotted()}).
		OverrideByName("round trip", props{color(green), dashed()}))
	b.WithPanel(lines(text{
		"Loss bursts",
		"Burst ratio (left): mean length of the loss runs over the one that random loss would have; above 1 is bursty (ITU-T G.107 clause 7.5). Mean run (right): lost packets in a row.",
		"none", "No loss, so no bursts." + orSlim,
	},
		ranged(of(metric.LossBurstRatio), "{{direction}} burst ratio"),
		ranged(meanOf(metric.LossBurst), "{{direction}} mean run"),
	).ShowPoints(common.VisibilityModeAlways).PointSize(4).
		OverrideByName("forward burst ratio", props{color(blue), prop("custom.lineWidth", 2)}).
		OverrideByName("reverse burst ratio", props{color(orange), prop("custom.lineWidth", 2)}).
		OverrideByName("forward mean run", props{color(blue), dashed(), prop("custom.axisPlacement", "right"), prop("unit", "suffix: packets")}).
		OverrideByName("reverse mean run", props{color(orange), dashed(), prop("custom.axisPlacement", "right"), prop("unit", "suffix: packets")}))
	b.WithPanel(counted(text{
		"Duplicated, reordered, late, corrupted",
		"Packets a minute that arrived, and not as they should: counted apart, none of them cancels a loss. Late came after its loss was decided; corrupted had a damaged payload (thesis figure 5.5).",
		perMinute, "Not counted by this reflector." + orSlim,
	}, leastMinute,
		ranged(minutely(of(metric.PacketsDuplicated)), "{{direction}} duplicated"),
		ranged(minutely(of(metric.PacketsReordered)), "{{direction}} reordered"),
		ranged(minutely(of(metric.PacketsLate)), "{{direction}} late"),
		ranged(minutely(of(metric.PacketsCorrupted)), "{{direction}} corrupted"),
	).
		OverrideByRegexp("/^forward/", props{color(blue)}).OverrideByRegexp("/^reverse/", props{color(orange)}).
		OverrideByRegexp("/reordered/", props{dashed()}).OverrideByRegexp("/late/", props{dotted()}).
		OverrideByRegexp("/corrupted/", props{prop("custom.lineWidth", 3)}))
	b.WithPanel(counted(text{
		"Lost without a direction, and discarded",
		"Lost round trips that could not be assigned to a direction, by reason, and arriving packets that belong to no measurement, by reason.",
		perMinute, "None in this time range." + orSlim,
	}, leastMinute,
		ranged(minutely(of(metric.DirectionUnknown)), "direction unknown: {{reason}}"),
		ranged(minutely(of(metric.PacketsDiscarded)), "discarded: {{reason}}"),
	))
	b.WithPanel(hops())
}

// hops beside delay: a step of both is another route.
func hops() *timeseries.PanelBuilder {
	return plot(text{
		"Hops and their changes",
		"Left: routers that the last packet passed, by its TTL or hop limit. Right, as bars: packets a minute that passed another number than the packet before: once is a new route, many are packets that take several. A route with as many routers as the one before does not show.",
		"none", "No reply yet; forward, the reflector does not tell the TTL." + orSlim,
	},
		ranged(of(metric.Hops), "{{direction}}"),
		ranged(minutely(of(metric.HopChanges)), "{{direction}} changes"),
	).Span(24).Height(6).Decimals(0).AxisSoftMin(0).
		OverrideByName("forward", props{color(blue), prop("custom.lineWidth", 2), prop("custom.lineInterpolation", "stepAfter")}).
		OverrideByName("reverse", props{color(orange), prop("custom.lineWidth", 2), prop("custom.lineInterpolation", "stepAfter")}).
		OverrideByRegexp("/ changes$/", props{
			prop("unit", perMinute), prop("custom.axisPlacement", "right"), prop("min", 0), prop("custom.axisSoftMax", leastMinute),
			prop("custom.drawStyle", "bars"), prop("custom.fillOpacity", 60), prop("decimals", 1),
		}).
		OverrideByName("forward changes", props{color("light-blue")}).
		OverrideByName("reverse changes", props{color("light-orange")})
}

// meanOf is the mean of what was observed lately, from a native histogram or a classic one.
func meanOf(d *metric.Desc) string {
	native := "rate(" + of(d) + rateInterval + ")"
	return "histogram_sum(" + native + ") / (histogram_count(" + native + ") > 0) or rate(" + sum(d) + rateInterval + ") / (rate(" + count(d) + rateInterval + ") > 0)"
}
