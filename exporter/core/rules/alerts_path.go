package rules

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"oneway.example/exporter/core/errtext"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/pathstate"
)

// The alerts of group oneway-path.
var (
	ProbeFailing = Rule{
		Name: "OnewayProbeFailing",
		Doc: `The first alert of a dead peer, and the only page. Dead: no reply for 90 s, and 30 s more; or
it replied during too little of 15 min, and 3 min without a gap end that. Alerts that follow from it exclude a dead peer
themselves: they cannot come first.`,
		Expr: promql(`
avg_over_time($probeUp[15m])
* on (job, instance, path, probe) group_left (host) $pathHost
and on (job, instance, path, probe)
(
  max_over_time($probeUp[90s]) == 0 and last_over_time($probeUp[1m] offset 90s)
  or
  (
    avg_over_time($probeUp[15m]) < on (path) group_left () $probeUpRatio
    and last_over_time($probeUp[1m] offset 5m)
    unless min_over_time($probeUp[3m]) == 1
  )
)`, names{
			"probeUp":      metric.ProbeUp.Name,
			"pathHost":     PathHost.Name,
			"probeUpRatio": ThresholdProbeUpRatio.ByPath.Name,
		}),
		Alert: &Alert{
			OfSite:   true,
			Severity: Critical, Component: Path, For: 30 * time.Second,
			Summary: "The peer of {{ $labels.path }} does not reply",
			Description: "The peer of {{ $labels.path }}/{{ $labels.probe }} replied during {{ $value | humanizePercentage }} of the last 15 minutes" +
				lookup("time() - "+metric.ProbeLastSuccess.Name+sameProbe, "; its last reply was {{ .Value | humanizeDuration }} ago") +
				lookup(stillGrows(metric.ResolveFailures)+" > 0", "; its name did not resolve {{ .Value | humanize }} times") +
				lookup(metric.ResolveFailures.Name+sameProbe+" unless on (path, probe) "+metric.PathInfo.Name+sameProbe, "; this host has no address to send to or from, and the agent's page says why") +
				lookup(metric.PathStateReason.Name+sameProbe+" > "+strconv.Itoa(int(pathstate.NoReply)), "; "+downReasons()) +
				lookup(ofMany(metric.ProbeSkipped), "; this host did not send {{ .Value | humanize }} test packets for reason {{ .Labels.reason }}") +
				lookup(ofMany(metric.PacketsDiscarded), "; {{ .Value | humanize }} replies were discarded for reason {{ .Labels.reason }}") +
				lookup(metric.PathInfo.Name+sameProbe, "; it is {{ .Labels.peer }}") + lookup(silentReflector(), "; if it is {{ .Labels.instance }}: {{ .Labels.why }}") + ".",
		},
	}
	ResultStale = Rule{
		Name: "OnewayResultStale",
		Doc:  `Not of a dead peer, which is OnewayProbeFailing: the agent hangs, or a clock is wrong.`,
		Expr: promql(`
$age
> $maxAge
unless on (job, instance, path, probe) $probeUp == 0`, names{
			"age":     ageAtScrape(metric.ProbeLastSuccess.Name),
			"maxAge":  ReplyAge().limit(),
			"probeUp": latest(metric.ProbeUp.Name),
		}),
		Alert: &Alert{
			Severity: Warning, Component: Path, For: time.Minute,
			Summary:     "The last result of {{ $labels.path }}/{{ $labels.probe }} is old",
			Description: "The last reply on {{ $labels.path }}/{{ $labels.probe }} arrived {{ $value | humanizeDuration }} ago by this server's clock, and the agent does not report that its peer is away. Gauges of this path show old values: the agent hangs, or its clock differs from this server's.",
		},
	}
	LossHigh = Rule{
		Name: "OnewayLossHigh",
		Expr: directionLoss() + unlessDead(),
		Alert: &Alert{
			OfSite:   true,
			Severity: Warning, Component: Path, For: time.Minute,
			Summary: "{{ $labels.path }} loses {{ $value | humanizePercentage }} {{ $labels.direction }}",
			Description: "{{ $labels.path }}/{{ $labels.probe }} lost " + orElse(lookup(LossRatio5m.Name+sameDirection, ""), "at least ") + "{{ $value | humanizePercentage }} of its {{ $labels.direction }} packets in the last 5 minutes" +
				lookup(LossRatio1h.Name+sameDirection, " and {{ .Value | humanizePercentage }} in the last hour") +
				lookup(metric.LossBurstRatio.Name+sameDirection, "; burst ratio {{ .Value | printf \"%.1f\" }} (1 is random)") + ".",
		},
	}
	RoundTripLoss = Rule{
		Name: "OnewayRoundTripLoss",
		Doc: `The direction of a loss is unknown with a foreign reflector, in an outage, and for an hour after one; or loss of both
directions together is above the threshold, and of neither alone. LossHigh and HostDrops report the other losses.`,
		Expr: promql(`
$roundTripLossRatio5m > on (path) group_left () $lossRatio
and $roundTripLossRatio1h > on (path) group_left () $lossRatio
and increase($roundTripLost[1h]) > on (path) group_left () $lossPackets
unless
(
  sum without (direction) (increase($packetsHostDropped[5m]))
  >= 0.5 * increase($roundTripLost[5m])
)
unless on (job, instance, path, probe)
(
  $directionLoss
)`, names{
			"roundTripLossRatio5m": RoundTripLossRatio5m.Name,
			"lossRatio":            ThresholdLossRatio.ByPath.Name,
			"roundTripLossRatio1h": RoundTripLossRatio1h.Name,
			"roundTripLost":        metric.RoundTripLost.Name,
			"lossPackets":          ThresholdLossPackets.ByPath.Name,
			"packetsHostDropped":   metric.PacketsHostDropped.Name,
			"directionLoss":        strings.ReplaceAll(directionLoss(), "\n", "\n  "),
		}) + unlessLoadTest("OnewayRoundTripLoss", RoundTripLossRatio5m.Name) + unlessDead(),
		Alert: &Alert{
			OfSite:   true,
			Severity: Warning, Component: Path, For: time.Minute,
			Summary: "{{ $labels.path }} loses {{ $value | humanizePercentage }} of its round trips",
			Description: "{{ $value | humanizePercentage }} of the test packets of {{ $labels.path }}/{{ $labels.probe }} had no reply in the last 5 minutes, and no direction is known to lose as much as the threshold in these and in the last hour" +
				lookup(metric.PathInfo.Name+sameProbe, " (reflector: {{ .Labels.reflector }})") +
				lookup(LossRatio5m.Name+sameProbe, "; {{ .Labels.direction }} {{ .Value | humanizePercentage }} in these 5 minutes") +
				lookup("sum by (reason) (increase("+metric.DirectionUnknown.Name+sameProbe+"[5m])) > 0", "; direction unknown: {{ .Value | humanize }} for reason {{ .Labels.reason }}") + ".",
		},
	}
	DelayFloorStep = Rule{
		Name: "OnewayDelayFloorStep",
		Doc: `Within its bound a floor may be negative: then any step is a large share of it. Both times need minutes without a load
test: the smallest delay of a few packets, or beside a test, is no floor.`,
		Expr: promql(`
abs($delayFloorShift) > on (path) group_left () $floorStepSeconds
and abs($delayFloorShift) > 2 * max_over_time($delayErrorBound[15m])
and
(
  abs($delayFloorShift)
  > clamp_min(min_over_time($delayMin[1h] offset 15m), 0) * on (path) group_left () $floorStepRatio
)
and count_over_time(($untested)[15m:1m]) >= 5
and count_over_time(($untested)[1h:1m] offset 15m) >= 15`, names{
			"delayFloorShift":  DelayFloorShift.Name,
			"floorStepSeconds": ThresholdFloorStepSeconds.ByPath.Name,
			"delayErrorBound":  metric.DelayErrorBound.Name,
			"delayMin":         metric.DelayMin.Name,
			"floorStepRatio":   ThresholdFloorStepRatio.ByPath.Name,
			"untested":         unlessUnscraped(metric.DelayMin.Name) + " unless on (job, instance, path) " + LoadTestRecent.Name,
		}),
		Alert: &Alert{
			OfSite:    true,
			LooksBack: 15 * time.Minute,
			Severity:  Info, Component: Path, Absolute: true,
			Summary: "The {{ $labels.direction }} delay floor of {{ $labels.path }} moved by {{ $value | humanizeDuration }}",
			Description: "The smallest {{ $labels.direction }} delay of {{ $labels.path }}/{{ $labels.probe }} in the last 15 minutes differs by {{ $value | humanizeDuration }} from that of the hour before." +
				lookup(RoundTripFloorShift.Name+sameProbe, " The round trip's floor moved by {{ .Value | humanizeDuration }}: if that is about as much, the route changed; if it is much less, a clock did."),
		},
	}
	RFactorLow = Rule{
		Name: "OnewayRFactorLow",
		Doc: `10 minutes without a load test, in one piece or between the tests of an hour: a test in between does not
begin them anew. During a test the alert does not begin; one that fires continues.`,
		Expr: promql(`
$most < on (path) group_left () $rFactor
and
(
  $lowFor10m
  or
  $lowFor30m
  or
  $lowFor1h
  or
  $most and on (job, instance, path, probe, direction) $firing
)`, names{
			"most": VoiceRMost.Name, "rFactor": ThresholdRFactor.ByPath.Name, "firing": firing("OnewayRFactorLow"),
			"lowFor10m": lowUntested("10m"), "lowFor30m": lowUntested("30m"), "lowFor1h": lowUntested("1h"),
		}),
		Alert: &Alert{
			OfSite:   true,
			Severity: Warning, Component: Path, Absolute: true,
			Summary: `Calls over {{ $labels.path }} {{ $labels.direction }} would be bad: R is at most {{ printf "%.0f" $value }}`,
			Description: `With the best codec and playout buffer a call over {{ $labels.path }}/{{ $labels.probe }} {{ $labels.direction }} has R of at most {{ printf "%.0f" $value }}, including the delay's bound, and was below the threshold for 10 minutes without a load test` +
				lookup(DelayQuantiles5m.Name+"{instance,path,probe,direction,quantile_rank='0.5'}", "; median delay {{ .Value | humanizeDuration }}") +
				lookup(LossRatio5m.Name+sameDirection, "; loss {{ .Value | humanizePercentage }}") + ".",
		},
	}
)

