package rules

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"oneway.example/exporter/core/metric"
)

// rank is a quantile that is recorded.
type rank struct {
	share float64
	q     string // share as a label
	// ordinary is the quantile of the windows' values that stands for an ordinary window.
	ordinary string
}

// The ranks. The head of oneway-recording.yml says why an ordinary window is not the median of all windows.
var (
	p50 = rank{0.5, "0.5", "0.5"}
	p95 = rank{0.95, "0.95", "0.6"}
	p99 = rank{0.99, "0.99", "0.9"}
)

// leastShare and mostShare are a little less and more than the rank, so that the rounding of rate() does not matter.
func (r rank) leastShare() string { return fmt.Sprintf("%.7f", r.share-1e-7) }
func (r rank) mostShare() string  { return fmt.Sprintf("%.7f", r.share+1e-7) }

func (r rank) label() []Label { return []Label{{metric.QuantileL, r.q}} }

// selector selects the rank.
func (r rank) selector() string { return "{" + metric.QuantileL + `="` + r.q + `"}` }

// distribution has the families of a delay whose quantiles are recorded.
type distribution struct {
	histogram, quantile, least, largest *metric.Desc
	// lower and upper follow a quantile of a native histogram with the lower and the upper limit of its bucket.
	lower, upper func(quantile string) string
	// wider is withheld.wider where delays of packets that arrived may be unknown, by the series of quantiles of the known ones; nil: every
	// reply has a value.
	wider func(quantiles string) func(high, low string, of rank) string
	// scraped is the number of scraped windows, and how it matches the series of quantile: an operand of >=.
	scraped func(window string) string
}

func delays() distribution {
	return distribution{
		metric.Delay, metric.DelayQuantile, metric.DelayMin, metric.DelayMax,
		func(q string) string { return q + " - 0.1 * abs(" + q + ")" }, // a delay may be below 0, within its error bound
		func(q string) string { return q + " + 0.1 * abs(" + q + ")" },
		func(quantiles string) func(high, low string, of rank) string {
			return func(high, low string, r rank) string {
				return high + " - " + low + " > ignoring (quantile_rank) 0.1 * abs(" + quantiles + r.selector() + ")"
			}
		},
		func(window string) string {
			return promql(`
ignoring (direction, quantile_rank) group_left () (
    count_over_time($interval[$window])
    or sum without (direction) (count_over_time($sent{direction="forward"}[$window]))
  )`, names{"interval": metric.ProbeInterval.Name, "sent": metric.PacketsSent.Name, "window": window})
		},
	}
}

func roundTrips() distribution {
	return distribution{
		metric.RoundTripTime, metric.RoundTripTimeQuantile, metric.RoundTripTimeMin, metric.RoundTripTimeMax,
		func(q string) string { return q + " / 1.1" },
		func(q string) string { return q + " * 1.1" },
		nil,
		func(window string) string {
			return "ignoring (quantile_rank) group_left () count_over_time(" + metric.ProbeInterval.Name + "[" + window + "])"
		},
	}
}

// histogramQuantile is the quantile of a native histogram, or of a classic one. It has no series without observations.
func histogramQuantile(name string, r rank, d *metric.Desc, window string) Rule {
	return Rule{Name: name, Labels: r.label(), Expr: promql(`
(
  histogram_quantile($q, rate($histogram[$window]))
  or
  histogram_quantile($q, rate(${histogram}_bucket[$window]))
) > -Inf`, names{"q": r.q, "histogram": d.Name, "window": window})}
}

// quantileRules make the rules that record quantiles of a time.
type quantileRules struct {
	distribution
	window string
	// of selects the ranks that these rules record, where others record other ranks of the same series.
	of string
	// native is the rate of the values of a native histogram. Rules that need to know whether a histogram is native, or how many values it
	// has, read this series: a native histogram is decoded again by each expression that reads it.
	native string
	// unknown is withheld.ratio; empty: every reply has a value.
	unknown string
}

