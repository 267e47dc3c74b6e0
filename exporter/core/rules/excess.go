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
		Doc:  `The excess of the delay over its baseline, and the probable cause.`,
		Expr: promql(`
sum without (quantile_rank) (
  $delayQuantiles5m{quantile_rank="0.95"} - $delayBaseline
)`, names{
			"delayQuantiles5m": DelayQuantiles5m.Name,
			"delayBaseline":    DelayBaseline.Name,
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
		Rules: slices.Concat([]Rule{DelayExcess, RoundTripExcess, DelayFloorExcess}, DelayExcessCause.Rules, []Rule{DelayFloorShift, RoundTripFloorShift}),
	}
}

// causes are the rules of the probable cause: each applies where the ones before it do not.
func causes() []Rule {
	return []Rule{
		{
			Name: delayExcessCause,
			Doc: `cause="clock": the round trip grew by less than half of it, and the floor of the other direction, if it is
  known, shrank by more than half of it, which only clocks cause.
cause="host": a host at either end dropped packets of this direction, this one did not keep the
  schedule, or kernel timestamps gave way to those of user space, which they had not before. Of
  less than 5 % of the packets neither lateness nor timestamps move a p95; fewer drops than 1 % are no stall.
cause="route": the floor grew by more than half of it: even the fastest
  packet is slow (or the queue never empties).
cause="queue or route": the floor of 30 s grew so, and that of 5 min cannot yet.
cause="queue": the floor did not move and packets wait.
No cause where round trip and floor are not known, as of profile slim.`,
			Expr: promql(`
$delayExcess
> ignoring (direction) group_left () (2 * clamp_min($roundTripExcess, 0))
> on (path) group_left () $delayBlowUpSeconds
unless
(
  $delayExcess
  > -2 * (
    label_replace($delayFloorExcess{direction="reverse"}, "direction", "forward", "", "")
    or
    label_replace($delayFloorExcess{direction="forward"}, "direction", "reverse", "", "")
  )
)`, names{
				"delayExcess":        DelayExcess.Name,
				"roundTripExcess":    RoundTripExcess.Name,
				"delayBlowUpSeconds": ThresholdDelayBlowUpSeconds.ByPath.Name,
				"delayFloorExcess":   DelayFloorExcess.Name,
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
  $delayExcess and on (job, instance, path, probe)
  (
    ($scheduleLateRatio > 0.05 unless avg_over_time($scheduleLateRatio[1h] offset 10m) > 0.05)
    or
    ($scheduleSkippedRatio > 0.05 unless avg_over_time($scheduleSkippedRatio[1h] offset 10m) > 0.05)
    or
    (
      sum without (event, origin) (rate($timestamps{origin="user"}[5m]))
      > 0.05 * sum without (event, origin) (rate($timestamps[5m]))
      unless sum without (event, origin) (rate($timestamps{origin="user"}[1h] offset 10m))
      > 0.01 * sum without (event, origin) (rate($timestamps[1h] offset 10m))
    )
  )
)
unless ignoring (cause) $delayExcessCause{cause="clock"}`, names{
				"delayExcess":          DelayExcess.Name,
				"delayBlowUpSeconds":   ThresholdDelayBlowUpSeconds.ByPath.Name,
				"packetsHostDropped":   metric.PacketsHostDropped.Name,
				"packetsSent":          metric.PacketsSent.Name,
				"scheduleLateRatio":    ScheduleLateRatio.Name,
				"scheduleSkippedRatio": ScheduleSkippedRatio.Name,
				"timestamps":           metric.Timestamps.Name,
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
($delayExcess < 2 * (min_over_time($delayMin[30s]) - $delayFloorBaseline))
> on (path) group_left () $delayBlowUpSeconds
unless ignoring (cause) $delayExcessCause{cause=~"clock|host|route"}`, names{
				"delayExcess":        DelayExcess.Name,
				"delayMin":           metric.DelayMin.Name,
				"delayFloorBaseline": DelayFloorBaseline.Name,
				"delayBlowUpSeconds": ThresholdDelayBlowUpSeconds.ByPath.Name,
				"delayExcessCause":   delayExcessCause,
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
				"probeInterval":      metric.ProbeInterval.Name,
			}),
			Labels: []Label{{"cause", "queue"}},
		},
	}
}