// directionLoss is the expression of OnewayLossHigh for a peer that replies. Where the loss by direction is not known, as after a restart of
// the reflector, but was above the threshold before, half of the threshold is enough for its lower limit: the alert does not pass
// to OnewayRoundTripLoss and back. In 10 minutes an outage of 5 minutes leaves the window.
func directionLoss() string {
	return promql(`
(
  (
    $lossRatio5m
    or
    $least
  ) > on (path) group_left () $lossRatio
  or
  (
    $least
  ) > on (path) group_left () (0.5 * $lossRatio)
  and last_over_time($lossRatio5m[10m]) > on (path) group_left () $lossRatio
)
and $lossRatio1h > on (path) group_left () $lossRatio
and increase($packetsLost[1h]) > on (path) group_left () $lossPackets`, names{
		"lossRatio5m": LossRatio5m.Name,
		"least":       strings.ReplaceAll(inWindow("5m").LeastLoss(), "\n", "\n    "),
		"lossRatio":   ThresholdLossRatio.ByPath.Name,
		"lossRatio1h": LossRatio1h.Name,
		"packetsLost": metric.PacketsLost.Name,
		"lossPackets": ThresholdLossPackets.ByPath.Name,
	}) + unlessLoadTest("OnewayLossHigh", latest(metric.PacketsLost.Name))
}

