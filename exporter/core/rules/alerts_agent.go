package rules

import (
	"strings"
	"time"

	"oneway.example/exporter/core/hostport"
	"oneway.example/exporter/core/metric"
)

// up is the series of the agents as targets: of each job whose name contains "oneway".
const up = `up{job=~".*oneway.*"}`

// rejectedForKey is the number of packets that a reflector rejected in 5 minutes, if it is more than damage on a path causes. In
// annotations single quotes are needed.
func rejectedForKey() string {
	return "(increase(" + metric.ReflectorPackets.Name + `{result=~'bad_hmac|hmac_limited'}[5m])) > 2`
}

// The alerts of group oneway-agent.
var (
	TargetDown = Rule{
		Name: "OnewayTargetDown",
		Doc:  `As late as OnewayProbeFailing of the paths to this host, which it inhibits by the label host.`,
		Expr: `label_replace(` + up + ` == 0, "host", "$1", "instance", "\\[?(.*?)\\]?(:[0-9]+)?")`,
		Alert: &Alert{
			Severity: Critical, Component: Agent, For: 2 * time.Minute,
			Summary:     "oneway agent {{ $labels.instance }} cannot be scraped",
			Description: "Prometheus has had no reply from {{ $labels.instance }} (job {{ $labels.job }}) for ${for}. The state of its paths is unknown; the host, its network or the agent is down.",
		},
	}
	JobAbsent = Rule{
		Name: "OnewayJobAbsent",
		Expr: "absent(" + up + ")",
		Alert: &Alert{
			Always:   true,
			Severity: Critical, Component: Agent, For: 10 * time.Minute,
			Summary:     "Prometheus scrapes no oneway agent",
			Description: `No target has a job name that contains "oneway". Either service discovery finds none, or the job has another name: then replace ` + strings.ReplaceAll(up, `"`, "'") + ` in all rule files of oneway.`,
		},
	}
	ThresholdsMissing = Rule{
		Name: "OnewayThresholdsMissing",
		Doc:  `Its own rule may be missing as well: any agent that is up serves the runbook.`,
		Expr: promql(`
group($probeInterval or $probeUp) unless on () $lossRatio
or
group($runInterval) unless on () $bufferbloatSeconds`, names{
			"probeInterval":      latest(metric.ProbeInterval.Name),
			"probeUp":            latest(metric.ProbeUp.Name),
			"lossRatio":          ThresholdLossRatio.Name,
			"runInterval":        latest(metric.RunInterval.Name),
			"bufferbloatSeconds": ThresholdBufferbloatSeconds.Name,
		}),
		Alert: &Alert{
			Always:   true,
			Severity: Warning, Component: Agent, For: 5 * time.Minute,
			Summary:     "The thresholds of the oneway alerts are not loaded",
			Description: "There are oneway paths and no " + ThresholdLossRatio.Name + ", or load tests and no " + ThresholdBufferbloatSeconds.Name + ": the file oneway-thresholds.yml is not among the rule files, or a copy of it is older than the alerts, so that those with a threshold cannot fire.",
			RunbookURL:  `{{ with query "` + RunbooksURL.Name + ` or on () label_replace(` + strings.ReplaceAll(up, `"`, `\"`) + ` == 1, \"url\", \"http://$1/runbooks\", \"instance\", \"(.*)\")" | sortByLabel "url" }}{{ (first .).Labels.url }}{{ else }}http://localhost:` + hostport.Agent + `/runbooks{{ end }}/OnewayThresholdsMissing`,
		},
	}
	ConfigReloadFailed = Rule{
		Name: "OnewayConfigReloadFailed",
		Expr: latest(metric.ConfigReloadSuccess.Name) + " == 0",
		Alert: &Alert{
			Severity: Warning, Component: Agent, For: 5 * time.Minute,
			Summary:     "oneway agent {{ $labels.instance }} runs with an old configuration",
			Description: "The last reload on {{ $labels.instance }} failed and the previous configuration is still used. The agent's log has file, line and key, and so has `oneway check-config`.",
		},
	}
	ProbeSelfLimited = Rule{
		Name: "OnewayProbeSelfLimited",
		Expr: promql(`
($scheduleSkippedRatio > on (path) group_left () $selfLimitedRatio)
or
($scheduleLateRatio > on (path) group_left () $selfLimitedRatio)`, names{
			"scheduleSkippedRatio": ScheduleSkippedRatio.Name,
			"selfLimitedRatio":     ThresholdSelfLimitedRatio.ByPath.Name,
			"scheduleLateRatio":    ScheduleLateRatio.Name,
		}),
		Alert: &Alert{
			Severity: Warning, Component: Agent, For: 10 * time.Minute,
			Summary:     "{{ $labels.instance }} cannot keep the schedule of {{ $labels.path }}/{{ $labels.probe }}",
			Description: "{{ $value | humanizePercentage }} of the test packets of {{ $labels.path }}/{{ $labels.probe }} were skipped or sent more than " + inMillis(LateSeconds) + " late over the last 5 minutes. The cause is this host (CPU, socket buffer, firewall, no route or address), not the path; the measurement may miss events.",
		},
	}
	SocketDrops = Rule{
		Name: "OnewaySocketDrops",
		Expr: "sum without (socket) (increase(" + metric.SocketDrops.Name + "[5m])) > 0",
		Alert: &Alert{
			Severity: Warning, Component: Agent, For: 5 * time.Minute,
			Summary:     "{{ $labels.instance }} drops received test packets",
			Description: "The kernel of {{ $labels.instance }} dropped {{ $value | humanize }} datagrams in 5 minutes because the socket's buffer was full. Test packets of paths among them are counted in " + metric.PacketsHostDropped.Name + " and not as lost.",
		},
	}
	HostDrops = Rule{
		Name: "OnewayHostDrops",
		Doc:  `Of either end: a packet that a host dropped is no loss of the path, and its delay is unknown.`,
		Expr: "increase(" + metric.PacketsHostDropped.Name + "[5m]) > 0",
		Alert: &Alert{
			Severity: Info, Component: Agent, For: 5 * time.Minute,
			Summary:     "A host at the end of {{ $labels.path }} drops received test packets",
			Description: `{{ $value | humanize }} {{ $labels.direction }} packets of {{ $labels.path }}/{{ $labels.probe }} in 5 minutes did not arrive while the host that receives them ({{ if eq $labels.direction "forward" }}the remote end{{ else }}this one, {{ $labels.instance }}{{ end }}) dropped at least as many, its socket's buffer being full, or rejected them for their rate. They count neither as received nor as lost on the path.`,
		},
	}
	HostQueueLong = Rule{
		Name: "OnewayHostQueueLong",
		Doc:  `The median: a queue that stands. What a load test of the path makes of its own host's queue is its result.`,
		Expr: promql(`
$hostQueue > on (path) group_left () $blowUpSeconds
unless on (job, instance, path) $loadTestRecent`, names{
			"hostQueue":      unlessUnscraped(metric.HostQueue.Name + p50.selector()),
			"blowUpSeconds":  ThresholdDelayBlowUpSeconds.ByPath.Name,
			"loadTestRecent": LoadTestRecent.Name,
		}),
		Alert: &Alert{
			Severity: Warning, Component: Agent, For: 5 * time.Minute,
			Summary:     "Packets of {{ $labels.path }} wait for {{ $value | humanizeDuration }} in a queue of {{ $labels.instance }} itself",
			Description: "Half of the test packets of {{ $labels.path }}/{{ $labels.probe }} waited for {{ $value | humanizeDuration }} or longer in a queue of an interface of {{ $labels.instance }} before they were sent. All other traffic over this interface waits there, too. The delays, round trips and R of the path begin after that queue and do not include it.",
		},
	}
	OutputDropping = Rule{
		Name: "OnewayOutputDropping",
		Doc:  `Of the label result: dropped by this agent, rejected by the store.`,
		Expr: promql(`
increase($outputPoints{result=~"dropped|rejected"}[15m])
> on () group_left () $outputDroppedPoints`, names{
			"outputPoints":        metric.OutputPoints.Name,
			"outputDroppedPoints": ThresholdOutputDroppedPoints.Name,
		}),
		Alert: &Alert{
			LooksBack: 15 * time.Minute,
			Severity:  Warning, Component: Agent,
			Summary:     "Output {{ $labels.output }} of {{ $labels.instance }} loses points",
			Description: `{{ $value | humanize }} points of output {{ $labels.output }} of {{ $labels.instance }} were {{ $labels.result }} in 15 minutes: {{ if eq $labels.result "dropped" }}its spool was full, or could not be written{{ else }}the store refused them{{ end }}. They are lost.`,
		},
	}
	OutputBehind = Rule{
		Name: "OnewayOutputBehind",
		Doc: `Nothing was accepted for long while points wait, or they already use much of the spool. The value is 0 where the
spool cannot be opened: then there is no number of waiting points. A success in the future counts while it changes: the
agent's clock is ahead of this server's, or was.`,
		Expr: promql(`
(
  $outputWaiting > 0
  unless on (job, instance, output)
  (0 <= time() - $outputLastSuccess <= on () group_left () $outputBehindSeconds)
  unless on (job, instance, output)
  ($outputLastSuccess > time() and $changed > 0)
)
or
(
  $outputWaiting
  and on (job, instance, output)
  ($outputSpool / $outputSpoolLimit > on () group_left () $outputSpoolRatio)
)
or
0 * $outputSpoolLimit unless on (job, instance, output) $outputWaiting`, names{
			"outputWaiting":       unlessUnscraped(metric.OutputWaiting.Name),
			"outputLastSuccess":   latest(metric.OutputLastSuccess.Name),
			"changed":             "changes(" + metric.OutputLastSuccess.Name + "[5m])",
			"outputBehindSeconds": ThresholdOutputBehindSeconds.Name,
			"outputSpool":         latest(metric.OutputSpool.Name),
			"outputSpoolLimit":    unlessUnscraped(metric.OutputSpoolLimit.Name),
			"outputSpoolRatio":    ThresholdOutputSpoolRatio.Name,
		}),
		Alert: &Alert{
			Severity: Warning, Component: Agent, For: 5 * time.Minute,
			Summary:     "Output {{ $labels.output }} of {{ $labels.instance }} does not deliver",
			Description: "{{ if eq $value 0.0 }}Output {{ $labels.output }} of {{ $labels.instance }} cannot open its spool, so that all points are lost.{{ else }}{{ $value | humanize }} points of output {{ $labels.output }} of {{ $labels.instance }} wait in its spool: the store has accepted nothing for minutes, or less than arrives. When the spool is full the oldest are dropped.{{ end }} The agent's page has the reason.",
		},
	}
	SamplesDropped = Rule{
		Name: "OnewaySamplesDropped",
		Expr: "increase(" + metric.SamplesDropped.Name + "[15m]) > 0",
		Alert: &Alert{
			LooksBack: 15 * time.Minute,
			Severity:  Warning, Component: Agent,
			Summary:     "{{ $labels.listener }} of {{ $labels.instance }} misses raw samples",
			Description: `{{ $value | humanize }} raw samples did not reach {{ if eq $labels.listener "incident" }}the incident reports{{ else }}output {{ $labels.listener }}{{ end }} of {{ $labels.instance }} in 15 minutes: its queue was full, because this host has too little CPU time{{ if ne $labels.listener "incident" }} or disk{{ end }}. Metrics and alerts do not depend on them.`,
		},
	}
	KeyRejected = Rule{
		Name: "OnewayKeyRejected",
		Doc:  `At the reflector, before anyone asks the sender why its peer does not reply. A single corrupted packet is no wrong key.`,
		Expr: "sum without (result) " + rejectedForKey(),
		Alert: &Alert{
			Severity: Warning, Component: Agent,
			Summary:     "The reflector of {{ $labels.instance }} rejects test packets for their key",
			Description: `The reflector of {{ $labels.instance }} rejected {{ printf "%.0f" $value }} test packets in 5 minutes: they were made with another key than those of its key_file, or are forged. To such a sender this peer does not reply (OnewayProbeFailing).`,
		},
	}
)

// agentAlerts is the group of these alerts.
func agentAlerts() Group {
	return Group{
		Name: "oneway-agent", Interval: 30 * time.Second,
		Rules: []Rule{
			TargetDown, JobAbsent, ThresholdsMissing, ConfigReloadFailed, ProbeSelfLimited, SocketDrops, HostDrops, HostQueueLong, OutputDropping,
			OutputBehind, SamplesDropped, KeyRejected,
		},
	}
}
