package rules

import (
	"fmt"
	"time"

	"oneway.example/exporter/core/metric"
)

// clockDoubt is the share of the delays from which a clock that makes them invalid is in doubt, so that OnewayDelayBlowUp does not fire.
const clockDoubt = 1.0 / 3

// p95Delay is the certain p95 of 5 minutes by direction.
var p95Delay = "sum without (quantile_rank) " + certainP95

// The alerts of group oneway-path-delay.
var (
	DelayBlowUp = Rule{
		Name: "OnewayDelayBlowUp",
		Doc: `A path without a baseline, which needs a day of history, has an absolute limit: its value is the delay itself. A delay
that is long and steady, as of a satellite, is no blow-up. A clock is in doubt where it made a third of the delays invalid, which is
half as many as are valid.`,
		Expr: promql(`
(
  $delayExcess > on (path) group_left () $delayBlowUpSeconds
  and $delayExcess > max_over_time($delayErrorBound[5m])
  and ignoring (quantile_rank)
  (
    $certainP95
    > clamp_min($delayBaseline, 0) * on (path) group_left () $delayBlowUpRatio
  )
  or
  $p95
  and ($p95 - max_over_time($delayErrorBound[5m]) > on (path) group_left () $delaySeconds)
  unless ($p95 - min_over_time($delayMin[1h]) <= on (path) group_left () $delayBlowUpSeconds)
  unless ignoring (quantile_rank) $delayBaseline
)
unless on (job, instance) $clockSynchronized == 0
unless on (job, instance) increase($clockSteps[10m]) > 0
unless
(
  sum without (reason) (increase($delayInvalid{reason=~"remote_.*|local_.*"}[5m]))
  > $invalidByValid * (
    histogram_count(increase($delay[5m]))
    or
    increase(${delay}_count[5m])
    or
    0 * sum without (reason) (increase($delayInvalid[5m]))
  )
)`, names{
			"delayExcess":        DelayExcess.Name,
			"p95":                p95Delay,
			"delayMin":           metric.DelayMin.Name,
			"delaySeconds":       ThresholdDelaySeconds.ByPath.Name,
			"delayBlowUpSeconds": ThresholdDelayBlowUpSeconds.ByPath.Name,
			"delayErrorBound":    metric.DelayErrorBound.Name,
			"certainP95":         certainP95,
			"delayBaseline":      DelayBaseline.Name,
			"delayBlowUpRatio":   ThresholdDelayBlowUpRatio.ByPath.Name,
			"clockSynchronized":  latest(metric.ClockSynchronized.Name),
			"clockSteps":         metric.ClockSteps.Name,
			"delayInvalid":       metric.DelayInvalid.Name,
			"invalidByValid":     fmt.Sprint(clockDoubt / (1 - clockDoubt)),
			"delay":              metric.Delay.Name,
		}) + unlessLoadTest("OnewayDelayBlowUp", p95Delay),
		Alert: &Alert{
			OfSite:   true,
			Severity: Warning, Component: Path, Absolute: true, For: 15 * time.Second, KeepFiringFor: 5 * time.Minute,
			Summary: "The {{ $labels.direction }} delay of {{ $labels.path }} is {{ $value | humanizeDuration }}" +
				orElse(lookup(DelayBaseline.Name+sameDirection, " above its baseline"), ", above the limit of a path without a day of history") + lookup(DelayExcessCause.Name+sameDirection, `: probably {{ if eq .Labels.cause "route" }}the route{{ else }}a {{ .Labels.cause }}{{ end }}`),
			Description: "95 % of the {{ $labels.direction }} packets of {{ $labels.path }}/{{ $labels.probe }} took up to" +
				orElse(lookup(DelayQuantiles5m.Name+"{instance,path,probe,direction,quantile_rank='0.95'}", " {{ .Value | humanizeDuration }}"),
					lookup(DelayQuantiles5m.Name+"_lower{instance,path,probe,direction,quantile_rank='0.95'}", " {{ .Value | humanizeDuration }} or more, as the delays of some are not known,")) + " in the last 5 minutes; " +
				orElse(lookup(DelayBaseline.Name+sameDirection, fmt.Sprintf("the %d-day baseline is", BaselineDays)+" {{ .Value | humanizeDuration }}"), "a baseline needs a day of history, and the limit until then is"+
					lookup(ThresholdDelaySeconds.ByPath.Name+"{path}", " {{ .Value | humanizeDuration }}")) + "." +
				lookup(DelayExcessCause.Name+sameDirection, `{{ if eq .Labels.cause "clock" }} Probable cause: a clock; the round trip did not grow with it.{{ else if eq .Labels.cause "host" }} Probable cause: a host at an end and not the path`+
					lookup("increase("+metric.PacketsHostDropped.Name+sameProbe+"[5m]) > 0", `; {{ if eq .Labels.direction "forward" }}the remote end{{ else }}this host{{ end }} dropped {{ printf "%.0f" .Value }} of its packets`)+
					lookup("max by (path) (("+ScheduleLateRatio.Name+sameProbe+" > "+hostShare+") or "+ScheduleSkippedRatio.Name+sameProbe+" > "+hostShare+")", "; this host sent {{ .Value | humanizePercentage }} of them late or not at all")+`.{{ else if eq .Labels.cause "route" }} Probable cause: a change of route; the delay floor moved with it.{{ else if eq .Labels.cause "queue or route" }} Probable cause: a queue that did not empty in the last 30 s, or a change of route: the floor tells after 5 minutes.{{ else }} Probable cause: a queue; the delay floor did not move.{{ end }}`),
		},
	}
)

// delayAlerts is the group of these alerts.
func delayAlerts() Group {
	return Group{
		Name: "oneway-path-delay", Interval: 15 * time.Second,
		Doc: `Twice as often as the others: this alert is for people who wait for it. Its 5 min decide what
a blow-up is: a queue of up to 15 s in them does not move their p95, and one of more remains in
them for 5 min, so a longer "for" would delay the alert and prevent none.`,
		Rules: []Rule{
			DelayBlowUp,
		},
	}
}
