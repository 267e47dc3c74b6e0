package rules

import (
	"time"

	"oneway.example/exporter/core/metric"
)

// The alerts of group oneway-clock.
var (
	ClockUnsynchronized = Rule{
		Name: "OnewayClockUnsynchronized",
		Expr: promql(`
$clockSynchronized == 0
unless ignoring (state) $clockState == 1`, names{
			"clockSynchronized": latest(metric.ClockSynchronized.Name),
			"clockState":        latest(metric.ClockState.Name + `{state=~"none|silent"}`),
		}),
		Alert: &Alert{
			Severity: Warning, Component: Clock, For: 5 * time.Minute,
			Summary: "The clock of {{ $labels.instance }} is not synchronized",
			Description: "Clock {{ $labels.clock }} of {{ $labels.instance }} has been unsynchronized for ${for}" +
				lookup(metric.ClockState.Name+sameClock+" == 1", " (state {{ .Labels.state }})") + ". Its one-way delays are counted in " + metric.DelayInvalid.Name + " and not reported, unless both ends run on one kernel; loss, round trips and variation continue.",
		},
	}
	ClockDataAbsent = Rule{
		Name: "OnewayClockDataAbsent",
		Expr: promql(`
$clockState == 1
or
group by (job, instance) ($probeUp) unless on (job, instance) $clockSynchronized`, names{
			"clockState":        latest(metric.ClockState.Name + `{state="silent"}`),
			"probeUp":           latest(metric.ProbeUp.Name),
			"clockSynchronized": latest(metric.ClockSynchronized.Name),
		}),
		Alert: &Alert{
			Severity: Warning, Component: Clock, For: 5 * time.Minute,
			Summary: "The state of the clock is unknown on {{ $labels.instance }}",
			Description: "The clock daemon of {{ $labels.instance }} has not replied to the agent for ${for}" +
				lookup("sum by (reason) (increase("+metric.ClockQueryFailures.Name+"{instance}[5m])) > 0", " ({{ .Labels.reason }})") + ". The clock may be right; one-way delays have no bound and are not reported.",
		},
	}
	ClockErrorTooLarge = Rule{
		Name: "OnewayClockErrorTooLarge",
		Doc: `Bound and median of the same window, or the last ones of 5 minutes: a window without a median does not
end the condition. A short path with a good clock is below the floor.`,
		Expr: promql(`
last_over_time($delayErrorBound[5m])
> ignoring (quantile_rank)
  (
    last_over_time($delayQuantile{quantile_rank="0.5"}[5m])
    * on (path) group_left () $clockErrorRatio
  )
> on (path) group_left () $clockErrorSeconds`, names{
			"delayErrorBound":   metric.DelayErrorBound.Name,
			"delayQuantile":     metric.DelayQuantile.Name,
			"clockErrorRatio":   ThresholdClockErrorRatio.ByPath.Name,
			"clockErrorSeconds": ThresholdClockErrorSeconds.ByPath.Name,
		}),
		Alert: &Alert{
			Severity: Warning, Component: Clock, For: 15 * time.Minute,
			Summary: "The {{ $labels.direction }} delay of {{ $labels.path }} is uncertain by {{ $value | humanizeDuration }}",
			Description: "The error bound of {{ $labels.path }}/{{ $labels.probe }} {{ $labels.direction }} is {{ $value | humanizeDuration }}, the median delay of the same window" +
				lookup(metric.DelayQuantile.Name+"{instance,path,probe,direction,quantile_rank='0.5'}", " {{ .Value | humanizeDuration }}") + ": both clocks together are too inaccurate for this path. Changes of the delay remain meaningful, its absolute value less so.",
		},
	}
	NegativeDelay = Rule{
		Name: "OnewayNegativeDelay",
		Expr: "increase(" + metric.DelayNegative.Name + "[15m]) > 0",
		Alert: &Alert{
			LooksBack: 15 * time.Minute,
			Severity:  Warning, Component: Clock,
			Summary:     "Packets of {{ $labels.path }} have negative delays",
			Description: `Packets of {{ $labels.path }}/{{ $labels.probe }} {{ $labels.direction }} had a negative delay in the last 15 minutes ({{ printf "%.0f" $value }} of them) although both clocks were reported as synchronized. One of the two, or its bound, is wrong; delays of this path are meaningless until that is corrected.`,
		},
	}
	DelayBoundAboveLimit = Rule{
		Name: "OnewayDelayBoundAboveLimit",
		Doc: `By default only of a bound above an hour, which is no information; else of one above max_bound,
which the configuration has for this path. Where no delay is reported there is no bound
either, and OnewayClockErrorTooLarge is silent.`,
		Expr: "increase(" + metric.DelayInvalid.Name + `{reason="bound_too_large"}[5m]) > 0`,
		Alert: &Alert{
			Severity: Warning, Component: Clock, For: 5 * time.Minute,
			Summary: "{{ $labels.direction }} delays of {{ $labels.path }} are withheld: their bound is above its limit",
			Description: "{{ $labels.path }}/{{ $labels.probe }} {{ $labels.direction }}: {{ $value | humanize }} delays of the last 5 minutes were counted and not reported, because their error bound is above max_bound, or above an hour" +
				lookup(metric.ClockErrorBound.Name+"{instance}", "; this end's clock {{ .Value | humanizeDuration }}") +
				lookup(metric.RemoteClockErrorBound.Name+sameProbe, ", the remote end's {{ .Value | humanizeDuration }}") + ". Loss, round trips and variation continue.",
		},
	}
	ClockStepped = Rule{
		Name: "OnewayClockStepped",
		Expr: "round(increase(" + metric.ClockSteps.Name + "[15m])) > 0",
		Alert: &Alert{
			LooksBack: 15 * time.Minute,
			Severity:  Warning, Component: Clock,
			Summary: "The clock of {{ $labels.instance }} was stepped",
			Description: "Clock {{ $labels.clock }} of {{ $labels.instance }} was stepped {{ if eq $value 1.0 }}once{{ else }}{{ $value }} times{{ end }} in the last 15 minutes" +
				lookup(metric.ClockState.Name+sameClock+" == 1", " (state now {{ .Labels.state }})") + ". No delay was reported until it had settled; the daemon had lost the clock, another program sets it, too, or the kernel inserted a leap second (1 s at midnight UTC).",
		},
	}
	ClockHoldover = Rule{
		Name: "OnewayClockHoldover",
		Expr: latest(metric.ClockState.Name+`{state="holdover"}`) + " == 1",
		Alert: &Alert{
			Severity: Warning, Component: Clock, For: 10 * time.Minute,
			Summary: "The clock of {{ $labels.instance }} has lost its source",
			Description: "Clock {{ $labels.clock }} of {{ $labels.instance }} has run without its source for more than ${for}" +
				lookup(metric.ClockErrorBound.Name+sameClock, "; its bound is {{ .Value | humanizeDuration }}") +
				lookup("3600 * deriv("+metric.ClockErrorBound.Name+sameClock+"[10m]) > 0", " and grows by {{ .Value | humanizeDuration }} an hour") + ". Its delays are valid within that bound.",
		},
	}
	ClockReferenceDegraded = Rule{
		Name: "OnewayClockReferenceDegraded",
		Doc: `Ends by itself after a day: by then it is the site's normal state. An unsynchronized clock
has its own alert.`,
		Expr: promql(`
max without (reference_id, stratum, leap_status) $now
and on (job, instance, clock) max_over_time($clockReferenceInfo{kind="pps"}[1d])
and on (job, instance, clock) $clockSynchronized == 1`, names{
			"now":                unlessUnscraped(metric.ClockReferenceInfo.Name + `{kind=~"nmea|ntp|local|other"}`),
			"clockReferenceInfo": metric.ClockReferenceInfo.Name,
			"clockSynchronized":  latest(metric.ClockSynchronized.Name),
		}),
		Alert: &Alert{
			Severity: Warning, Component: Clock, For: 2 * time.Minute,
			Summary: "The clock of {{ $labels.instance }} follows {{ $labels.kind }} and no longer a pulse",
			Description: "Clock {{ $labels.clock }} of {{ $labels.instance }} followed a pulse per second within the last day and follows {{ $labels.kind }} now" +
				lookup(metric.ClockReferenceInfo.Name+sameClock, " ({{ .Labels.reference_id }}, stratum {{ .Labels.stratum }})") +
				lookup(metric.ClockErrorBound.Name+sameClock, "; its bound is {{ .Value | humanizeDuration }}") + ". Delays are reported with the larger bound.",
		},
	}
	ClockDisagreement = Rule{
		Name: "OnewayClockDisagreement",
		Expr: promql(`
$disagreement > $disagreementBound
> on () group_left () max($clockDisagreementSeconds)`, names{
			"disagreement":             Disagreement.Name,
			"disagreementBound":        DisagreementBound.Name,
			"clockDisagreementSeconds": ThresholdClockDisagreementSeconds.Name,
		}),
		Alert: &Alert{
			Severity: Warning, Component: Clock, For: 2 * time.Minute,
			Summary: "The clock of {{ $labels.instance }} is {{ $value | humanizeDuration }} off by its pulses",
			Description: "By the pulses of {{ $labels.pps }}, clock {{ $labels.clock }} of {{ $labels.instance }} is {{ $value | humanizeDuration }} away from its offset by the daemon" +
				lookup(DisagreementBound.Name+"{instance,pps}", "; both bounds together allow {{ .Value | humanizeDuration }}") + ". One of the two is wrong by more than its bound: delays of this agent are meaningless until that is corrected.",
		},
	}
	LeapSecondPending = Rule{
		Name: "OnewayLeapSecondPending",
		Expr: "max without (reference_id, stratum, kind) " + unlessUnscraped(metric.ClockReferenceInfo.Name+`{leap_status=~"insert_second|delete_second"}`),
		Alert: &Alert{
			Severity: Info, Component: Clock,
			Summary:     "The clock of {{ $labels.instance }} expects a leap second",
			Description: `Clock {{ $labels.clock }} of {{ $labels.instance }} will {{ $labels.leap_status | reReplaceAll "_" " a " }} at the end of this UTC day{{ range query "count(` + metric.ClockReferenceInfo.Name + `{leap_status='normal'})" }}; {{ .Value }} other clocks here expect none: those smear it, or have no announcement{{ end }}. A clock that steps and one that smears differ by up to a second for up to a day.`,
		},
	}
	RemoteClockUnsynchronized = Rule{
		Name: "OnewayRemoteClockUnsynchronized",
		Doc: `Later than OnewayClockUnsynchronized at the remote end, if its agent is scraped as well.
Foreign reflectors may never report a synchronized clock: the alert covers ours, and
those that were synchronized within a day. With clock source none there is no alert.`,
		Expr: promql(`
$now == 0
and on (job, instance, path, probe)
(
  $pathInfo
  or
  max_over_time($remoteClockSynchronized[1d]) == 1
)
unless on (job, instance) $clockState == 1`, names{
			"now":                     latest(metric.RemoteClockSynchronized.Name),
			"remoteClockSynchronized": metric.RemoteClockSynchronized.Name,
			"pathInfo":                latest(metric.PathInfo.Name + `{reflector="oneway"}`),
			"clockState":              latest(metric.ClockState.Name + `{state="none"}`),
		}),
		Alert: &Alert{
			Severity: Warning, Component: Clock, For: 10 * time.Minute,
			Summary: "The remote end of {{ $labels.path }} reports an unsynchronized clock",
			Description: "The reflector of {{ $labels.path }}/{{ $labels.probe }} has sent S=0 in its Error Estimate for ${for}" +
				lookup(metric.PathInfo.Name+sameProbe, " (peer {{ .Labels.peer }})") + ". One-way delays of this path are counted in " + metric.DelayInvalid.Name + " and not reported, unless both ends run on one kernel; loss, round trips and variation continue.",
		},
	}
	PPSLost = Rule{
		Name: "OnewayPPSLost",
		Doc: `The age is that at the scrape, so that a slow scrape is no lost pulse; the number of
pulses decides where the agent's clock and Prometheus's are seconds apart. Its value
is 0 where there never was one.`,
		Expr: promql(`
(
  $age
  > on () group_left () max($ppsLostSeconds)
  or
  max_over_time($ppsPulses[1m]) == 0
  and $pulses
  and $before
  unless $ppsLast
)
unless $counted > 0`, names{
			"age":            ageAtScrape(metric.PPSLast.Name),
			"pulses":         unlessUnscraped(metric.PPSPulses.Name),
			"before":         "last_over_time((" + metric.PPSPulses.Name + " offset 30s)[30s:10s])",
			"counted":        atScrape(metric.PPSPulses.Name + " - " + metric.PPSPulses.Name + " offset 30s"),
			"ppsLast":        metric.PPSLast.Name,
			"ppsLostSeconds": ThresholdPPSLostSeconds.Name,
			"ppsPulses":      metric.PPSPulses.Name,
		}),
		Alert: &Alert{
			Severity: Warning, Component: Clock,
			Summary: "No pulse on {{ $labels.pps }} of {{ $labels.instance }}",
			Description: "{{ if eq $value 0.0 }}There was no pulse on {{ $labels.pps }} of {{ $labels.instance }} since the agent started{{ else }}The last pulse on {{ $labels.pps }} of {{ $labels.instance }} arrived {{ $value | humanizeDuration }} ago{{ end }}" +
				lookup(metric.GNSSFix.Name+"{instance}", "; the receiver {{ .Labels.receiver }} has {{ if lt .Value 2.0 }}no fix{{ else }}a fix{{ end }}") + ". The clock continues with its other sources, or in holdover.",
		},
	}
	GNSSNoFix = Rule{
		Name: "OnewayGNSSNoFix",
		Expr: unlessUnscraped(metric.GNSSFix.Name) + " < 2",
		Alert: &Alert{
			Severity: Warning, Component: Clock, For: 5 * time.Minute,
			Summary: "Receiver {{ $labels.receiver }} of {{ $labels.instance }} has no fix",
			Description: "Receiver {{ $labels.receiver }} of {{ $labels.instance }} has had no fix for ${for}" +
				lookup(metric.GNSSSatellitesUsed.Name+"{instance,receiver}", "; it uses {{ .Value }} satellites") +
				lookup(metric.GNSSSatellitesSeen.Name+"{instance,receiver}", " of {{ .Value }} in view") + ". Its time and its pulse follow its own crystal.",
		},
	}
	GNSSSilent = Rule{
		Name: "OnewayGNSSSilent",
		Expr: promql(`
$gnssConnected == 0
or
$gnssConnected unless on (job, instance, receiver) $gnssFix`, names{
			"gnssConnected": unlessUnscraped(metric.GNSSConnected.Name),
			"gnssFix":       unlessUnscraped(metric.GNSSFix.Name),
		}),
		Alert: &Alert{
			Severity: Warning, Component: Clock, For: 2 * time.Minute,
			Summary: "Receiver {{ $labels.receiver }} of {{ $labels.instance }} is silent",
			Description: "{{ if eq $value 0.0 }}gpsd of {{ $labels.instance }} does not reply, or has no device for {{ $labels.receiver }}{{ else }}gpsd of {{ $labels.instance }} replies, and its receiver {{ $labels.receiver }} sends nothing{{ end }}" +
				lookup("time() - "+metric.GNSSLastMessage.Name+"{instance,receiver}", "; its last message arrived {{ .Value | humanizeDuration }} ago") + ". A pulse may still come: see OnewayPPSLost.",
		},
	}
)

// clockAlerts is the group of these alerts.
func clockAlerts() Group {
	return Group{
		Name: "oneway-clock", Interval: 30 * time.Second,
		Rules: []Rule{
			ClockUnsynchronized, ClockDataAbsent, ClockErrorTooLarge, NegativeDelay, DelayBoundAboveLimit, ClockStepped,
			ClockHoldover, ClockReferenceDegraded, ClockDisagreement, LeapSecondPending, RemoteClockUnsynchronized, PPSLost,
			GNSSNoFix, GNSSSilent,
		},
	}
}
