package rules

import (
	"fmt"
	"time"

	"github.com/prometheus/common/model"

	"oneway.example/exporter/core/metric"
)

// Selectors of states.
const (
	notFilled = `{state="not_filled"}`
	ofBuffers = `{state=~"receive_window|send_buffer"}`
)

// held is HeldFor in PromQL.
var held = model.Duration(HeldFor).String()

// The alerts of group oneway-load-test-path.
var (
	Bufferbloat = Rule{
		Name: "OnewayBufferbloat",
		Doc: `The alerts of load tests are of runs that take place: a gauge of a run that is refused or
fails is old after one and a half intervals.`,
		Expr: promql(`
sum without (quantile_rank) $queueDelay > on (path) group_left () $bufferbloatSeconds
and sum without (quantile_rank) $queueDelay > sum without (quantile_rank) $queueDelayBound
and on (job, instance, path, probe) $recentRun`, names{
			"recentRun":          recentRun(),
			"queueDelay":         unlessUnscraped(metric.QueueDelay.Name + `{quantile_rank="0.5"}`),
			"bufferbloatSeconds": ThresholdBufferbloatSeconds.ByPath.Name,
			"queueDelayBound":    unlessUnscraped(metric.QueueDelayBound.Name + `{quantile_rank="0.5"}`),
		}),
		Alert: &Alert{
			Severity: Warning, Component: Path,
			Summary: "A full queue adds {{ $value | humanizeDuration }} to the {{ $labels.direction }} delay of {{ $labels.path }}",
			Description: "In the last run of {{ $labels.path }}/{{ $labels.probe }} a full queue added {{ $value | humanizeDuration }} to the {{ $labels.direction }} delay of half of the packets that filled it" +
				errorBound(metric.QueueDelayBound.Name+"{instance,path,probe,direction,quantile_rank='0.5'}") +
				lookup(metric.QueueIdleDelay.Name+sameDirection, ", which is {{ .Value | humanizeDuration }} when the link is idle") +
				lookup(metric.QueueSize.Name+sameDirection, "; the queue holds {{ .Value | humanize }}B") +
				lookup(metric.UDPThroughput.Name+sameDirection, " and drains at {{ .Value | humanize }}B/s") + ". Any load on this link does the same to all its users.",
		},
	}
	WorkingDelayHigh = Rule{
		Name: "OnewayWorkingDelayHigh",
		Doc: `Three completed runs one after the other: those since it was last below, or, where it
never was, all since the agent started. A restart of the agent sets the counter back.`,
		Expr: promql(`
$workingDelayExcess > on (path) group_left () $workingDelaySeconds
and
(
  $workingDelayExcess * 0
  + on (job, instance, path, probe) group_left () sum without (result, reason) ($completed)
  - (
    (
      $workingDelayRunsBelow
      <= on (job, instance, path, probe) group_left () sum without (result, reason) ($completed)
    )
    or $workingDelayExcess * 0
  )
  > $runs - 0.5
)
and on (job, instance, path, probe) $recentRun`, names{
			"recentRun":             recentRun(),
			"workingDelayExcess":    WorkingDelayExcess.Name,
			"workingDelaySeconds":   ThresholdWorkingDelaySeconds.ByPath.Name,
			"completed":             latest(metric.Runs.Name + completed),
			"workingDelayRunsBelow": WorkingDelayRunsBelow.Name,
			"runs":                  fmt.Sprint(WorkingDelayRuns),
		}),
		Alert: &Alert{
			Severity: Warning, Component: Path,
			Summary: "A load on {{ $labels.path }} adds {{ $value | humanizeDuration }} to the {{ $labels.direction }} delay of others",
			Description: "While {{ $labels.path }}/{{ $labels.probe }} loaded the {{ $labels.direction }} direction, half of the packets of others took {{ $value | humanizeDuration }} longer than before, in at least " + fmt.Sprint(WorkingDelayRuns) + " runs" +
				lookup("max("+metric.WorkingDelay.Name+"{instance,path,probe,direction,loaded='none',quantile_rank='0.5'})", "; idle {{ .Value | humanizeDuration }}") +
				lookup("max("+metric.WorkingDelay.Name+"{instance,path,probe,direction,"+underItsLoad()+",quantile_rank='0.5'})", ", loaded {{ .Value | humanizeDuration }}") +
				errorBound("max("+metric.WorkingDelayBound.Name+"{instance,path,probe,direction,"+underItsLoad()+"})") +
				lookup("min("+metric.WorkingR.Name+"{instance,path,probe,direction,"+underItsLoad()+"})", `; R of a call {{ printf "%.0f" .Value }}`) + ".",
		},
	}
	ThroughputDegraded = Rule{
		Name: "OnewayThroughputDegraded",
		Doc: `A link that was not filled carried the whole offered rate: OnewayLinkNotFilled
reports that; it is no property of the link.`,
		Expr: promql(`
$udpThroughputMedian
< $udpThroughputBaseline * on (path) group_left () $throughputRatio
and on (job, instance, path, probe) $recentRun
unless on (job, instance, path, probe, direction) $notFilled == 1`, names{
			"recentRun":             recentRun(),
			"udpThroughputMedian":   UDPThroughputMedian.Name,
			"udpThroughputBaseline": UDPThroughputBaseline.Name,
			"throughputRatio":       ThresholdThroughputRatio.ByPath.Name,
			"notFilled":             unlessUnscraped(metric.SaturationState.Name + notFilled),
		}),
		Alert: &Alert{
			Severity: Warning, Component: Path,
			Summary: "The {{ $labels.direction }} throughput of {{ $labels.path }} has fallen to {{ $value | humanize }}B/s",
			Description: "The median of the runs of {{ $labels.path }}/{{ $labels.probe }} {{ $labels.direction }} in the last " + recentWords() + " is {{ $value | humanize }}B/s" +
				lookup(UDPThroughputBaseline.Name+sameDirection, "; in the same hours of the last "+daysOfBaseline()+" it was {{ .Value | humanize }}B/s") +
				lookup(metric.LoadedLoss.Name+sameDirection, "; loss under load {{ .Value | humanizePercentage }}") + ".",
		},
	}
	CapacityDegraded = Rule{
		Name: "OnewayCapacityDegraded",
		Expr: promql(`
$capacityMedian2h
< $capacityBaseline * on (path) group_left () $throughputRatio
and on (job, instance, path, probe) $recentRun`, names{
			"recentRun":        recentRun(),
			"capacityMedian2h": CapacityMedian2h.Name,
			"capacityBaseline": CapacityBaseline.Name,
			"throughputRatio":  ThresholdThroughputRatio.ByPath.Name,
		}),
		Alert: &Alert{
			Severity: Warning, Component: Path,
			Summary: "The {{ $labels.direction }} capacity of {{ $labels.path }} has fallen to {{ $value | humanize }}B/s",
			Description: "By packet trains the {{ $labels.direction }} capacity of {{ $labels.path }}/{{ $labels.probe }} was {{ $value | humanize }}B/s in the last " + recentWords() +
				lookup(CapacityBaseline.Name+sameDirection, "; in the last "+daysOfBaseline()+" it was {{ .Value | humanize }}B/s") + ". Trains do not fill the link: the link itself is slower, or the route changed.",
		},
	}
	TCPThroughputDegraded = Rule{
		Name: "OnewayTCPThroughputDegraded",
		Expr: promql(`
$tcpThroughputMedian
< $tcpThroughputBaseline * on (path) group_left () $throughputRatio
and on (job, instance, path, probe) $recentRun`, names{
			"recentRun":             recentRun(),
			"tcpThroughputMedian":   TCPThroughputMedian.Name,
			"tcpThroughputBaseline": TCPThroughputBaseline.Name,
			"throughputRatio":       ThresholdThroughputRatio.ByPath.Name,
		}),
		Alert: &Alert{
			Severity: Warning, Component: Path,
			Summary: "The {{ $labels.direction }} throughput of TCP on {{ $labels.path }} has fallen to {{ $value | humanize }}B/s",
			Description: "The median of the runs of {{ $labels.path }}/{{ $labels.probe }} {{ $labels.direction }} in the last " + recentWords() + " is {{ $value | humanize }}B/s" +
				lookup(TCPThroughputBaseline.Name+sameDirection, "; in the same hours of the last "+daysOfBaseline()+" it was {{ .Value | humanize }}B/s") +
				lookup(metric.TCPRetransmitted.Name+sameDirection, "; retransmitted {{ .Value | humanizePercentage }}") +
				lookup("topk(1, "+metric.TCPLimited.Name+sameDirection+")", "; limited by {{ .Labels.state }} for {{ .Value | humanizePercentage }} of the last run") + ".",
		},
	}
	TCPBufferLimited = Rule{
		Name: "OnewayTCPBufferLimited",
		Doc:  `A window that just fills the link limits the sender and costs nothing.`,
		Expr: promql(`
min_over_time(sum without (state) $tcpLimited[$held:1m]) > on (path) group_left () $tcpBufferLimitedRatio
and sum without (state) ($tcpLimitedBefore)
and on (job, instance, path, probe) $recentRun
unless on (job, instance, path, probe, direction)
(
  $tcpThroughput
  > on (job, instance, path, direction) group_left () ($usedCapacity * max without (probe) $pathCapacity)
)`, names{
			"recentRun":             recentRun(),
			"held":                  held,
			"tcpLimited":            unlessUnscraped(metric.TCPLimited.Name + ofBuffers),
			"tcpLimitedBefore":      latestBefore(metric.TCPLimited.Name+ofBuffers, held),
			"tcpBufferLimitedRatio": ThresholdTCPBufferLimitedRatio.ByPath.Name,
			"tcpThroughput":         unlessUnscraped(metric.TCPThroughput.Name),
			"pathCapacity":          unlessUnscraped(metric.PathCapacity.Name),
			"usedCapacity":          fmt.Sprint(UsedCapacityRatio),
		}),
		Alert: &Alert{
			Severity: Warning, Component: Path, KeepFiringFor: HeldFor,
			Summary: "A socket buffer limits TCP {{ $labels.direction }} on {{ $labels.path }}",
			Description: "For an hour buffers of sockets and not the path have limited {{ $labels.path }}/{{ $labels.probe }} {{ $labels.direction }} for at least {{ $value | humanizePercentage }} of each run" +
				lookup(metric.TCPLimited.Name+"{instance,path,probe,direction,state=~'receive_window|send_buffer'}", "; {{ .Labels.state }} {{ .Value | humanizePercentage }}") +
				lookup(metric.TCPThroughput.Name+sameDirection, "; throughput {{ .Value | humanize }}B/s") +
				lookup(metric.TCPRTT.Name+"{instance,path,probe,direction,quantile_rank='0.5'}", "; median round-trip time {{ .Value | humanizeDuration }}") + ".",
		},
	}
	TCPRetransmissions = Rule{
		Name: "OnewayTCPRetransmissions",
		Expr: promql(`
min_over_time($tcpRetransmitted[$held]) > on (path) group_left () $tcpRetransmittedRatio
and $tcpRetransmittedBefore
and on (job, instance, path, probe) $recentRun`, names{
			"recentRun":              recentRun(),
			"held":                   held,
			"tcpRetransmitted":       metric.TCPRetransmitted.Name,
			"tcpRetransmittedBefore": latestBefore(metric.TCPRetransmitted.Name, held),
			"tcpRetransmittedRatio":  ThresholdTCPRetransmittedRatio.ByPath.Name,
		}),
		Alert: &Alert{
			Severity: Warning, Component: Path, KeepFiringFor: HeldFor,
			Summary: "TCP retransmits {{ $value | humanizePercentage }} {{ $labels.direction }} on {{ $labels.path }}",
			Description: "For an hour the runs of {{ $labels.path }}/{{ $labels.probe }} {{ $labels.direction }} have sent at least {{ $value | humanizePercentage }} of their payload more than once" +
				lookup(metric.TCPThroughput.Name+sameDirection, "; throughput {{ .Value | humanize }}B/s") +
				lookup("increase("+metric.TCPTimeouts.Name+sameDirection+"["+recentRange()+"])", `; {{ printf "%.0f" .Value }} timeouts in `+recentWords()) + ".",
		},
	}
	SplitTCPChanged = Rule{
		Name: "OnewaySplitTCPChanged",
		Doc: `For a day after each change, whether the agent is up or not. The value is the new
verdict; one that changes back and forth is one alert.`,
		Expr: "last_over_time(" + SplitTCPVerdictChanged.Name + "[1d])",
		Alert: &Alert{
			Severity: Info, Component: Path,
			Summary: "{{ if eq $value 1.0 }}A host on the path terminates TCP connections {{ $labels.direction }} on {{ $labels.path }} (split TCP){{ else }}TCP is no longer split {{ $labels.direction }} on {{ $labels.path }}{{ end }}",
			Description: "{{ if eq $value 1.0 }}TCP of {{ $labels.path }}/{{ $labels.probe }} {{ $labels.direction }} was end to end and is split now: round-trip times and retransmissions of TCP are those of a part of the path{{ else }}TCP of {{ $labels.path }}/{{ $labels.probe }} {{ $labels.direction }} was split and is end to end now{{ end }}" +
				lookup(metric.TCPSplitLead.Name+sameDirection+" > 0", "; data was acknowledged {{ .Value | humanizeDuration }} before it can have arrived") +
				lookup(metric.TCPConnect.Name+sameDirection, "; handshake {{ .Value | humanizeDuration }}") +
				lookup(metric.TCPRTTMin.Name+sameDirection, "; least round trip of TCP {{ .Value | humanizeDuration }}") +
				lookup(metric.TCPUDPRoundTrip.Name+sameProbe, "; least round trip of UDP {{ .Value | humanizeDuration }}") +
				lookup(metric.TCPSplitUndecided.Name+sameDirection, "; the last run could not tell ({{ .Labels.reason }})") +
				lookup("changes("+SplitTCPVerdictLast.Name+sameDirection+"["+verdictRange()+"]) > 1", `; {{ printf "%.0f" .Value }} changes in `+fmt.Sprint(verdictDays)+" days") + ".",
		},
	}
	LinkNotFilled = Rule{
		Name: "OnewayLinkNotFilled",
		Expr: promql(`
sum without (state) (min_over_time($notFilled[$held])) == 1
and sum without (state) ($before)
and on (job, instance, path, probe) $recentRun`, names{
			"notFilled": metric.SaturationState.Name + notFilled, "before": latestBefore(metric.SaturationState.Name+notFilled, held), "held": held,
			"recentRun": recentRun(),
		}),
		Alert: &Alert{
			Severity: Warning, Component: Path, KeepFiringFor: HeldFor,
			Summary: "The {{ $labels.direction }} runs of {{ $labels.path }}/{{ $labels.probe }} do not fill the link",
			Description: "For an hour no run of {{ $labels.path }}/{{ $labels.probe }} {{ $labels.direction }} has filled the link" +
				lookup(metric.UDPOffered.Name+sameDirection, ": {{ .Value | humanize }}B/s were offered") +
				lookup(metric.UDPThroughput.Name+sameDirection, ", {{ .Value | humanize }}B/s arrived") + ". The throughput is that of the test and not of the link, and the queue is unknown.",
		},
	}
	PacketsCorrupted = Rule{
		Name: "OnewayPacketsCorrupted",
		Expr: promql(`
sum without (kind) $runPacketsCorrupted > 0.5`, names{
			"runPacketsCorrupted": Increase(metric.RunPacketsCorrupted.Name, "1h"),
		}),
		Alert: &Alert{
			LooksBack: time.Hour,
			Severity:  Warning, Component: Path,
			Summary: "{{ $labels.path }} delivers corrupted packets {{ $labels.direction }}",
			Description: `About {{ printf "%.0f" $value }} packets of {{ $labels.path }}/{{ $labels.probe }} {{ $labels.direction }} arrived in the last hour with content that was not sent` +
				lookup(metric.RunPacketsCorrupted.Name+sameDirection+" > 0", "; {{ .Labels.kind }}: {{ .Value | humanize }} since the agent started") + ". Samples of them are in the run's report.",
		},
	}
)

// linkAlerts is the group of these alerts.
func linkAlerts() Group {
	return Group{
		Name: "oneway-load-test-path", Interval: 30 * time.Second,
		Rules: []Rule{
			Bufferbloat, WorkingDelayHigh, ThroughputDegraded, CapacityDegraded, TCPThroughputDegraded, TCPBufferLimited,
			TCPRetransmissions, SplitTCPChanged, LinkNotFilled, PacketsCorrupted,
		},
	}
}
