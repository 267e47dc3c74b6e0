package rules

import (
	"slices"
	"time"

	"oneway.example/exporter/core/metric"
)

// delayExcessCause is a constant because the rules of the series use it themselves.
const delayExcessCause = "oneway:delay_excess:cause"

// The excess of a delay over its baseline, and its probable cause.
var (
	DelayExcess = Rule{
		Name: "oneway:delay_excess_seconds",
		Doc: `The excess of the delay over its baseline, and the probable cause. Where the p95 is withheld it is the excess of its
lower limit.`,
		Expr: promql(`
sum without (quantile_rank) (
  $certainP95 - $delayBaseline
)`, names{
			"certainP95":    certainP95,
			"delayBaseline": DelayBaseline.Name,
		}),
	}
	RoundTripExcess = Rule{
		Name: "oneway:round_trip_time_excess_seconds",
		Expr: promql(`
sum without (quantile_rank) (
  $roundTripQuantiles5m{quantile_rank="0.95"} - $roundTripBaseline
)`, names{
			"roundTripQuantiles5m": RoundTripQuantiles5m.Name,
			"roundTripBaseline":    RoundTripBaseline.Name,
		}),
	}
	DelayFloorExcess = Rule{
		Name: "oneway:delay_min_excess_seconds",
		Expr: "min_over_time(" + metric.DelayMin.Name + "[5m]) - " + DelayFloorBaseline.Name,
	}
	DelayFloorExcess30s = Rule{
		Name: "oneway:delay_min_excess_seconds:last30s",
		Doc:  `Of the last 30 s, or of the last window where windows are longer: it grows long before the floor of 5 min can.`,
		Expr: promql(`
(min_over_time($delayMin[30s]) or $last)
- $delayFloorBaseline`, names{
			"delayMin": metric.DelayMin.Name, "last": unlessUnscraped(metric.DelayMin.Name), "delayFloorBaseline": DelayFloorBaseline.Name,
		}),
	}
	// DelayExcessCause has the label cause.
	DelayExcessCause = Series{Name: delayExcessCause, Rules: causes()}
	DelayFloorShift  = Rule{
		Name: "oneway:delay_min_seconds:step15m",
		Doc:  `The floor of the last 15 min against that of the hour before it.`,
		Expr: promql(`
min_over_time($delayMin[15m])
- min_over_time($delayMin[1h] offset 15m)`, names{
			"delayMin": metric.DelayMin.Name,
		}),
	}
	RoundTripFloorShift = Rule{
		Name: "oneway:round_trip_time_min_seconds:step15m",
		Expr: promql(`
min_over_time($roundTripTimeMin[15m])
- min_over_time($roundTripTimeMin[1h] offset 15m)`, names{
			"roundTripTimeMin": metric.RoundTripTimeMin.Name,
		}),
	}
)

// excesses is the group of these rules.
func excesses() Group {
	return Group{
		Name: "oneway-excess", Interval: 15 * time.Second,
		Rules: slices.Concat([]Rule{DelayExcess, RoundTripExcess, DelayFloorExcess, DelayFloorExcess30s}, DelayExcessCause.Rules),
	}
}

// floorSteps is the group of the steps of the floor, which take minutes.
func floorSteps() Group {
	return Group{Name: "oneway-floor", Interval: 30 * time.Second, Rules: []Rule{DelayFloorShift, RoundTripFloorShift}}
}

// otherDirection is a series by direction, for each direction the value of the other one.
func otherDirection(series string) string {
	return promql(`(
    label_replace($series{direction="reverse"}, "direction", "forward", "", "")
    or
    label_replace($series{direction="forward"}, "direction", "reverse", "", "")
  )`, names{"series": series})
}

// userTimestamps are the events with more than a share of their timestamps from user space, among events that a regular expression
// matches. window is the range of rate().
func userTimestamps(events, share, window string) string {
	return promql(`(
    sum without (origin) (rate($timestamps{event=~"$events",origin="user"}$window))
    > $share * sum without (origin) (rate($timestamps{event=~"$events"}$window))
  )`, names{"timestamps": metric.Timestamps.Name, "events": events, "share": share, "window": window})
}

