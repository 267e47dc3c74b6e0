package main

import (
	"slices"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/estimate/voice"
)

// axisWidth aligns the time axes of panels that are above each other.
const axisWidth = 80

// satisfaction is the classes of user satisfaction in words, the highest first. Below the lowest limit R is not recommended.
func satisfaction() string {
	var words []string
	for _, c := range voice.Classes()[1:] {
		words = append(words, plain(c.From)+" "+c.Users)
	}
	slices.Reverse(words)
	return strings.Join(words, ", ")
}

// satisfactionSteps are the colors of the classes of user satisfaction.
func satisfactionSteps() (all []step) {
	for i, c := range voice.Classes() {
		all = append(all, step{c.From, [...]string{"dark-red", red, orange, yellow, "light-green", green}[i]})
	}
	return all
}

// voiceRow shows R, loss and delay of the same windows above each other, as thesis figure 7.2 does.
func voiceRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("Voice quality: R, and the loss and delay that it depends on"))
	b.WithPanel(ratings())
	b.WithPanel(counted(text{
		"Loss ratio of the same windows",
		"Lost packets divided by packets received or lost, per window.",
		"percentunit", "The reflector does not report loss by direction, or no packet was received or lost" + orSlim,
	}, leastRatio, ranged(of(metric.LossRatio), "{{direction}}")).Span(24).Height(6).AxisWidth(axisWidth).
		OverrideByName("forward", props{color(colorOf("forward"))}).OverrideByName("reverse", props{color(colorOf("reverse"))}))
	b.WithPanel(lines(text{
		"Median delay of the same windows",
		"Median of each window, with lost packets counted as infinite delay: no line where half of the packets were lost or no delay is valid.",
		"s", noDelay,
	}, ranged(of(metric.DelayQuantile, `quantile_rank="0.5"`), "{{direction}}")).Span(24).Height(6).AxisWidth(axisWidth).
		OverrideByName("forward", props{color(colorOf("forward"))}).OverrideByName("reverse", props{color(colorOf("reverse"))}))
	b.WithPanel(scores())
	b.WithPanel(lines(text{
		"Mouth-to-ear delay and playout loss",
		"Left: sum of packetization, look-ahead, network and playout buffer delay. ITU-T G.114: most applications are not affected below 150 ms, and networks should not be planned for more than 400 ms. Right: share of the packets lost on the path or too late for the playout buffer.",
		"s", noRating,
	},
		ranged(of(metric.VoiceMouthToEar), "{{direction}} {{codec}} {{buffer}}"),
		ranged("max by (direction, buffer) ("+of(metric.VoicePlayoutLoss)+")", "{{direction}} {{buffer}}: lost or late"),
	).
		OverrideByRegexp("/^forward/", props{shades(blue)}).
		OverrideByRegexp("/^reverse/", props{shades(orange)}).
		OverrideByRegexp("/lost or late/", props{
			prop("unit", "percentunit"), prop("custom.axisPlacement", "right"),
			prop("min", 0), prop("custom.axisSoftMax", leastRatio), dashed(),
		}))
}

// scores are the MOS of all codecs.
func scores() *timeseries.PanelBuilder {
	return lines(text{
		"MOS by codec",
		"Estimated mean opinion score (MOS-CQE, 1 to 4.5) by ITU-T G.107 Annex B, by codec, with the playout buffer that gives the highest score.",
		"none", noRating,
	}, ranged("max by (direction, codec) ("+of(metric.VoiceMOS, metric.ModelL+`="g107"`)+")", "{{direction}} {{codec}}")).Min(1).Max(4.5).
		OverrideByRegexp("/^forward/", props{shades(blue), prop("custom.lineWidth", 2)}).
		OverrideByRegexp("/^reverse/", props{shades(orange), prop("custom.lineWidth", 2)})
}

// ratings shows R of the selected codec with its classes.
func ratings() *timeseries.PanelBuilder {
	rMost := "(" + call(metric.VoiceRHighest) + ") or (" + call(metric.VoiceR) + ") + (" + call(metric.VoiceRError) + ")"
	rLeast := "(" + call(metric.VoiceR) + ") - (" + call(metric.VoiceRError) + ")"
	return lines(text{
		"R, $codec",
		"Transmission rating factor R by ITU-T G.107 of a call in this direction with codec $codec (selected above) and an adaptive playout buffer. Colored areas: user satisfaction by Annex B (from " + satisfaction() + "). Dotted: range of R within the error bound of the delay.",
		"none", noRating,
	},
		ranged(call(metric.VoiceR), "{{direction}}"),
		ranged(rMost, "{{direction}}, upper limit"),
		ranged(rLeast, "{{direction}}, lower limit"),
	).Span(24).Height(8).Min(0).Max(100).
		AxisWidth(axisWidth).LineWidth(2).
		Thresholds(steps(satisfactionSteps()...)).
		ThresholdsStyle(area()).
		OverrideByName("forward", props{color(colorOf("forward"))}).OverrideByName("reverse", props{color("super-light-orange")}).
		OverrideByRegexp("/^forward, /", props{color(blue), dotted(), prop("custom.lineWidth", 1)}).
		OverrideByRegexp("/^reverse, /", props{color("super-light-orange"), dotted(), prop("custom.lineWidth", 1)})
}
