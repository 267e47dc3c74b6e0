package rules

import (
	"fmt"
	"strings"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/sample"
)

// withheld has what unknown delays may change in the quantiles of a histogram: the delay of a packet that arrived is not known where its
// reply was lost, where a clock is not trusted, or while its outcome is open.
type withheld struct {
	// histogram has the known values.
	histogram *metric.Desc
	// native is the recorded rate of the values of a native histogram; ratio is the recorded share of the packets that may have arrived
	// whose value the histogram does not have, 0..1.
	native, ratio string
	// wider follows two quantiles, the greater one first, and has a series where they are further apart than a bucket.
	wider func(high, low string, of rank) string
}

// unknownRatio is withheld.ratio. known is the rate of known values; it stands three times in the expression, so that histograms in it
// shall be recorded series. Up to two packets are on their
// way, as in Packets.Loss.
func unknownRatio(name, window, known, doc string) Rule {
	p := inWindow(window)
	return Rule{Name: name, Doc: doc, Expr: promql(`
1 - $known
/ (
  (
    $arrived
  )
  > $known + 2 / $seconds
)
or
0 * $known`, names{"arrived": indented(p.MayHaveArrived()), "known": known, "seconds": fmt.Sprintf("%.0f", p.seconds)})}
}

// observations is the rate of the values of a histogram, classic or native: native is nativeRate, or the series that records it.
func observations(d *metric.Desc, window, native string) string {
	return promql(`
$native
or
sum without (le) (rate(${histogram}_bucket{le="+Inf"}[$window]))`, names{"native": native, "histogram": d.Name, "window": window})
}

// nativeRate is the rate of the values of a native histogram.
func nativeRate(d *metric.Desc, window string) string {
	return "histogram_count(rate(" + d.Name + "[" + window + "]))"
}

// variations is the rate of the packets with a delay variation: a clock that is not trusted does not change it. The histogram itself has
// them a window later.
func variations(window string) string {
	var none []string
	for _, r := range []sample.Reason{sample.NoStamp, sample.TransmitBeforeReceive, sample.ResidenceTooLong, sample.LocalStepped, sample.RemoteStepped} {
		none = append(none, r.String())
	}
	return promql(`
($delays) + $invalid
or
$invalid
or
$delays`, names{
		"delays":  observations(metric.Delay, window, nativeRate(metric.Delay, window)),
		"invalid": "sum without (reason) (rate(" + metric.DelayInvalid.Name + `{reason!~"` + strings.Join(none, "|") + `"}[` + window + "]))",
	})
}

// Shares of 1 - q: a native histogram has quantiles of constant ranks only. Of unknown delays up to a step the quantile is tested at the
// ranks between which it lies with as many; of more than the last step it is withheld.
var unknownSteps = [2]float64{0.05, 0.4}

// lowestTold is the largest unknown ratio up to which a native histogram has a lower limit of a withheld quantile: OnewayDelayBlowUp
// fires up to clockDoubt, and a twentieth is for packets on their way.
const lowestTold = 1.05 * clockDoubt

// ranksOf are the ranks among the known values between which the quantile of all values is if a share of all is unknown.
func ranksOf(q, unknown float64) (low, high string) {
	return fmt.Sprintf("%.6g", (q-unknown)/(1-unknown)), fmt.Sprintf("%.6g", q/(1-unknown))
}

// rule records the unknown ratio where the quantile of all packets may be in another bucket than the quantile of the known ones. Where
// each window has the quantile, which are the series of windows, the agent knows better.
func (w withheld) rule(name string, r rank, window, windows string) Rule {
	native := func(step float64) string {
		low, high := ranksOf(r.share, step*(1-r.share))
		quantile := func(rank string) string {
			return "histogram_quantile(" + rank + ", rate(" + w.histogram.Name + "[" + window + "]))"
		}
		return w.wider(quantile(high), quantile(low), r)
	}
	limit := func(step float64) string { return fmt.Sprintf("%.6g", step*(1-r.share)) }
	expr := promql(`
$ratio > 0
and
(
  $ratio > $last and $native
  or
  $nativeLast and $ratio > $first
  or
  $nativeFirst
  or
  sum without (le) (
    (
      rate(${histogram}_bucket[$window])
      / ignoring (le) group_left () (rate(${histogram}_bucket{le="+Inf"}[$window]) / ignoring (le) (1 - $ratio) > 0)
      < $above
    )
    >= ignoring (le) group_left () ($q - $ratio)
  )
  unless $native
)`, names{
		"ratio": w.ratio, "native": w.native, "histogram": w.histogram.Name, "window": window, "q": r.q, "above": r.mostShare(),
		"first": limit(unknownSteps[0]), "last": limit(unknownSteps[1]), "nativeFirst": native(unknownSteps[0]), "nativeLast": native(unknownSteps[1]),
	})
	if windows != "" {
		expr += "\nunless ignoring (quantile_rank) " + windows + r.selector()
	}
	return Rule{Name: name, Labels: r.label(), Expr: expr}
}
