package rules

import (
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"oneway.example/exporter/core/metric"
)

// Loss ratios of packets and of round trips.
var (
	LossRatio5m = lossRatio("5m", `Lost over decided packets, RFC 7680 section 4.1; absent if none was decided, or
more than 2 % of the packets sent have no outcome, or are losses of an outage
before, whose directions are told at its end. Profile slim does not count what was received: these are the
packets sent without the lost round trips and, forward, with those that were lost in reverse, while a reply came.`)
	LossRatio1h          = lossRatio("1h", ``)
	LossRatio1d          = lossRatio("1d", ``)
	RoundTripLossRatio5m = roundTripLossRatio("5m", `The same of round trips, whichever direction lost them.`)
	RoundTripLossRatio1h = roundTripLossRatio("1h", ``)
	RoundTripLossRatio1d = roundTripLossRatio("1d", ``)
)

func lossRatio(window, doc string) Rule {
	return Rule{Name: recorded(metric.PacketsLost, "ratio"+window), Doc: doc, Expr: inWindow(window).Loss()}
}

func roundTripLossRatio(window, doc string) Rule {
	return Rule{Name: recorded(metric.RoundTripLost, "ratio"+window), Doc: doc, Expr: inWindow(window).RoundTripLoss()}
}

// Packets are the counts of packets of a time, by which rules, dashboards and reports know what was lost. Rules and dashboards have no
// ratio where too many packets stay undecided; a report has its lowest and its highest value.
type Packets struct {
	// Series selects the series of a family, with further matchers and the time as its range.
	Series func(d *metric.Desc, matchers ...string) string
	// Sum adds the increases of all series by direction; else each series has its rate.
	Sum bool
	// seconds is the time of rates.
	seconds float64
	// changes and gauges are the series of what change and gauge return; nil: they follow from Series.
	changes func(d *metric.Desc, matchers ...string) string
	gauges  func(d *metric.Desc) string
}

// knownShare is the share of the packets sent from which the loss of a direction is known: of a path that does not reply, and of packets
// before a restart of the reflector, no direction is known.
const knownShare = 0.98

// unextrapolated is the time by which a rate of losses may be short: rate() extrapolates a counter to the begin of its window, by up to
// 1.1 scrape intervals of 10 s, but not below 0, so that the first losses of a path are not extrapolated, and the packets sent are.
const unextrapolated = 15 * time.Second

// inWindow are the rates of each series in a window.
func inWindow(window string) Packets {
	d, err := model.ParseDuration(window)
	if err != nil {
		panic(err) // a constant of this file
	}
	return Packets{seconds: time.Duration(d).Seconds(), Series: func(d *metric.Desc, matchers ...string) string {
		if len(matchers) > 0 {
			return d.Name + "{" + matchers[0] + "}[" + window + "]"
		}
		return d.Name + "[" + window + "]"
	}}
}

// change is how much a counter changed.
func (p Packets) change(d *metric.Desc, matchers ...string) string {
	switch {
	case p.changes != nil:
		return p.changes(d, matchers...)
	case p.Sum:
		return "sum by (direction) (increase(" + p.Series(d, matchers...) + "))"
	}
	return "rate(" + p.Series(d, matchers...) + ")"
}

// gauge is the largest value of a gauge, where it has one.
func (p Packets) gauge(d *metric.Desc) string {
	switch {
	case p.gauges != nil:
		return p.gauges(d)
	case p.Sum:
		return "max(max_over_time(" + p.Series(d) + "))"
	}
	return "max_over_time(" + p.Series(d) + ")"
}

// Loss is the ratio of lost to decided packets by direction, 0..1; absent if none was decided, or if more than 2 % of the packets sent,
// and more than two, have no outcome in a direction: they may all be lost. It is also absent if as many more were lost in the directions
// than round trips: after an outage the directions of packets that were lost during it are told.
func (p Packets) Loss() string {
	all := "sum without (direction) (" + p.change(metric.PacketsLost) + ")"
	if !p.Sum {
		all += fmt.Sprintf(" * %.5g", 1+unextrapolated.Seconds()/p.seconds)
	}
	return promql(`
$ratio
unless ignoring (direction)
(
  $all
  + (
    sum without (direction) ($received)
    or
    $answered
  )
  + (sum without (direction) ($dropped) or sum without (direction) ($sent) * 0)
  < sum without (direction) ($sent) * $share - $packets
)
$told`, names{
		"told":  p.unlessToldLater(),
		"ratio": ratioOfDecided(p.change(metric.PacketsLost), p.Received()), "all": all, "received": p.change(metric.PacketsReceived, reverse),
		"answered": indented(p.slimAnswered()), "dropped": p.change(metric.PacketsHostDropped), "sent": p.change(metric.PacketsSent, forward),
		"share": fmt.Sprint(knownShare), "packets": p.tolerance(),
	})
}

