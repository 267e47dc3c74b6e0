package rules

import (
	"time"

	"oneway.example/exporter/core/metric"
)

// LateSeconds is the lateness in seconds above which a test packet counts as late. It is a bound of the classic buckets of
// metric.ProbeLateness.
const LateSeconds = 0.01

// DelaysCounted has a series of each probe that counts the delays that are invalid or of low confidence: profile slim counts neither. The
// counters begin with their first event.
func DelaysCounted() *metric.Desc { return metric.ProbeInterval }

// What the hosts of a path did: the peer, the schedule, and the two opinions about the clock.
var (
	PathHost = Rule{
		Name: "oneway:path_host:info",
		Doc: `The host at the other end of a path, by the address in use; without it while there is none. After a failed scrape
it is the host of the last 5 minutes, if there was only one. A target that is measured on demand (/probe) is no path: it
has probe_success.`,
		Expr: promql(`
(
  $host
  or on (job, instance, path, probe)
  group by (job, instance, path, probe) ($probeUp)
  or on (job, instance, path, probe)
  ($lately unless on (job, instance, path, probe) count by (job, instance, path, probe) ($lately) > 1)
  or on (job, instance, path, probe)
  group by (job, instance, path, probe) ($upLately)
)
unless on (job, instance) $onDemand`, names{
			"host":     hostOf(metric.PathInfo.Name),
			"probeUp":  metric.ProbeUp.Name,
			"lately":   hostOf(latest(metric.PathInfo.Name)),
			"upLately": latest(metric.ProbeUp.Name),
			"onDemand": latest(metric.OnDemandSuccess.Name),
		}),
	}
	LowConfidenceRatio = Rule{
		Name: "oneway:delay_low_confidence:ratio5m",
		Doc: `Share of the delays that are smaller than their own bound: on a short path with a good
clock that is all of them, and no fault. Absent where no delay was measured, and of
profile slim, which does not count them.`,
		Expr: promql(`
clamp_max((
  rate($delayLowConfidence[5m])
  or 0 * (
    $delays
  )
)
/ (
  (
    $delays
  )
  > 0
), 1)
and on (job, instance, path, probe) $counted`, names{
			"delayLowConfidence": metric.DelayLowConfidence.Name,
			"delays":             indented(observations(metric.Delay, "5m", nativeRate(metric.Delay, "5m"))),
			"counted":            latest(DelaysCounted().Name),
		}),
	}
	Disagreement = Rule{
		Name: "oneway:clock_disagreement_seconds",
		Doc: `The clock's offset by the pulses' own fit against that by the clock daemon, and
what both bounds allow. A pulse does not number its second: modulo 1 s.`,
		Expr: promql(`
abs(
  ($ppsFitOffset - on (job, instance) group_left (clock) $clockOffset)
  - round($ppsFitOffset - on (job, instance) group_left (clock) $clockOffset)
)`, names{
			"ppsFitOffset": unlessUnscraped(metric.PPSFitOffset.Name),
			"clockOffset":  unlessUnscraped(metric.ClockOffset.Name),
		}),
	}
	DisagreementBound = Rule{
		Name: "oneway:clock_disagreement_bound_seconds",
		Expr: unlessUnscraped(metric.PPSFitBound.Name) + " + on (job, instance) group_left (clock) " + unlessUnscraped(metric.ClockErrorBound.Name),
	}
	ScheduleSkippedRatio = Rule{
		Name: "oneway:schedule_skipped:ratio5m",
		Doc: `Share of due test packets that this host did not send, or passed to the
kernel more than ` + inMillis(LateSeconds) + ` late.`,
		Expr: promql(`
sum without (reason) (rate($probeSkipped[5m]))
/ (
  sum without (reason) (rate($probeSkipped[5m]))
  + sum without (direction) (rate($packetsSent{direction="forward"}[5m]))
  > 0
)`, names{
			"probeSkipped": metric.ProbeSkipped.Name,
			"packetsSent":  metric.PacketsSent.Name,
		}),
	}
	ScheduleLateRatio = Rule{
		Name: "oneway:schedule_late:ratio5m",
		Expr: promql(`
(histogram_fraction($late, +Inf, rate($probeLateness[5m])) > -Inf)
or
(
  1 - sum without (le) (rate(${probeLateness}_bucket{le="$late"}[5m]))
  / (rate(${probeLateness}_count[5m]) > 0)
)`, names{
			"probeLateness": metric.ProbeLateness.Name,
			"late":          decimal(LateSeconds),
		}),
	}
)

// hostOf is the label host of an expression of metric.PathInfo, by probe.
func hostOf(info string) string {
	return `max by (job, instance, path, probe, host) (label_replace(` + info + `, "host", "$1", "peer", "\\[?(.*?)\\]?(:[0-9]+)?"))`
}

// g107 selects R by G.107.
const g107 = `{model="g107"}`

// The best R of a call by direction.
var (
	VoiceRMost = Rule{
		Name: "oneway:voice_r_factor:most",
		Doc: `The best R of all codecs and buffers: if that is bad, every call is.
By G.107 only, as on the dashboard: the simplified model rates higher. R is uncertain by
the delay's bound, and by packets whose delay or outcome is not known: this is the best R
within it. Such packets lower R more than they raise it, so with them it is not R plus its
bound.`,
		Expr: promql(`
max without (codec, model, buffer) (
  $highest
  or
  $voiceR + $voiceRError
)`, names{
			"highest": unlessUnscraped(metric.VoiceRHighest.Name + g107), "voiceR": unlessUnscraped(metric.VoiceR.Name + g107),
			"voiceRError": unlessUnscraped(metric.VoiceRError.Name + g107),
		}),
	}
	VoiceRUntested = Rule{
		Name: "oneway:voice_r_factor:untested",
		Doc:  `The same while no load test affects the path.`,
		Expr: VoiceRMost.Name + " unless on (job, instance, path) " + LoadTestRecent.Name,
	}
)

// lastMinutes is the group of the other values of the last minutes.
func lastMinutes() Group {
	return Group{
		Name: "oneway-30s", Interval: 30 * time.Second,
		Rules: []Rule{
			LowConfidenceRatio, LossRatio5m, LossRatio1h, RoundTripLossRatio5m, RoundTripLossRatio1h,
			Disagreement, DisagreementBound, ScheduleSkippedRatio, ScheduleLateRatio, VoiceRMost, VoiceRUntested,
		},
	}
}