// rules makes the rules of a window for the ranks selected by of. suffix distinguishes their counts, which need the time of their evaluation,
// from the ones of other rules of the window.
func (d distribution) rules(window, of, suffix string) quantileRules {
	q := quantileRules{distribution: d, window: window, of: of, native: recorded(d.histogram, "native_rate"+window+suffix)}
	if d.wider != nil {
		q.unknown = recorded(d.histogram, "unknown_ratio"+window+suffix)
	}
	return q
}

// recorded is the name of a series of quantiles.
func (q quantileRules) recorded(operation string) string {
	return recorded(q.histogram, operation+q.window)
}

// bucketEnd is the limit of the bucket with the quantile of the known values: of a native histogram by end, of a classic one its own
// quantile 0 or 1, as classic says.
func (q quantileRules) bucketEnd(name string, r rank, end func(string) string, classic string) Rule {
	return Rule{Name: name, Labels: r.label(), Expr: promql(`
$quantile and $native
or
histogram_quantile($classic, rate(${histogram}_bucket[$window])
  >= bool ignoring (le) group_left () ($below * rate(${histogram}_bucket{le="+Inf"}[$window]) > 0))`, names{
		"quantile": end("sum without (quantile_rank) (" + q.recorded("histogram_quantile") + r.selector() + ")"), "native": q.native,
		"classic": classic, "histogram": q.histogram.Name, "window": q.window, "below": r.leastShare(),
	})}
}

// lowerEnd is the lower bucketEnd. Where values are unknown it is a limit of the quantile of all, as if the unknown ones were the least.
func (q quantileRules) lowerEnd(name string, r rank) Rule {
	rule := q.bucketEnd(name, r, q.lower, "1e-9")
	if q.unknown == "" {
		return rule
	}
	low, _ := ranksOf(r.share, lowestTold)
	rule.Expr = promql(`
$quantile and $native unless $ratio > 0
or
0.9 * (histogram_quantile($low, rate($histogram[$window])) > 0) and $ratio > 0 <= $lowest
or
histogram_quantile(1e-9, rate(${histogram}_bucket[$window])
  >= bool ignoring (le) group_left () (rate(${histogram}_bucket{le="+Inf"}[$window]) * ignoring (le) (($below - $ratio) / (1 - $ratio)) > 0))`, names{
		"quantile": q.lower("sum without (quantile_rank) (" + q.recorded("histogram_quantile") + r.selector() + ")"), "native": q.native,
		"histogram": q.histogram.Name, "window": q.window,
		"ratio": q.unknown, "low": low, "lowest": fmt.Sprint(lowestTold), "below": r.leastShare(),
	})
	return rule
}

// quantiles are the quantiles of a delay over several windows of the agent, and what they are computed from. doc is the comment
// of the first rule.
func (d distribution) quantiles(window, doc string, ranks ...rank) Series {
	return d.rules(window, "", "").series(doc, nil, ranks...)
}