// tolerance is the number of packets that change no loss.
func (p Packets) tolerance() string {
	if p.Sum {
		return "2"
	}
	return fmt.Sprintf("2 / %.0f", p.seconds)
}

// LeastLoss is the least loss by direction, if no packet without an outcome was lost, such as those before a restart of the reflector.
func (p Packets) LeastLoss() string {
	return promql(`
$lost / ignoring (direction) group_left () sum without (direction) ($sent)
$told`, names{
		"lost": p.change(metric.PacketsLost), "sent": p.change(metric.PacketsSent, forward), "told": p.unlessToldLater(),
	})
}

// unlessToldLater ends an expression of losses by direction: the directions of an outage before are told at its end.
func (p Packets) unlessToldLater() string {
	return promql(`
unless ignoring (direction)
(
  sum without (direction) ($lost)
  > $roundTrips + sum without (direction) ($sent) * $unknown + $packets
)`, names{
		"lost": p.change(metric.PacketsLost), "sent": p.change(metric.PacketsSent, forward), "roundTrips": p.change(metric.RoundTripLost),
		"unknown": fmt.Sprintf("%.2g", 1-knownShare), "packets": p.tolerance(),
	})
}

// RoundTripLoss is the ratio of lost to decided round trips, 0..1; absent if none was decided.
func (p Packets) RoundTripLoss() string {
	return ratioOfDecided(p.change(metric.RoundTripLost), p.RoundTripsReceived())
}

func ratioOfDecided(lost, received string) string {
	return promql(`
$lost
/ (
  $lost
  + (
    $received
  )
  > 0
)`, names{"lost": lost, "received": indented(received)})
}

// Received is how many packets were received, by direction. Of a path of profile slim it needs a time with a reply: packets without an
// outcome are not distinguished from received ones by less than the packets that wait for their replies.
func (p Packets) Received() string {
	return promql(`
$received
or
(
  $lostForward * 0 + ignoring (direction) group_left () $lostReverse
  or
  $lost * 0
)
+ ignoring (direction) group_left () (
  (
    $answered
  )
  and
  $up > 0
)`, names{
		"received": p.change(metric.PacketsReceived), "lost": p.change(metric.PacketsLost), "answered": indented(p.slimAnswered()), "up": p.gauge(metric.ProbeUp),
		"lostForward": p.change(metric.PacketsLost, forward), "lostReverse": p.change(metric.PacketsLost, reverse),
	})
}

// RoundTripsReceived is how many packets had a reply.
func (p Packets) RoundTripsReceived() string {
	return promql(`
$received
or
$answered`, names{"received": p.change(metric.RoundTripReceived), "answered": p.slimAnswered()})
}

// Outcomes is how many packets were received, were lost, or stay undecided, by direction: a report adds them over days, and its loss is
// a share of them. It has a value where losses have a direction.
func (p Packets) Outcomes() string {
	return promql(`
$lost
+ ($undecided or 0 * $lost)
+ (
  $received
  or
  0 * $lost
)`, names{"lost": p.change(metric.PacketsLost), "undecided": p.change(metric.PacketsUndecided), "received": strings.ReplaceAll(p.Received(), "\n", "\n  ")})
}

// MayHaveArrived is how many packets arrived, or may have, by direction. Forward these are all that are not known to be lost: a packet
// whose loss has no direction may have arrived. In reverse this host knows it. Those without a known
// delay may have any delay.
func (p Packets) MayHaveArrived() string {
	return promql(`
$sent - ($lost or 0 * $sent) - ($dropped or 0 * $sent)
or
$received`, names{
		"sent": p.change(metric.PacketsSent, forward), "lost": p.change(metric.PacketsLost, forward), "dropped": p.change(metric.PacketsHostDropped, forward),
		"received": p.Received(),
	})
}

// RoundTrips is how many packets had a reply or were lost on their way there or back.
func (p Packets) RoundTrips() string {
	return promql(`
$lost
+ (
  $received
  or
  0 * $lost
)`, names{"lost": p.change(metric.RoundTripLost), "received": strings.ReplaceAll(p.RoundTripsReceived(), "\n", "\n  ")})
}

// slimAnswered is the number of packets with a reply of paths of profile slim: of those sent, the ones that are no lost round trips.
func (p Packets) slimAnswered() string {
	return promql(`
clamp_min(sum without (direction) ($sent) - $lost, 0)
unless
$interval`, names{"sent": p.change(metric.PacketsSent, forward), "lost": p.change(metric.RoundTripLost), "interval": p.gauge(metric.ProbeInterval)})
}

// indented is an expression of several lines as an operand in two pairs of parentheses.
func indented(expr string) string { return strings.ReplaceAll(expr, "\n", "\n    ") }

// Matchers of a direction.
const (
	forward = metric.Direction + `="forward"`
	reverse = metric.Direction + `="reverse"`
)