// BadCallsFor is how long R was below its threshold, without a load test, before OnewayRFactorLow fires.
const BadCallsFor = 10 * time.Minute

// lowUntested has R where it was below its threshold in all of a window but for load tests, and in BadCallsFor of it.
func lowUntested(window string) string {
	return promql(`(
    max_over_time($untested[$window:1m]) < on (path) group_left () $rFactor
    and count_over_time($untested[$window:1m]) >= $minutes
  )`, names{"minutes": fmt.Sprint(BadCallsFor.Minutes()), "untested": VoiceRUntested.Name, "window": window, "rFactor": ThresholdRFactor.ByPath.Name})
}

// silentReflector is the agents whose reflector may be a path's silent peer, with the reason in the label why: it has given as many packets
// no reply as the path sent. Of targets with the host of the peer only these may be; if there are none, targets have other names.
func silentReflector() string {
	query := promql(`
(
  ($without and on (host) $pathHost)
  or
  ($without unless on () ($targets and on (host) $pathHost))
)
>= on () group_left () (0.5 * sum(increase($sent[5m])) > 0)`, names{
		"without": targetHost(`(
    label_replace(sum by (instance) ` + rejectedForKey() + `, 'why', 'its reflector rejects packets for their key', '', '')
    or
    label_replace(sum by (instance) (increase(` + metric.SendErrors.Name + `{socket='reflector',reason='not_permitted'}[5m])) > 2, 'why', 'its host does not let its replies out (` + errtext.Forbidden + `)', '', '')
  )`),
		"targets":  targetHost(up),
		"pathHost": PathHost.Name + sameProbe,
		"sent":     metric.PacketsSent.Name + sameProbe,
	})
	return strings.Join(strings.Fields(query), " ")
}

