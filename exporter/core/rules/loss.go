package rules

import "oneway.example/exporter/core/metric"

// Loss ratios of packets and of round trips.
var (
	LossRatio5m = lossRatio("5m", `Lost over decided packets, RFC 7680 section 4.1; absent if none was decided. Profile slim does not
count what was received: of it, over the packets sent, lost ones a waiting time later.`)
	LossRatio1h          = lossRatio("1h", ``)
	LossRatio1d          = lossRatio("1d", ``)
	RoundTripLossRatio5m = roundTripLossRatio("5m", `The same of round trips, whichever direction lost them.`)
	RoundTripLossRatio1h = roundTripLossRatio("1h", ``)
	RoundTripLossRatio1d = roundTripLossRatio("1d", ``)
)

func lossRatio(window, doc string) Rule {
	return Rule{Name: recorded(metric.PacketsLost, "ratio"+window), Doc: doc, Expr: promql(`
rate($lost[$window])
/ (rate($received[$window]) + rate($lost[$window]) > 0)
or
clamp_max(rate($lost[$window]) / (rate($sent[$window]) > 0), 1)
unless ignoring (direction) count_over_time($interval[$window])`, names{
		"lost": metric.PacketsLost.Name, "received": metric.PacketsReceived.Name, "sent": metric.PacketsSent.Name,
		"interval": metric.ProbeInterval.Name, "window": window,
	})}
}

func roundTripLossRatio(window, doc string) Rule {
	return Rule{Name: recorded(metric.RoundTripLost, "ratio"+window), Doc: doc, Expr: promql(`
rate($lost[$window])
/ (rate($received[$window]) + rate($lost[$window]) > 0)
or
clamp_max(
  rate($lost[$window])
  / (sum without (direction) (rate($sent{direction="forward"}[$window])) > 0), 1)
unless count_over_time($interval[$window])`, names{
		"lost": metric.RoundTripLost.Name, "received": metric.RoundTripReceived.Name, "sent": metric.PacketsSent.Name,
		"interval": metric.ProbeInterval.Name, "window": window,
	})}
}
