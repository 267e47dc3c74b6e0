package rules

import (
	"slices"
	"strings"
	"time"

	"oneway.example/exporter/core/metric"
)

// rank is a quantile that is recorded.
type rank struct {
	q string
	// below is a little less than q, so that the rounding of rate() does not matter.
	below string
	// ordinary is the quantile of the windows' values that stands for an ordinary window.
	ordinary string
}

// The ranks. The head of oneway-recording.yml says why an ordinary window is not the median of all windows.
var (
	p50 = rank{"0.5", "0.4999999", "0.5"}
	p95 = rank{"0.95", "0.9499999", "0.6"}
	p99 = rank{"0.99", "0.9899999", "0.9"}
)

func (r rank) label() []Label { return []Label{{metric.QuantileL, r.q}} }

// distribution has the families of a delay whose quantiles are recorded.
type distribution struct {
	histogram, quantile, least, largest *metric.Desc
	// lower and upper follow a quantile of a native histogram with the lower and the upper limit of its bucket.
	lower, upper func(quantile string) string
	// scraped is the number of scraped windows, and how it matches the series of quantile: an operand of >=.
	scraped func(window string) string
}

func delays() distribution {
	return distribution{
		metric.Delay, metric.DelayQuantile, metric.DelayMin, metric.DelayMax,
		func(q string) string { return q + " - 0.1 * abs(" + q + ")" }, // a delay may be below 0, within its error bound
		func(q string) string { return q + " + 0.1 * abs(" + q + ")" },
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

// bucketEnd is the limit of the bucket that has the quantile: of a native histogram by end, of a classic one its own quantile 0
// or 1, as classic says.
func (d distribution) bucketEnd(name string, r rank, window string, end func(string) string, classic string) Rule {
	native := "histogram_quantile(" + r.q + ", rate(" + d.histogram.Name + "[" + window + "]))"
	return Rule{Name: name, Labels: r.label(), Expr: promql(`
$native > -Inf
or
histogram_quantile($classic, rate(${histogram}_bucket[$window])
  >= bool ignoring (le) group_left () ($below * rate(${histogram}_bucket{le="+Inf"}[$window]) > 0))`, names{
		"native": end(native), "classic": classic, "histogram": d.histogram.Name, "window": window, "below": r.below,
	})}
}

// quantiles are the quantiles of a delay over several windows of the agent, and what they are computed from. doc is the comment
// of the first rule.
func (d distribution) quantiles(window, doc string, ranks ...rank) Series {
	name := func(operation string) string { return recorded(d.histogram, operation) }
	histogram, lowerEnd, upperEnd := name("histogram_quantile"+window), name("histogram_lower"+window), name("histogram_upper"+window)
	result := name("quantile" + window)
	lower, upper, ordinary := result+"_lower", result+"_upper", name("window_quantile"+window)
	var rules []Rule
	for _, r := range ranks {
		rules = append(rules, histogramQuantile(histogram, r, d.histogram, window))
	}
	rules[0].Doc = doc
	for _, r := range ranks {
		rules = append(rules, d.bucketEnd(lowerEnd, r, window, d.lower, "1e-9"), d.bucketEnd(upperEnd, r, window, d.upper, "1"))
	}
	windows := make([]string, len(ranks))
	for i, r := range ranks {
		windows[i] = "quantile_over_time(" + r.ordinary + ", " + d.quantile.Name + `{quantile_rank="` + r.q + `"}[` + window + "])"
	}
	rules = append(rules,
		Rule{Name: lower, Expr: promql(`
min_over_time($quantile[$window])
or
(0 * $histogram + ignoring (quantile_rank) group_left () min_over_time($least[$window]))`,
			names{"quantile": d.quantile.Name, "window": window, "histogram": histogram, "least": d.least.Name})},
		Rule{Name: upper, Expr: promql(`
max_over_time($quantile[$window])
and
(
  count_over_time($quantile[$window])
  >= $scraped
)`, names{"quantile": d.quantile.Name, "window": window, "scraped": d.scraped(window)})},
		Rule{Name: ordinary, Expr: strings.Join(windows, "\nor ")},
		Rule{Name: result, Expr: promql(`
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
			"lower": lower, "upper": upper, "lowerEnd": lowerEnd, "upperEnd": upperEnd, "ordinary": ordinary,
			"histogram": histogram, "largest": d.largest.Name, "window": window,
		})})
	return Series{Name: result, Rules: rules}
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

func variation(doc string) Series {
	s := Series{Name: recorded(metric.DelayVariation, "quantile5m")}
	for _, r := range []rank{p50, p95, p99} {
		s.Rules = append(s.Rules, histogramQuantile(s.Name, r, metric.DelayVariation, "5m"))
	}
	s.Rules[0].Doc = doc
	return s
}

// quantiles5m is the group of the quantiles of 5 minutes.
func quantiles5m() Group {
	return Group{
		Name: "oneway-delay", Interval: 15 * time.Second, Doc: `What OnewayDelayBlowUp needs, which shall not wait.`,
		Rules: slices.Concat(DelayQuantiles5m.Rules, RoundTripQuantiles5m.Rules),
	}
}
