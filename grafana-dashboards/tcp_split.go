package main

import (
	"strconv"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/statetimeline"
	tablepanel "github.com/grafana/grafana-foundation-sdk/go/table"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/rules"
)

// noSplit names no profile: profile slim has the verdict.
const noSplit = "No completed run with stamps on this path"

// Numbers of the states of split TCP: a reason for no verdict has the number of its place, from 3.
const (
	splitYes, splitNo, splitReasons = 1, 2, 3
)

// undecidedReasons are the values of label reason.
func undecidedReasons() []string { return metric.TCPSplitUndecided.Values.Names(metric.ReasonL) }

// splitState is the number of the state of each direction.
func splitState() string {
	verdict := from(transferred, metric.TCPSplit)
	states := []string{strconv.Itoa(splitNo) + " - (" + verdict + ")"}
	for i, reason := range undecidedReasons() {
		states = append(states, strconv.Itoa(splitReasons+i)+" * sum without ("+metric.ReasonL+") ("+from(transferred, metric.TCPSplitUndecided, metric.ReasonL+`="`+reason+`"`)+")")
	}
	return "max by (" + metric.Direction + ") (" + strings.Join(states, " or ") + ")"
}

// splitWords are the texts of the numbers; unknown is the color of those without a verdict.
func splitWords(unknown string) map[string]dashboard.ValueMappingResult {
	words := map[string]dashboard.ValueMappingResult{
		strconv.Itoa(splitYes): word("yes", orange, 0), strconv.Itoa(splitNo): word("no", green, 1),
	}
	for i, reason := range undecidedReasons() {
		words[strconv.Itoa(splitReasons+i)] = word("cannot tell: "+metric.Words(reason), unknown, int32(2+i))
	}
	return words
}

func splitOverTime() *statetimeline.PanelBuilder {
	words := splitWords(faint)
	words["-1"] = word(noSplit, faint, int32(len(words)))
	return states(text{
		"Split TCP",
		"Whether a device on the path terminates the connections of each direction (a transparent proxy): yes, no, or cannot tell with the reason, of the last run, shown until the next one. " + rules.SplitTCPChanged.Name + " fires when it changes.",
		"none", noSplit,
	}, ranged("("+splitState()+`) or on () label_replace(vector(-1), "direction", "no run", "", "")`, "{{direction}}")).
		Span(8).Height(7).ShowValue(common.VisibilityModeAuto).
		Mappings(values(words)).Thresholds(steps(step{0, gray})).
		Legend(common.NewVizLegendOptionsBuilder().ShowLegend(false).
			DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom))
}

// splitEvidence is what the verdict of the last run is based on.
func splitEvidence() *tablepanel.PanelBuilder {
	each := func(d *metric.Desc) string { return "max by (direction) (" + from(transferred, d) + ")" }
	least := each(metric.TCPRTTMin)
	// The round trip of UDP has no direction.
	udp := "0 * " + least + " + on () group_left () max(" + from(transferred, metric.TCPUDPRoundTrip) + ")"
	return columns(text{
		"Evidence of split TCP, the last run",
		"Largest lead of an early ACK: how long before a byte can have been acknowledged by the receiver its ACK had reached the sender, beyond the error bounds of both clocks; any lead is proof. Handshake (connect time) and least round-trip time of the TCP data beside the round trip of UDP packets just before, the sum of the least delays of both directions, in which clock errors cancel: a proxy close to the sender makes TCP's clearly shorter.",
		"s", noStamps,
	},
		column{title: "direction", label: metric.Direction, empty: "no run with stamps"},
		column{title: "split", query: splitState(), own: props{
			prop("unit", "none"), prop("decimals", 0), prop("mappings", []any{values(splitWords(gray))[0], noNumber()}), prop("custom.width", 160),
			prop("custom.cellOptions", map[string]string{"type": "color-text"}),
		}},
		// Without an early ACK the column has dashes.
		column{title: "early ACK by", query: each(metric.TCPSplitLead) + " or NaN * " + least, unit: "s", own: props{prop("custom.minWidth", 100)}},
		column{title: "handshake", query: each(metric.TCPConnect), unit: "s"},
		column{title: "least TCP RTT", query: least, unit: "s", own: props{prop("custom.minWidth", 105)}},
		column{title: "UDP RTT", query: udp, unit: "s", own: props{prop("custom.minWidth", 105)}},
		column{title: "TCP less UDP", query: least + " - (" + udp + ")", unit: "s", own: props{prop("custom.minWidth", 105)}},
	).Span(16).Height(7).Decimals(1).Thresholds(steps(step{0, gray})).WithTransformation(sortedBy("direction"))
}

// splitAnnotation marks the runs whose verdict differs from the last one before: the series exists in one evaluation after a change.
func splitAnnotation(b *boardBuilder) {
	annotate(b, "Split TCP", purple, "last_over_time("+recFrom(transferred, rules.SplitTCPVerdictChanged.Name)+"[1m])",
		"Split TCP changed", "{{path}} {{direction}}", metric.Direction)
}