// targetHost adds the label host of a target, as PathHost has it.
func targetHost(series string) string {
	return "label_replace(" + series + ", 'host', '$1', 'instance', '[[]?(.*?)[]]?(:[0-9]+)?')"
}

// pathAlerts is the group of these alerts.
func pathAlerts() Group {
	return Group{
		Name: "oneway-path", Interval: 30 * time.Second,
		Rules: []Rule{
			ProbeFailing, ResultStale, LossHigh, RoundTripLoss, DelayFloorStep, RFactorLow,
		},
	}
}

// downReasons is the text of the value of PathStateReason, of a path that is down for a known reason.
func downReasons() string {
	var text strings.Builder
	for _, e := range pathstate.Entries() {
		if e.Reason > pathstate.NoReply {
			fmt.Fprintf(&text, "{{ if eq .Value %d.0 }}%s{{ end }}", e.Reason, e.Sentence)
		}
	}
	return text.String()
}

// manyPackets is the share of the packets that were due in 3 minutes from which what happened to them is named as a possible cause.
const manyPackets = "0.1"

// ofMany is stillGrows of a counter by reason, where it counts many of the packets that were due.
func ofMany(counter *metric.Desc) string {
	due := func(counter *metric.Desc, selector string) string {
		return "(sum(increase(" + counter.Name + selector + "[3m])) or vector(0))"
	}
	forward := strings.TrimSuffix(sameProbe, "}") + ",direction='forward'}"
	return "sum by (reason) (" + stillGrows(counter) + " and increase(" + counter.Name + sameProbe + "[3m]) >= on () group_left () (" +
		manyPackets + " * (" + due(metric.PacketsSent, forward) + " + " + due(metric.ProbeSkipped, sameProbe) + "))) > 0"
}

// stillGrows is the whole increase of a counter of the probe in 15 minutes, where it goes on: what has ended is not why a peer does not
// reply now.
func stillGrows(counter *metric.Desc) string {
	series := counter.Name + sameProbe
	return "round(increase(" + series + "[15m]) and increase(" + series + "[3m]) > 0)"
}
