package main

import (
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/rules"
	"oneway.example/exporter/estimate/voice"
)

const (
	voiceTitle = "Voice"
	voiceUID   = "oneway-voice"
)

// voiceBoard shows a telephone call over one path: R and what it depends on aligned in time, what costs R, codecs beside each other, and the
// minutes with a low R.
func voiceBoard() *boardBuilder {
	b := board(voiceTitle, voiceUID, "now-6h",
		"A telephone call over one path: R, MOS, loss, delay and playout loss aligned in time, what costs R, codecs beside each other, minutes with R below 70 and 80.").
		Refresh("30s").Links(append(links(page{pathTitle, pathUID, "All of this path"}, page{trendsTitle, trendsUID, "Months and years of this path"}), runbooks()))
	agentVariables(b, metric.VoiceR.Name)
	b.WithVariable(labelValues(metric.Path, "Path", metric.VoiceR.Name+"{"+thisAgent+"}"))
	b.WithVariable(labelValues(metric.Probe, "Probe", metric.VoiceR.Name+"{"+thisAgent+`,path="$path"}`))
	b.WithVariable(labelValues(metric.CodecL, "Codec", of(metric.VoiceR)))
	b.WithVariable(directionVariable())
	annotations(b)
	alignedRow(b)
	costRow(b)
	codecsRow(b)
	minutesRow(b)
	return b
}

// inDirections colors the lines of both directions.
func inDirections(p *timeseries.PanelBuilder) *timeseries.PanelBuilder {
	return p.OverrideByRegexp("/^forward/", props{shades(blue)}).OverrideByRegexp("/^reverse/", props{shades(orange)})
}

// alignedRow has panels above each other whose time axes have the same width: a drop of R stands above its cause.
func alignedRow(b *boardBuilder) {
	aligned := func(p *timeseries.PanelBuilder) *timeseries.PanelBuilder {
		return inDirections(p).Span(24).Height(6).AxisWidth(axisWidth)
	}
	b.WithRow(dashboard.NewRowBuilder("R of a call, and what it depends on, in the same windows"))
	b.WithPanel(ratings())
	b.WithPanel(aligned(plot(text{
		"MOS, $codec",
		"Estimated mean opinion score (MOS-CQE, 1 to 4.5) by ITU-T G.107 Annex B: the same as R on another scale. Corresponds to thesis section 7.1.",
		"none", noRating,
	}, ranged(call(metric.VoiceMOS), "{{direction}}")).Min(1).Max(4.5).Decimals(1)))
	b.WithPanel(aligned(counted(text{
		"Loss of the same windows",
		"Lost packets divided by packets received or lost, per window. Corresponds to thesis figure 7.2 a.",
		"percentunit", "The reflector does not report loss by direction, or no packet was received or lost" + orSlim,
	}, leastRatio, ranged(of(metric.LossRatio), "{{direction}}"))))
	b.WithPanel(aligned(lines(text{
		"Delay of the same windows",
		"Median one-way delay of each window, and the delay from mouth to ear (dashed): packet, look-ahead, network and playout buffer. G.114: most uses are not affected below 150 ms; networks should not be planned for more than 400 ms. Corresponds to thesis figure 7.2 b.",
		"s", noRating,
	},
		ranged(of(metric.DelayQuantile, half), "{{direction}}"),
		ranged(played(metric.VoiceMouthToEar), "{{direction}}, mouth to ear"),
	)).OverrideByRegexp("/mouth to ear$/", props{dashed()}))
	b.WithPanel(aligned(counted(text{
		"Playout loss of the same windows",
		"Packets that the call does not hear: lost on the path, or too late for the playout (de-jitter) buffer, divided by all. What is above the loss of the path came too late.",
		"percentunit", noRating,
	}, leastRatio, ranged("max by (direction, buffer) ("+of(metric.VoicePlayoutLoss, selectedCodec)+")", "{{direction}} {{buffer}}"))))
}

// played selects a family without models as call does.
func played(d *metric.Desc) string {
	return ofBuffer(func(matchers ...string) string {
		return "max by (" + metric.Direction + ") (" + of(d, matchers...) + ")"
	}, selectedCodec)
}

// codecColors are in the order of voice.Codecs. Blue, orange and green have other meanings.
var codecColors = [...]string{"dark-yellow", purple, "#1aa3a3", "#a3541a", "#d44fa0", red}

// rByCodec is R by codec.
func rByCodec(matcher string) string {
	return ofBuffer(func(matchers ...string) string {
		return "max by (direction, codec) (" + of(metric.VoiceR, matchers...) + ")"
	}, g107, matcher)
}

func codecsRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("Codecs beside each other"))
	bothDirections(b, func(name, matcher string) *timeseries.PanelBuilder {
		p := lines(text{
			"R by codec " + name,
			"R of each codec that the probe rates (option codecs), over the same packets. G.711 with concealment needs 64 kb/s, G.729 8 kb/s; a codec that stands loss better wins where packets are lost. Corresponds to thesis section 7.1.",
			"none", noRating,
		}, ranged(rByCodec(matcher), "{{codec}}")).Min(0).Max(100).Decimals(0).
			Thresholds(steps(satisfactionSteps()...)).ThresholdsStyle(line())
		for i, c := range voice.Codecs() {
			p.OverrideByName(c.Name, props{color(codecColors[i%len(codecColors)]), prop("custom.lineWidth", 2)})
		}
		return p
	})
	b.WithPanel(scores().Span(24).Height(7))
	each := func(expr string) string { return "max by (direction, codec, buffer) (" + expr + ")" }
	over := func(function string) string {
		return function + "(" + of(metric.VoiceR, g107) + dashboardRange + ")"
	}
	one := props{prop("decimals", 1)}
	b.WithPanel(columns(text{
		"Codecs and playout buffers",
		"Each codec with each playout buffer, by direction: R and MOS of the last window, mean and least R of the windows of the time range, the impairments by delay (Id) and by codec and loss (Ie,eff) in units of R (with the option voice_impairments), delay from mouth to ear, and packets lost or too late.",
		"none", noRating,
	},
		column{title: "direction", label: metric.Direction, empty: "no rating", own: props{prop("custom.width", 80)}},
		column{title: "codec", label: metric.CodecL, own: props{prop("custom.width", 95)}},
		column{title: "buffer", label: metric.BufferL, own: props{prop("custom.width", 80)}},
		column{title: "R", query: each(of(metric.VoiceR, g107)), own: append(coloredFrom(satisfactionSteps()...), one...)},
		column{title: "mean", query: "avg by (direction, codec, buffer) (" + over("avg_over_time") + ")", own: one},
		column{title: "least", query: "min by (direction, codec, buffer) (" + over("min_over_time") + ")", own: append(coloredFrom(satisfactionSteps()...), one...)},
		column{title: "MOS", query: each(of(metric.VoiceMOS, g107)), own: props{prop("decimals", 2)}},
		column{title: "Id", query: each(of(metric.VoiceDelayImpairment, g107)), own: one},
		column{title: "Ie,eff", query: each(of(metric.VoiceEquipmentImpairment, g107)), own: one},
		column{title: "mouth to ear", query: each(of(metric.VoiceMouthToEar)), unit: "s", own: one},
		column{title: "lost or late", query: each(of(metric.VoicePlayoutLoss)), unit: "percentunit", own: props{prop("decimals", 2)}},
	).Span(24).Height(8).WithTransformation(sortedBy("codec")).WithTransformation(sortedBy("direction")))
}

// lowMinutes counts the minutes of the range in which R was below a limit: of its windows the one with the least R.
func lowMinutes(limit float64, within, matcher string) string {
	return "sum_over_time((" + leastOfMinute(matcher) + " < bool " + plain(limit) + ")[" + within + ":1m])"
}

// eachDirection has a query of each direction: Prometheus returns the series of one query in any order.
func eachDirection(of func(matcher string) string) (all []*prometheus.DataqueryBuilder) {
	for _, d := range directions() {
		all = append(all, instant(of(metric.Direction+`="`+d+`"`), d))
	}
	return all
}

// leastOfMinute is the least R of the windows of a minute, of the selected codec, by direction.
func leastOfMinute(matcher string) string {
	return "(" + ofBuffer(func(matchers ...string) string {
		return "max by (direction) (min_over_time(" + of(metric.VoiceR, matchers...) + "[1m]))"
	}, selectedCodec, g107, matcher) + ")"
}

func minutesRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("Minutes with a low R, $codec"))
	for _, limit := range []float64{70, 80} {
		b.WithPanel(minutesTile(limit))
	}
	b.WithPanel(tile(text{
		"Minutes rated",
		"Minutes of the time range with a rating: the others are neither good nor bad, since no agent measured, or a clock was not synchronized.",
		"suffix:min", noRating,
	}, eachDirection(func(matcher string) string {
		return "count_over_time(" + leastOfMinute(matcher) + "[$__range:1m])"
	})...).Span(8).Decimals(0).
		TextMode(common.BigValueTextModeValueAndName).Thresholds(steps(step{0, gray})))
	for _, d := range directions() {
		b.WithPanel(minutesByHour(d))
	}
}

func minutesTile(limit float64) *stat.PanelBuilder {
	return tile(text{
		fmt.Sprintf("Minutes below %g", limit),
		fmt.Sprintf("Minutes of the time range in which R of a window was below %g, in each direction. Below 80 some users are dissatisfied, below 70 many (ITU-T G.109). The thesis calls R from 80 good and below 70 bad (section 7.1).", limit),
		"suffix:min", noRating,
	}, eachDirection(func(matcher string) string { return lowMinutes(limit, "$__range", matcher) })...).Span(8).Decimals(0).
		TextMode(common.BigValueTextModeValueAndName).Thresholds(steps(step{0, gray}, step{0, green}, step{0.5, orange}))
}

// minutesByHour are from the recorded hours, so that they are the same for a day and for a year.
func minutesByHour(direction string) *timeseries.PanelBuilder {
	within := overHours(selectedCodec, g107, metric.Direction+`="`+direction+`"`)
	below := func(r rules.Rule) *prometheus.DataqueryBuilder {
		limit := "below 80"
		if r.Name == rules.LongRBelow70.Name {
			limit = "below 70"
		}
		return ranged("max by (direction) ("+within.sum(r.Name, "direction, buffer")+")", limit)
	}
	p := counted(text{
		"Minutes below 70 and 80, " + direction,
		"Minutes of each interval, an hour or longer, in which R was below 70 (red) and below 80 (yellow, which includes them), with the playout buffer that has more of them. From the recorded hours: the last one is at most an hour old.",
		"suffix:min", slimOr + "no recorded hour with a rating so far (deploy/prometheus/rules)",
	}, 60, below(rules.LongRBelow80), below(rules.LongRBelow70))
	return byTime(hourly, p).DrawStyle(common.GraphDrawStyleBars).FillOpacity(70).LineWidth(0).
		OverrideByName("below 80", props{color(yellow)}).OverrideByName("below 70", props{color(red)})
}
