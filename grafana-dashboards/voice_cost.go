package main

import (
	"math"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/estimate/voice"
)

// costRow divides what a call lacks to the best R among its causes.
func costRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("What costs R, $codec"))
	bothDirections(b, costs)
}

// ofCodec is a number of the selected codec, a scalar: of all known ones, the one that has a rating.
func ofCodec(number func(voice.Codec) float64) string {
	var all []string
	for _, c := range voice.Codecs() {
		all = append(all, `label_replace(vector(`+plain(number(c))+`), "`+metric.CodecL+`", "`+c.Name+`", "", "")`)
	}
	return "scalar(max((" + strings.Join(all, " or ") + ") and on (" + metric.CodecL + ") " + of(metric.VoiceR, selectedCodec) + "))"
}

// clearest is Ro - Is, what R would be without Id and Ie,eff. A call without delay has an Id of 0.2, and so R 93.2.
func clearest() float64 {
	r := voice.G107(voice.Defaults())
	return math.Round(100*(r.Ro-r.Is)) / 100
}

// costs are the terms of G.107's R = Ro - Is - Id - Ie,eff: Id, and Ie,eff in four parts. With Ppl and BurstR of the path alone the formula has
// the cost of the losses on the path, with BurstR 1 the cost of as many random ones; what is left of Ie,eff is due to the playout buffer.
func costs(name, matcher string) *timeseries.PanelBuilder {
	one := func(expr string) string { return "max(" + expr + ")" }
	here := func(d *metric.Desc) string {
		return "(" + ofBuffer(func(matchers ...string) string { return one(of(d, matchers...)) }, selectedCodec, g107, matcher) + ")"
	}
	codec := ofCodec(func(c voice.Codec) float64 { return c.Ie })
	lost := "(100 * " + one(of(metric.LossRatio, matcher)) + ")"
	burst := "(clamp_min(" + one(of(metric.LossBurstRatio, matcher)) + ", 1) or 1 + 0 * " + lost + ")"
	// (95-Ie) Ppl / (Ppl/BurstR + Bpl)
	loss := func(burst string) string {
		return "(95 - " + codec + ") * " + lost + " / (" + lost + " / " + burst + " + " + ofCodec(func(c voice.Codec) float64 { return c.Bpl }) + ")"
	}
	// With long bursts the formula is above what is left to lose: R is 0 then.
	left := plain(clearest()) + " - " + codec
	onPath := "(" + loss(burst) + " < " + left + " or 0 * (" + loss(burst) + ") + " + left + ")" // VictoriaMetrics has clamp_max with constants only
	delayed := here(metric.VoiceDelayImpairment)
	p := lines(text{
		"What costs R " + name,
		"What a call lacks to Ro - Is = " + plain(clearest()) + " of ITU-T G.107; where the sum is larger, R is 0. codec: Ie, which no network can change; loss: the packets that the path lost, as if each were lost alone; bursts: what it costs more that they were lost in a row; delay: Id; late: the rest of Ie,eff, the packets that came too late for the playout buffer, 0 where they lie between lost ones and shorten the bursts. Without the option voice_impairments of the probe delay and late are known together only.",
		"none", noRating,
	},
		ranged("0 * "+here(metric.VoiceR)+" + "+codec, "codec"),
		ranged(loss("1"), "loss"),
		ranged("clamp_min("+onPath+" - ("+loss("1")+"), 0)", "bursts"),
		ranged(delayed, "delay"),
		ranged("clamp_min("+here(metric.VoiceEquipmentImpairment)+" - "+codec+" - "+onPath+", 0)", "late"),
		ranged("clamp_min("+plain(clearest())+" - "+here(metric.VoiceR)+" - "+codec+" - "+onPath+", 0) unless "+delayed, "delay and late"),
	).Height(9).Min(0).AxisSoftMax(30).Decimals(1).FillOpacity(50).
		Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal).Group("A"))
	for _, c := range []state{{"delay", purple}, {"codec", gray}, {"loss", red}, {"bursts", "dark-red"}, {"late", yellow}, {"delay and late", yellow}} {
		p.OverrideByName(c.name, props{color(c.color)})
	}
	return p
}
