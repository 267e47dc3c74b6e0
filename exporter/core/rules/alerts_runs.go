package rules

import (
	"fmt"
	"strings"
	"time"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/core/unit"
)

// Times in which runs and recent tests are counted.
const (
	missedTime   = 6 * time.Hour
	silencedTime = 6 * time.Hour
)

func missedRange() string { return fmt.Sprintf("%.0fh", missedTime.Hours()) }

// tooSmall is a query for the quota of a day, where a run needs more.
var tooSmall = metric.QuotaLimit.Name + "{instance,link} < on (instance, link) group_left () max by (instance, link) (" + metric.RunRequired.Name + "{instance,link})"

// The alerts of group oneway-load-test-runs.
var (
	RunsFailing = Rule{
		Name: "OnewayRunsFailing",
		Doc:  `Within the hour, or, where runs are rarer, within the day without a completed run since.`,
		Expr: promql(`
(
  $runsFailedCount1h > 1.5
  and $runsFailedCount1h / $runsCount1h > on (path) group_left () $runsFailedRatio
)
or
(
  $runsFailedCount1d > 1.5
  and $runsFailedCount1d / $runsCount1d > on (path) group_left () $runsFailedRatio
  unless $recentRun
)`, names{
			"recentRun":         recentRun(),
			"runsFailedCount1h": RunsFailedCount1h.Name,
			"runsCount1h":       RunsCount1h.Name,
			"runsFailedRatio":   ThresholdRunsFailedRatio.ByPath.Name,
			"runsFailedCount1d": RunsFailedCount1d.Name,
			"runsCount1d":       RunsCount1d.Name,
		}),
		Alert: &Alert{
			LooksBack: time.Hour,
			Severity:  Warning, Component: Path, For: 5 * time.Minute,
			Summary: "Load tests of {{ $labels.path }}/{{ $labels.probe }} fail",
			Description: "Too many runs of {{ $labels.path }}/{{ $labels.probe }} that were due were " + unit.List("or", runreason.Failures()...) +
				lookup(metric.Runs.Name+"{instance,path,probe,result=~'"+failedResults()+"'} > 0", "; {{ .Labels.result }} ({{ .Labels.reason }}): {{ .Value | humanize }} since the agent started") +
				lookup("sum("+metric.Runs.Name+"{instance,path,probe,reason=~'"+strings.Join(runreason.OfHosts(), "|")+"'}) > 0", "; {{ .Value | humanize }} of these because a host was too busy or stood still, not because of the path") +
				lookup("time() - "+metric.RunLast.Name+sameProbe, "; the last completed run ended {{ .Value | humanizeDuration }} ago") + ".",
		},
	}
	RunResultStale = Rule{
		Name: "OnewayRunResultStale",
		Doc: `Outside of its windows no run is due or missed: then only an age beyond any
window fires, unless the agent exports the next window's opening and no run has
been due for more than a day (which proves nothing where they are further apart than
that). The label link is for alertmanager.yml.`,
		Expr: promql(`
(
  time() - $runLast
  > $maxAge
)
* on (job, instance, path, probe) group_left (link) ($testRunning ^ 0)
and on (job, instance, path, probe)
(
  $runsMissedCount6h > 0.5
  or
  time() - $runLast > on (path) group_left () $runClosedSeconds
  unless on (job, instance, path, probe)
  (
    $runNext > time()
    and $changed == 0
    and $runInterval < 86400
  )
)`, names{
			"runLast":           latest(metric.RunLast.Name),
			"maxAge":            strings.ReplaceAll(RunAge().limit(), "\n", "\n  "),
			"runInterval":       latest(metric.RunInterval.Name),
			"testRunning":       latest(metric.TestRunning.Name),
			"runsMissedCount6h": RunsMissedCount6h.Name,
			"runClosedSeconds":  ThresholdRunClosedSeconds.ByPath.Name,
			"runNext":           latest(metric.RunNext.Name),
			"changed":           "changes(" + metric.RunNext.Name + "[27h])",
		}),
		Alert: &Alert{
			LooksBack: time.Hour,
			Severity:  Warning, Component: Path, For: time.Minute,
			Summary: "The last completed run of {{ $labels.path }}/{{ $labels.probe }} is old",
			Description: "The last completed run of {{ $labels.path }}/{{ $labels.probe }} ended {{ $value | humanizeDuration }} ago" +
				lookup(metric.RunInterval.Name+sameProbe, "; one is due every {{ .Value | humanizeDuration }}") +
				lookup("sum by (result, reason) (increase("+metric.Runs.Name+"{instance,path,probe,result!='"+runreason.Completed+"'}["+missedRange()+"])) > 0.5", fmt.Sprintf(`; {{ printf "%%.0f" .Value }} {{ .Labels.result }} ({{ .Labels.reason }}) in %.0f hours`, missedTime.Hours())) + ". Its gauges show old values.",
		},
	}
	DataQuotaExhausted = Rule{
		Name: "OnewayDataQuotaExhausted",
		Doc: `Less is left than a run needs. A run that takes place has its bytes reserved; what it did not use is left again
after it.`,
		Expr: promql(`
$quotaLeft == 0
or
$quotaLeft < on (job, instance, link) max by (job, instance, link) ($runRequired)
unless on (job, instance, link) $testRunning == 1`, names{
			"quotaLeft": latest(metric.QuotaLeft.Name), "runRequired": latest(metric.RunRequired.Name), "testRunning": latest(metric.TestRunning.Name),
		}),
		Alert: &Alert{
			Severity: Warning, Component: Agent, For: 2 * time.Minute,
			Summary: "The data quota of link {{ $labels.link }} of {{ $labels.instance }} " + orElse(lookup(tooSmall, "is too small for a load test"), "is used up"),
			Description: "Load tests on link {{ $labels.link }} of {{ $labels.instance }} are skipped" + orElse(lookup(tooSmall, ""), " until local midnight") + ": {{ $value | humanize }}B" +
				lookup(metric.QuotaLimit.Name+"{instance,link}", " of {{ .Value | humanize }}B a day") + " are left" +
				lookup("topk(1, "+metric.RunRequired.Name+"{instance,link})", "; a run of {{ .Labels.path }}/{{ .Labels.probe }} needs {{ .Value | humanize }}B") + ". Gauges keep the last results.",
		},
	}
	DataQuotaNotSaved = Rule{
		Name: "OnewayDataQuotaNotSaved",
		Expr: latest(metric.QuotaSaved.Name) + " == 0",
		Alert: &Alert{
			Severity: Warning, Component: Agent, For: time.Minute,
			Summary:     "{{ $labels.instance }} cannot save the usage of its data quotas ({{ $labels.kind }})",
			Description: `{{ if eq $labels.kind "tokens" }}The load server of {{ $labels.instance }} refuses tests of tokens with a limit a day{{ else }}{{ $labels.instance }} runs no load test on a link with a data quota{{ end }}: their usage cannot be saved in state_dir, and the next restart would lose it. The disk is full, read-only or broken, or the file was damaged and has to be removed; the agent's log has the reason and the file. It retries every ` + unit.Duration(metric.QuotaSaveInterval) + `.`,
		},
	}
	SenderTooSlow = Rule{
		Name: "OnewaySenderTooSlow",
		Expr: promql(`
(
  min_over_time($udpUnderrun[$held]) > on (path) group_left () $senderUnderrunRatio
  and $udpUnderrunBefore
  or
  max without (packet_bytes, packet_rate) (min_over_time($sizeSweepUnderrun[$held]) and $sizeSweepUnderrunBefore)
  > on (path) group_left () $senderUnderrunRatio
)
and on (job, instance, path, probe) $recentRun`, names{
			"recentRun":               recentRun(),
			"held":                    held,
			"udpUnderrun":             metric.UDPUnderrun.Name,
			"senderUnderrunRatio":     ThresholdSenderUnderrunRatio.ByPath.Name,
			"sizeSweepUnderrun":       metric.SizeSweepUnderrun.Name,
			"udpUnderrunBefore":       latestBefore(metric.UDPUnderrun.Name, held),
			"sizeSweepUnderrunBefore": latestBefore(metric.SizeSweepUnderrun.Name, held),
		}),
		Alert: &Alert{
			Severity: Warning, Component: Agent, KeepFiringFor: HeldFor,
			Summary:     "The sender of {{ $labels.path }}/{{ $labels.probe }} {{ $labels.direction }} cannot keep its rate",
			Description: `For an hour at least {{ $value | humanizePercentage }} of the planned packets of {{ $labels.path }}/{{ $labels.probe }} {{ $labels.direction }} were not sent in each run, by {{ if eq $labels.direction "forward" }}this host{{ else }}the remote end{{ end }}. Such a run measures the host and not the path.`,
		},
	}
	AlertsSilenced = Rule{
		Name: "OnewayAlertsSilenced",
		Doc: `A load test every few minutes, of anybody with a token too, keeps the alerts of
its paths silent: minutes with a recent test, of ` + fmt.Sprintf("%.0f", silencedTime.Hours()) + ` hours. Where a quarter of the time is left, the alerts begin in it.`,
		Expr: "sum_over_time(" + LoadTestRecent.Name + "[" + fmt.Sprintf("%.0fm", silencedTime.Minutes()) + ":1m]) > " + decimal(metric.SilencedRatio*silencedTime.Minutes()),
		Alert: &Alert{
			Severity: Warning, Component: Path,
			Summary:     "Load tests keep the alerts of {{ $labels.path }} silent",
			Description: `In {{ $value | printf "%.0f" }} of the last ` + fmt.Sprintf("%.0f", silencedTime.Minutes()) + ` minutes load tests over its links silenced the alerts of loss, delay and voice of {{ $labels.path }} at {{ $labels.instance }}.`,
		},
	}
)

// runsAlerts is the group of these alerts.
func runsAlerts() Group {
	return Group{
		Name: "oneway-load-test-runs", Interval: 30 * time.Second,
		Rules: []Rule{
			RunsFailing, RunResultStale, DataQuotaExhausted, DataQuotaNotSaved, SenderTooSlow, AlertsSilenced,
		},
	}
}