// causes are the rules of the probable cause: each applies where the ones before it do not.
func causes() []Rule {
	return []Rule{
		{
			Name: delayExcessCause,
			Doc: `cause="clock": where the floors of both directions are known, the own floor grew and the other one
  shrank, each by more than half of it and by about as much, which only clocks cause, whatever queues add; where one of
  them is not known, the other one moved so and the round trip grew by less than half of it; where none is, that alone.
cause="host": a host at either end dropped packets of this direction, this one did not keep the
  schedule, or kernel timestamps of this direction gave way to those of user space, which they had not before. Of
  less than 5 % of the packets neither lateness nor timestamps move a p95; fewer drops than 1 % are no stall. A late
  packet with a kernel timestamp has the time of its sending: of the forward direction lateness counts with user timestamps only.
cause="route": the floor grew by more than half of it: even the fastest
  packet is slow (or the queue never empties).
cause="queue or route": the floor of 30 s grew so, and that of 5 min cannot yet.
cause="queue": the floor did not move and packets wait.
No cause where round trip and floor are not known, as of profile slim.`,
			Expr: promql(`
$delayExcess
> on (path) group_left () $delayBlowUpSeconds
unless $delayExcess >= 2 * $delayFloorExcess30s
unless $delayExcess >= -2 * $otherFloorExcess
and
(
  -1 * $otherFloorExcess > 0.75 * $delayFloorExcess
  or
  $delayExcess > ignoring (direction) group_left () (2 * clamp_min($roundTripExcess, 0))
  unless ($delayFloorExcess and $otherFloorExcess)
)`, names{
				"delayExcess":         DelayExcess.Name,
				"roundTripExcess":     RoundTripExcess.Name,
				"delayBlowUpSeconds":  ThresholdDelayBlowUpSeconds.ByPath.Name,
				"delayFloorExcess":    DelayFloorExcess.Name,
				"delayFloorExcess30s": DelayFloorExcess30s.Name,
				"otherFloorExcess":    otherDirection(DelayFloorExcess.Name),
			}),
			Labels: []Label{{"cause", "clock"}},
		},
		{
			Name: delayExcessCause,
			Expr: promql(`
$delayExcess
> on (path) group_left () $delayBlowUpSeconds
and
(
  (
    increase($packetsHostDropped[5m]) > 0.01 * increase($packetsSent[5m])
    unless
    increase($packetsHostDropped[1h] offset 10m) > 0.01 * increase($packetsSent[1h] offset 10m)
  )
  or
  (
    $delayExcess{direction="reverse"}
    or
    $delayExcess{direction="forward"} and on (job, instance, path, probe) $userAtSending
  )
  and on (job, instance, path, probe)
  (
    ($scheduleLateRatio > $hostShare unless avg_over_time($scheduleLateRatio[1h] offset 10m) > $hostShare)
    or
    ($scheduleSkippedRatio > $hostShare unless avg_over_time($scheduleSkippedRatio[1h] offset 10m) > $hostShare)
  )
  or
  $delayExcess{direction="forward"} and on (job, instance, path, probe) ($userForward unless $userForwardBefore)
  or
  $delayExcess{direction="reverse"} and on (job, instance, path, probe) ($userReverse unless $userReverseBefore)
)
unless ignoring (cause) $delayExcessCause{cause="clock"}`, names{
				"delayExcess":          DelayExcess.Name,
				"delayBlowUpSeconds":   ThresholdDelayBlowUpSeconds.ByPath.Name,
				"packetsHostDropped":   metric.PacketsHostDropped.Name,
				"packetsSent":          metric.PacketsSent.Name,
				"scheduleLateRatio":    ScheduleLateRatio.Name,
				"scheduleSkippedRatio": ScheduleSkippedRatio.Name,
				"hostShare":            hostShare,
				"userAtSending":        userTimestamps("t1", hostShare, "[5m]"),
				"userForward":          userTimestamps("t1|t2", hostShare, "[5m]"),
				"userForwardBefore":    userTimestamps("t1|t2", "0.01", "[1h] offset 10m"),
				"userReverse":          userTimestamps("t3|t4", hostShare, "[5m]"),
				"userReverseBefore":    userTimestamps("t3|t4", "0.01", "[1h] offset 10m"),
				"delayExcessCause":     delayExcessCause,
			}),
			Labels: []Label{{"cause", "host"}},
		},
		{
			Name: delayExcessCause,
			Expr: promql(`
($delayExcess < 2 * $delayFloorExcess)
> on (path) group_left () $delayBlowUpSeconds
unless ignoring (cause) $delayExcessCause{cause=~"clock|host"}`, names{
				"delayExcess":        DelayExcess.Name,
				"delayFloorExcess":   DelayFloorExcess.Name,
				"delayBlowUpSeconds": ThresholdDelayBlowUpSeconds.ByPath.Name,
				"delayExcessCause":   delayExcessCause,
			}),
			Labels: []Label{{"cause", "route"}},
		},
		{
			Name: delayExcessCause,
			Expr: promql(`
($delayExcess < 2 * $delayFloorExcess30s)
> on (path) group_left () $delayBlowUpSeconds
unless ignoring (cause) $delayExcessCause{cause=~"clock|host|route"}`, names{
				"delayExcess":         DelayExcess.Name,
				"delayFloorExcess30s": DelayFloorExcess30s.Name,
				"delayBlowUpSeconds":  ThresholdDelayBlowUpSeconds.ByPath.Name,
				"delayExcessCause":    delayExcessCause,
			}),
			Labels: []Label{{"cause", "queue or route"}},
		},
		{
			Name: delayExcessCause,
			Expr: promql(`
$delayExcess
> on (path) group_left () $delayBlowUpSeconds
unless ignoring (cause) $delayExcessCause{cause=~"clock|host|route|queue or route"}
and ignoring (direction) $probeInterval`, names{
				"delayExcess":        DelayExcess.Name,
				"delayBlowUpSeconds": ThresholdDelayBlowUpSeconds.ByPath.Name,
				"delayExcessCause":   delayExcessCause,
				"probeInterval":      latest(metric.ProbeInterval.Name),
			}),
			Labels: []Label{{"cause", "queue"}},
		},
	}
}
