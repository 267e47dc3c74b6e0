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
	// unknown is what unknown delays may change, by the window and the series of quantiles of the known ones; nil: every reply has a value.
	unknown func(window, quantiles string) withheld
	// scraped is the number of scraped windows, and how it matches the series of quantile: an operand of >=.
	scraped func(window string) string
}

func delays() distribution {
	return distribution{
		metric.Delay, metric.DelayQuantile, metric.DelayMin, metric.DelayMax,
		func(q string) string { return q + " - 0.1 * abs(" + q + ")" }, // a delay may be below 0, within its error bound
		func(q string) string { return q + " + 0.1 * abs(" + q + ")" },
		func(window, quantiles string) withheld {
			return withheld{
				metric.Delay, unknownRatio(metric.Delay, window, observations(metric.Delay, window), `The share of the packets that arrived, or may have, whose delay is not known.`),
				func(high, low string, r rank) string {
					return high + " - " + low + " > ignoring (quantile_rank) 0.1 * abs(" + quantiles + r.selector() + ")"
				},
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

// bucketEnd is the limit of the bucket with the quantile of the known values, which the series quantiles has: of a native histogram by
// end, of a classic one its own quantile 0 or 1, as classic says.
func (d distribution) bucketEnd(name string, r rank, window, quantiles string, end func(string) string, classic string) Rule {
	return Rule{Name: name, Labels: r.label(), Expr: promql(`
$native and histogram_count(rate($histogram[$window]))
or
histogram_quantile($classic, rate(${histogram}_bucket[$window])
  >= bool ignoring (le) group_left () ($below * rate(${histogram}_bucket{le="+Inf"}[$window]) > 0))`, names{
		"native":  end("sum without (quantile_rank) (" + quantiles + r.selector() + ")"),
		"classic": classic, "histogram": d.histogram.Name, "window": window, "below": r.leastShare(),
	})}
}

// lowerEnd is the lower bucketEnd. Where values are unknown it is a limit of the quantile of all, as if the unknown ones were the least.
func (d distribution) lowerEnd(name string, r rank, window, quantiles, ratio string) Rule {
	rule := d.bucketEnd(name, r, window, quantiles, d.lower, "1e-9")
	if ratio == "" {
		return rule
	}
	low, _ := ranksOf(r.share, lowestTold)
	rule.Expr = promql(`
$native and histogram_count(rate($histogram[$window])) unless $ratio > 0
or
0.9 * (histogram_quantile($low, rate($histogram[$window])) > 0) and $ratio > 0 <= $lowest
or
histogram_quantile(1e-9, rate(${histogram}_bucket[$window])
  >= bool ignoring (le) group_left () (rate(${histogram}_bucket{le="+Inf"}[$window]) * ignoring (le) (($below - $ratio) / (1 - $ratio)) > 0))`, names{
		"native": d.lower("sum without (quantile_rank) (" + quantiles + r.selector() + ")"), "histogram": d.histogram.Name, "window": window,
		"ratio": ratio, "low": low, "lowest": fmt.Sprint(lowestTold), "below": r.leastShare(),
	})
	return rule
}

// quantiles are the quantiles of a delay over several windows of the agent, and what they are computed from. doc is the comment
// of the first rule.
func (d distribution) quantiles(window, doc string, ranks ...rank) Series {
	name := func(operation string) string { return recorded(d.histogram, operation) }
	histogram, lowerEnd, upperEnd := name("histogram_quantile"+window), name("histogram_lower"+window), name("histogram_upper"+window)
	result, hidden := name("quantile"+window), ""
	lower, upper, ordinary := result+"_lower", result+"_upper", name("window_quantile"+window)
	var rules []Rule
	for _, r := range ranks {
		rules = append(rules, histogramQuantile(histogram, r, d.histogram, window))
	}
	rules[0].Doc = doc
	unknown, ratio := withheld{}, ""
	if d.unknown != nil {
		unknown, hidden = d.unknown(window, histogram), name("withheld"+window)
		ratio = unknown.ratio.Name
		rules = append(rules, unknown.ratio)
	}
	for _, r := range ranks {
		rules = append(rules, d.lowerEnd(lowerEnd, r, window, histogram, ratio), d.bucketEnd(upperEnd, r, window, histogram, d.upper, "1"))
	}
	rules = append(rules, Rule{Name: upper, Expr: promql(`
max_over_time($quantile[$window])
and
(
  count_over_time($quantile[$window])
  >= $scraped
)`, names{"quantile": d.quantile.Name, "window": window, "scraped": d.scraped(window)})})
	least := Rule{Name: lower, Expr: promql(`
min_over_time($quantile[$window])
or
(0 * $histogram + ignoring (quantile_rank) group_left () min_over_time($least[$window]))`,
		names{"quantile": d.quantile.Name, "window": window, "histogram": histogram, "least": d.least.Name})}
	value := d.likeliest(window)
	if d.unknown != nil {
		for _, r := range ranks {
			rules = append(rules, unknown.rule(hidden, r, window, upper))
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
			"quantile": d.quantile.Name, "window": window, "upper": upper, "ratio": ratio, "lowerEnd": lowerEnd, "hidden": hidden,
			"histogram": histogram, "least": d.least.Name,
		})
		value = "(\n  " + strings.ReplaceAll(value, "\n", "\n  ") + "\n)\nunless " + hidden
	}
	windows := make([]string, len(ranks))
	for i, r := range ranks {
		windows[i] = "quantile_over_time(" + r.ordinary + ", " + d.quantile.Name + r.selector() + "[" + window + "])"
	}
	rules = append(rules, least, Rule{Name: ordinary, Expr: strings.Join(windows, "\nor ")}, Rule{Name: result, Expr: value})
	return Series{Name: result, Rules: rules, Withheld: hidden}
}

// likeliest is the likeliest quantile of several windows, from the series of quantiles.
func (d distribution) likeliest(window string) string {
	name := func(operation string) string { return recorded(d.histogram, operation+window) }
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
		"lower": name("quantile") + "_lower", "upper": name("quantile") + "_upper", "lowerEnd": name("histogram_lower"), "upperEnd": name("histogram_upper"),
		"ordinary": name("window_quantile"), "histogram": name("histogram_quantile"), "largest": d.largest.Name, "window": window,
	})
}

// The quantiles of delays: of 5 minutes, an hour and a day.
var (
	DelayQuantiles5m     = delays().quantiles("5m", `One-way delay of packets with synchronized clocks.`, p50, p95, p99)
	DelayQuantiles1h     = delays().quantiles("1h", `The last hour, in 5 min steps: input of trends and baselines.`, p50, p95)
	DelayQuantiles1d     = delays().quantiles("1d", `A query of a year of these takes a second.`, p50, p95)
	RoundTripQuantiles5m = roundTrips().quantiles("5m", `Round trip: free of clock error.`, p50, p95, p99)
	RoundTripQuantiles1h = roundTrips().quantiles("1h", ``, p50, p95)
	// DelayVariationQuantiles are interpolated in the bucket.
	DelayVariationQuantiles = variation(`PDV, RFC 5481 section 4.2: free of a constant clock offset. Interpolated in the bucket.`)
)

// DelayVariationUnknown is the share of the packets that arrived, or may have, whose delay variation is not known.
var DelayVariationUnknown = unknownRatio(metric.DelayVariation, "5m", variations("5m"), `The share of the packets that arrived, or may have, whose delay variation is not known.`)

func variation(doc string) Series {
	s := Series{Name: recorded(metric.DelayVariation, "quantile5m"), Withheld: recorded(metric.DelayVariation, "withheld5m")}
	unknown := withheld{
		metric.DelayVariation, DelayVariationUnknown,
		func(high, low string, _ rank) string { return high + " / " + low + " > 1.1" },
	}
	for _, r := range []rank{p50, p95, p99} {
		known := histogramQuantile(s.Name, r, metric.DelayVariation, "5m")
		known.Expr += "\nunless ignoring (quantile_rank) " + s.Withheld + r.selector()
		if len(s.Rules) == 0 {
			known.Doc = doc
		}
		s.Rules = append(s.Rules, unknown.rule(s.Withheld, r, "5m", ""), known)
	}
	return s
}

// certainP95 is the p95 of the delay of 5 minutes or, where unknown delays could change it, its lower limit: more than a limit of
// alerts only if the p95 is.
var certainP95 = "(" + DelayQuantiles5m.Name + p95.selector() + " or " + DelayQuantiles5m.Name + "_lower" + p95.selector() + ")"

// quantiles5m is the group of the quantiles of 5 minutes.
func quantiles5m() Group {
	return Group{
		Name: "oneway-delay", Interval: 15 * time.Second, Doc: `What OnewayDelayBlowUp needs, which shall not wait.`,
		Rules: slices.Concat(DelayQuantiles5m.Rules, RoundTripQuantiles5m.Rules),
	}
}