// series are the quantiles of ranks. label is the label of the rules without a rank.
func (q quantileRules) series(doc string, label []Label, ranks ...rank) Series {
	name := q.recorded
	histogram, lowerEnd, upperEnd := name("histogram_quantile"), name("histogram_lower"), name("histogram_upper")
	result, hidden := name("quantile"), ""
	lower, upper, ordinary := result+"_lower", result+"_upper", name("window_quantile")
	rules := []Rule{{Name: q.native, Doc: doc, Expr: nativeRate(q.histogram, q.window)}}
	for _, r := range ranks {
		rules = append(rules, histogramQuantile(histogram, r, q.histogram, q.window))
	}
	unknown := withheld{histogram: q.histogram, native: q.native, ratio: q.unknown}
	if q.unknown != "" {
		unknown.wider, hidden = q.wider(histogram), name("withheld")
		known := "(\n  " + strings.ReplaceAll(observations(q.histogram, q.window, q.native), "\n", "\n  ") + "\n)"
		rules = append(rules, unknownRatio(q.unknown, q.window, known, `The share of the packets that arrived, or may have, whose delay is not known.`))
	}
	for _, r := range ranks {
		rules = append(rules, q.lowerEnd(lowerEnd, r), q.bucketEnd(upperEnd, r, q.upper, "1"))
	}
	rules = append(rules, Rule{Name: upper, Labels: label, Expr: promql(`
max_over_time($quantile[$window])
and
(
  count_over_time($quantile[$window])
  >= $scraped
)`, names{"quantile": q.quantile.Name + q.of, "window": q.window, "scraped": q.scraped(q.window)})})
	least := Rule{Name: lower, Labels: label, Expr: promql(`
min_over_time($quantile[$window])
or
(0 * $histogram + ignoring (quantile_rank) group_left () min_over_time($least[$window]))`,
		names{"quantile": q.quantile.Name + q.of, "window": q.window, "histogram": histogram + q.of, "least": q.least.Name})}
	value := q.likeliest()
	if q.unknown != "" {
		for _, r := range ranks {
			rules = append(rules, unknown.rule(hidden, r, q.window, upper))
		}
		least.Expr = promql(`
min_over_time($quantile[$window]) and $upper
or
min_over_time($quantile[$window]) unless ignoring (quantile_rank) $ratio > 0
or
($lowerEnd > 1e-9 and $hidden) > ignoring (quantile_rank) group_left () min_over_time($least[$window])
or
(0 * $histogram + ignoring (quantile_rank) group_left () min_over_time($least[$window])) unless ($hidden unless $lowerEnd)
or
$lowerEnd > 1e-9 and $hidden`, names{
			"quantile": q.quantile.Name + q.of, "window": q.window, "upper": upper + q.of, "ratio": q.unknown, "lowerEnd": lowerEnd + q.of,
			"hidden": hidden + q.of, "histogram": histogram + q.of, "least": q.least.Name,
		})
		value = "(\n  " + strings.ReplaceAll(value, "\n", "\n  ") + "\n)\nunless " + hidden + q.of
	}
	windows := make([]string, len(ranks))
	for i, r := range ranks {
		windows[i] = "quantile_over_time(" + r.ordinary + ", " + q.quantile.Name + r.selector() + "[" + q.window + "])"
	}
	rules = append(rules, least, Rule{Name: ordinary, Labels: label, Expr: strings.Join(windows, "\nor ")}, Rule{Name: result, Labels: label, Expr: value})
	return Series{Name: result, Rules: rules, Withheld: hidden}
}

// likeliest is the likeliest quantile of several windows, from the series of quantiles.
func (q quantileRules) likeliest() string {
	name := func(operation string) string { return q.recorded(operation) + q.of }
	return promql(`
($lower > $upperEnd)
or ($upper < ($lowerEnd > 1e-9))
or ($upperEnd < $ordinary)
or
(
  $lowerEnd > 1e-9 > $ordinary
  <= ignoring (quantile_rank) group_left () max_over_time($largest[$window])
)
or $ordinary
or ($lower > $histogram)
or
(
  $histogram
  - clamp_min($histogram
      - ignoring (quantile_rank) group_left () max_over_time($largest[$window]), 0)
)
or $histogram`, names{
		"lower": q.recorded("quantile") + "_lower" + q.of, "upper": q.recorded("quantile") + "_upper" + q.of, "lowerEnd": name("histogram_lower"), "upperEnd": name("histogram_upper"),
		"ordinary": name("window_quantile"), "histogram": name("histogram_quantile"), "largest": q.largest.Name, "window": q.window,
	})
}

// notP95 selects the ranks whose quantiles of 5 minutes no alert needs: these have a group of their own, which is evaluated less often.
const notP95 = "{" + metric.QuantileL + `!="0.95"}`

