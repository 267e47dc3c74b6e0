package main

import (
	"strconv"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/stat"

	"oneway.example/exporter/metric"
)

// loadUID is the page that links and runbooks refer to.
const loadUID = "oneway-load"

// loadBoard is what became of a link that was filled on purpose, in the order in which
// it is asked: what came through, what it did to the delay, which queue did it, and
// whether the run can be believed.
func loadBoard() *boardBuilder {
	b := newBoard("oneway / Link under load").Uid(loadUID).Tags([]string{"oneway"}).
		Description("A link that was filled on purpose, both directions: throughput, delay under load, the queue and its size, loss against offered rate, damage, and what the tests cost.").
		Readonly().Refresh("1m").Time("now-24h", "now").Timezone("browser").
		Tooltip(dashboard.DashboardCursorSyncCrosshair).
		Links(links(loadTestPages(loadUID)...))
	loadTestVariables(b, probeVariable("saturation", "Probe", metric.UDPOffered))
	loadTestAnnotations(b)
	loadSummaryRow(b)
	throughputRow(b)
	loadedDelayRow(b)
	queueRow(b)
	sweepRow(b)
	damageRow(b)
	loadTestRunsRow(b)
	return b
}

func loadSummaryRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("The last run"))
	b.WithPanel(throughputTile("forward", forward))
	b.WithPanel(throughputTile("reverse", reverse))
	b.WithPanel(queueTile("forward", forward))
	b.WithPanel(queueTile("reverse", reverse))
	b.WithPanel(tile(text{
		"What it found", "A queue that drops at its end (filled); a link that was not filled; loss without delay (policer); drops before the queue was full (aqm), or after a time in it (time_limited). A size is told of a filled queue only.", "none",
		noState,
	}, instant(stateOf(), "{{direction}}")).Span(7).
		TextMode(common.BigValueTextModeValueAndName).
		Mappings(values(numbers(saturationStates()))).Thresholds(steps(step{0, gray})))
	b.WithPanel(lastRunTile(saturated))
	b.WithPanel(quotaTile())
	b.WithPanel(tile(text{
		"Loss under load", "Share of the packets sent under load that did not arrive: by design nearly all that was offered above the link's rate. No fault by itself.", "percentunit",
		noLoad,
	}, instant(from(saturated, metric.LoadedLoss), "{{direction}}")).Span(7).Decimals(1).
		TextMode(common.BigValueTextModeValueAndName).Thresholds(steps(step{0, gray})))
}

func throughputTile(name, matcher string) *stat.PanelBuilder {
	return tile(text{
		"Came through " + name, "Median of the seconds of the last run, its first and last part left out, in IP packets (RFC 9097 section 5.3), and what was really offered; in mode search, what that found (section 6). Thesis figure 6.1a.", inBits,
		noLoad,
	},
		instant(bitsOf("("+from(saturated, metric.UDPThroughput, matcher)+" or "+from(saturated, metric.SearchMaximum, matcher)+")"), "came through"),
		instant(bitsOf(from(saturated, metric.UDPOffered, matcher)), "offered"),
	).Span(6).Decimals(2).
		TextMode(common.BigValueTextModeValueAndName).Thresholds(steps(step{0, colorOf(name)})).
		OverrideByName("offered", props{color(gray)})
}

// queueTile shows what a full queue costs everybody else on the link.
func queueTile(name, matcher string) *stat.PanelBuilder {
	return tile(text{
		"Queue " + name, "What a full queue adds to the delay of half of the packets behind it, and of 19 in 20; how far that may be off, and the queue's size. Red above 200 ms, the default of OnewayBufferbloat. Thesis table 6.1.", "s",
		"Not filled, no queue, or no completed run",
	},
		instant(from(saturated, metric.QueueDelay, matcher, half), "adds"),
		instant(from(saturated, metric.QueueDelay, matcher, most), "95 %"),
		instant(from(saturated, metric.QueueDelayBound, matcher, half), "± bound"),
		instant(from(saturated, metric.QueueSize, matcher), "size"),
	).Span(6).Decimals(1).
		TextMode(common.BigValueTextModeValueAndName).
		Thresholds(steps(step{0, gray}, step{0, green}, step{bloat, red})).
		OverrideByName("± bound", props{color(gray)}).
		OverrideByName("size", props{prop("unit", "decbytes"), prop("decimals", 2), color(colorOf(name))})
}

// Matchers of the quantiles of a run.
const (
	least = metric.QuantileL + `="0.05"`
	half  = metric.QuantileL + `="0.5"`
	most  = metric.QuantileL + `="0.95"`
)

// bloat is the default of oneway:threshold:bufferbloat_seconds.
const bloat = 0.2

// state is one of a fixed set, and how it is shown.
type state struct{ name, color string }

// saturationStates are what a run can find, the plain one first.
func saturationStates() []state {
	return []state{
		{"filled", green},
		{"not_filled", orange},
		{"policer", purple},
		{"aqm", blue},
		{"time_limited", yellow},
	}
}

// stateOf numbers the state of each direction.
func stateOf() string {
	return numbered(saturationStates(), func(name string) string {
		return from(saturated, metric.SaturationState, metric.StateL+`="`+name+`"`)
	})
}

// numbered numbers states from 1: a tile that shows a label's value shows nothing at all
// where there is no series, and not why.
func numbered(of []state, series func(name string) string) string {
	terms := make([]string, len(of))
	for i, s := range of {
		terms[i] = strconv.Itoa(i+1) + " * (" + series(s.name) + " == 1)"
	}
	return "sum without (" + metric.StateL + ") (" + strings.Join(terms, " or ") + ")"
}

// numbers turns the numbers back into words.
func numbers(of []state) map[string]dashboard.ValueMappingResult {
	words := map[string]dashboard.ValueMappingResult{}
	for i, s := range of {
		words[strconv.Itoa(i+1)] = word(strings.ReplaceAll(s.name, "_", " "), s.color, int32(i))
	}
	return words
}
