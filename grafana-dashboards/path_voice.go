package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"

	"oneway.example/exporter/metric"
)

// axisWidth makes stacked panels share one time axis to the pixel.
const axisWidth = 80

// voiceRow shows R above the loss and the delay that made it, as thesis figure
// 7.2 does, all three of the same windows.
func voiceRow(b *boardBuilder) {
	rMost := "(" + call(metric.VoiceR) + ") + (" + call(metric.VoiceRError) + ")"
	rLeast := "(" + call(metric.VoiceR) + ") - (" + call(metric.VoiceRError) + ")"
	b.WithRow(dashboard.NewRowBuilder("Voice: R above the loss and delay that made it"))
	b.WithPanel(lines(text{
		"R, $codec",
		"Replaces thesis figure 7.2 (c), which has the simplified model. Transmission rating by ITU-T G.107 of a call over this direction with codec $codec (chosen above) and an adaptive playout buffer. Areas are the user satisfaction of its Annex B: from 90 very satisfied, 80 satisfied, 70 some dissatisfied, 60 many, 50 nearly all. Dotted: what R may be within the error bound of the delay.",
		"none", "No rating: no valid delay, or under 10 packets a window." + orSlim,
	},
		ranged(call(metric.VoiceR), "{{direction}}"),
		ranged(rMost, "{{direction}}, at the most"),
		ranged(rLeast, "{{direction}}, at the least"),
	).Span(24).Height(8).Min(0).Max(100).
		AxisWidth(axisWidth).LineWidth(2).
		Thresholds(steps(step{0, "dark-red"}, step{50, red}, step{60, orange}, step{70, yellow}, step{80, "light-green"}, step{90, green})).
		ThresholdsStyle(area()).
		OverrideByName("forward", props{color(blue)}).OverrideByName("reverse", props{color("super-light-orange")}).
		OverrideByRegexp("/^forward, at/", props{color(blue), dotted(), prop("custom.lineWidth", 1)}).
		OverrideByRegexp("/^reverse, at/", props{color("super-light-orange"), dotted(), prop("custom.lineWidth", 1)}))
	b.WithPanel(counted(text{
		"Loss of the same windows",
		"Replaces thesis figure 7.2 (a). Lost over decided packets of each window.",
		"percentunit", "Not told apart by this reflector, or nothing decided." + orSlim,
	}, leastRatio, ranged(of(metric.LossRatio), "{{direction}}")).Span(24).Height(6).AxisWidth(axisWidth).
		OverrideByName("forward", props{color(blue)}).OverrideByName("reverse", props{color(orange)}))
	b.WithPanel(lines(text{
		"Median delay of the same windows",
		"Replaces thesis figure 7.2 (b). Median of each window, lost packets counted as infinite: no line where half were lost or no delay could be proven.",
		"s", noDelay,
	}, ranged(of(metric.DelayQuantile, `quantile_rank="0.5"`), "{{direction}}")).Span(24).Height(6).AxisWidth(axisWidth).
		OverrideByName("forward", props{color(blue)}).OverrideByName("reverse", props{color(orange)}))
	b.WithPanel(lines(text{
		"MOS by codec",
		"Estimated mean opinion score (MOS-CQE, 1..4.5) by codec, the best playout buffer of each, by ITU-T G.107 (Annex B).",
		"none", "No rating: no valid delay, or under 10 packets a window." + orSlim,
	}, ranged("max by (direction, codec) ("+of(metric.VoiceMOS, metric.ModelL+`="g107"`)+")", "{{direction}} {{codec}}")).Min(1).Max(4.5).
		OverrideByRegexp("/forward/", props{prop("custom.lineWidth", 2)}).
		OverrideByRegexp("/reverse/", props{dashed()}))
	b.WithPanel(lines(text{
		"Mouth to ear, and what the playout buffer lost",
		"Left: packetization, look-ahead, network and playout buffer; below 150 ms most calls do not feel it, and no network should be planned for more than 400 ms (ITU-T G.114). Right: packets lost on the path or too late for the buffer.",
		"s", "No rating: no valid delay, or under 10 packets a window." + orSlim,
	},
		ranged(of(metric.VoiceMouthToEar), "{{direction}} {{codec}} {{buffer}}"),
		ranged("max by (direction, buffer) ("+of(metric.VoicePlayoutLoss)+")", "{{direction}} {{buffer}}: lost or late"),
	).
		OverrideByRegexp("/lost or late/", props{
			prop("unit", "percentunit"), prop("custom.axisPlacement", "right"),
			prop("min", 0), prop("custom.axisSoftMax", leastRatio), dashed(),
		}))
}