// The quantiles of delays: of 5 minutes, an hour and a day.
var (
	DelayQuantiles5m     = delays().rules("5m", p95.selector(), "").series(`One-way delay of packets with synchronized clocks.`, p95.label(), p95)
	delayOthers5m        = delays().rules("5m", notP95, "_30s").series(``, nil, p50, p99)
	DelayQuantiles1h     = delays().quantiles("1h", `The last hour, in 5 min steps: input of trends and baselines.`, p50, p95)
	DelayQuantiles1d     = delays().quantiles("1d", `A query of a year of these takes a second.`, p50, p95)
	RoundTripQuantiles5m = roundTrips().rules("5m", p95.selector(), "").series(`Round trip: free of clock error.`, p95.label(), p95)
	roundTripOthers5m    = roundTrips().rules("5m", notP95, "_30s").series(``, nil, p50, p99)
	RoundTripQuantiles1h = roundTrips().quantiles("1h", ``, p50, p95)
	// DelayVariationQuantiles are interpolated in the bucket.
	DelayVariationQuantiles = variation()
)

// What the quantiles of the delay variation are computed from.
var (
	delayVariationNative = Rule{
		Name: recorded(metric.DelayVariation, "native_rate5m"), Expr: nativeRate(metric.DelayVariation, "5m"),
		Doc: `PDV, RFC 5481 section 4.2: free of a constant clock offset. Interpolated in the bucket.`,
	}
	delayVariationKnown = Rule{Name: recorded(metric.DelayVariation, "known_rate5m"), Expr: variations("5m")}
	// DelayVariationUnknown is the share of the packets that arrived, or may have, whose delay variation is not known.
	DelayVariationUnknown = unknownRatio(recorded(metric.DelayVariation, "unknown_ratio5m"), "5m", delayVariationKnown.Name,
		`The share of the packets that arrived, or may have, whose delay variation is not known.`)
)

// variation are the quantiles of the delay variation.
func variation() Series {
	s := Series{Name: recorded(metric.DelayVariation, "quantile5m"), Withheld: recorded(metric.DelayVariation, "withheld5m")}
	unknown := withheld{
		metric.DelayVariation, delayVariationNative.Name, DelayVariationUnknown.Name,
		func(high, low string, _ rank) string { return high + " / " + low + " > 1.1" },
	}
	for _, r := range []rank{p50, p95, p99} {
		quantile := histogramQuantile(s.Name, r, metric.DelayVariation, "5m")
		quantile.Expr += "\nunless ignoring (quantile_rank) " + s.Withheld + r.selector()
		s.Rules = append(s.Rules, unknown.rule(s.Withheld, r, "5m", ""), quantile)
	}
	return s
}

// certainP95 is the p95 of the delay of 5 minutes or, where unknown delays could change it, its lower limit: more than a limit of
// alerts only if the p95 is.
var certainP95 = "(" + DelayQuantiles5m.Name + p95.selector() + " or " + DelayQuantiles5m.Name + "_lower" + p95.selector() + ")"

// quantiles5m is the group of the quantiles of 5 minutes that an alert needs. A group shall not take more than a tenth of its interval
// with 1,000 paths.
func quantiles5m() Group {
	return Group{
		Name: "oneway-delay", Interval: 15 * time.Second, Doc: `The p95, which OnewayDelayBlowUp needs, and which shall not wait.`,
		Rules: slices.Concat(DelayQuantiles5m.Rules, RoundTripQuantiles5m.Rules),
	}
}

// others5m is the group of the other quantiles of 5 minutes.
func others5m() Group {
	return Group{
		Name: "oneway-delay-30s", Interval: 30 * time.Second, Doc: `The other quantiles. The counts of this group are of the time of its evaluation.`,
		Rules: slices.Concat(delayOthers5m.Rules, roundTripOthers5m.Rules),
	}
}

// variations5m is the group of the quantiles of the delay variation.
func variations5m() Group {
	return Group{
		Name: "oneway-delay-variation", Interval: 30 * time.Second,
		Rules: slices.Concat([]Rule{delayVariationNative, delayVariationKnown, DelayVariationUnknown}, DelayVariationQuantiles.Rules),
	}
}
