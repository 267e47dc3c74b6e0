package rules

import (
	"fmt"
	"slices"
	"time"

	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/core/unit"
)

// RunbooksURL has the label url, below which the runbook of each alert is.
var RunbooksURL = Rule{
	Name: "oneway:runbooks:url",
	Doc: `Each alert's runbook_url is the label url of this series, and the alert's name. An
agent serves the runbooks: that of the alert if it is up, else another. With TLS, or
where instance is not host:port, change the address; for your own copy on a wiki
take "expr: 1" and "labels: {url: https://wiki.example/oneway}".`,
	Expr: `label_replace(group by (instance) (` + up + ` == 1), "url", "http://$1/runbooks", "instance", "(.*)")`,
}

// The thresholds of the alerts.
var (
	ThresholdDelayBlowUpRatio   = limitOfPath("delay_blow_up_ratio", 3, `OnewayDelayBlowUp: p95 of 5 min over this many times its baseline ...`)
	ThresholdDelayBlowUpSeconds = limitOfPath("delay_blow_up_seconds", 0.05, `... and over the baseline by more than this many seconds.
OnewayHostQueueLong: the median wait in a queue of this host itself.`)
	ThresholdDelaySeconds = limitOfPath("delay_seconds", 0.15, `OnewayDelayBlowUp of a path without a baseline: p95 of 5 min over this many seconds (ITU-T
G.114 clause 3: most applications are unaffected below), and over the smallest delay of the hour by more than
delay_blow_up_seconds.`)
	ThresholdBaselineHours = limit("baseline_hours", 24, `Hours of history before a baseline exists, which include a busy
hour; until then alerts with a baseline do not fire, except for OnewayDelayBlowUp by delay_seconds. Not by path.`)
	ThresholdLossRatio = limitOfPath("loss_ratio", 0.01, `OnewayLossHigh, OnewayRoundTripLoss: lost over decided packets, 0..1, in
the last 5 min and in the last hour ...`)
	ThresholdLossPackets = limitOfPath("loss_packets", 2, `... and more lost packets than this in the last hour: one lost packet of a
slow probe is no alert.`)
	ThresholdRFactor           = limitOfPath("r_factor", 70, `OnewayRFactorLow: G.107 Annex B, "many users dissatisfied" below 70.`)
	ThresholdClockErrorRatio   = limitOfPath("clock_error_ratio", 0.1, `OnewayClockErrorTooLarge: error bound over median delay, 0..1 ...`)
	ThresholdClockErrorSeconds = limitOfPath("clock_error_seconds", 0.001, `... and above this many seconds: on a LAN, where delays are microseconds,
no network time is within 10 %, and an alert would be noise.`)
	ThresholdPPSLostSeconds = limit("pps_lost_seconds", 30, `OnewayPPSLost: seconds without a pulse where one is configured; not below 30.
Not by path.`)
	ThresholdClockDisagreementSeconds = limit("clock_disagreement_seconds", 0.0001, `OnewayClockDisagreement: the clock's offset by its daemon and by the pulses
differ by more than both bounds and by more than this many seconds: the latency
of the pulse's interrupt is part of one of them only. Not by path.`)
	ThresholdFloorStepSeconds = limitOfPath("floor_step_seconds", 0.005, `OnewayDelayFloorStep: the smallest delay moved by more than this many
seconds, and by more than this share of what it was.`)
	ThresholdFloorStepRatio   = limitOfPath("floor_step_ratio", 0.2, ``)
	ThresholdSelfLimitedRatio = limitOfPath("self_limited_ratio", 0.01, `OnewayProbeSelfLimited: share of test packets skipped or sent over `+inMillis(LateSeconds)+` late.`)
	ThresholdProbeUpRatio     = limitOfPath("probe_up_ratio", 0.5, `OnewayProbeFailing: share of 15 min during which the peer replied; a peer that has
not replied at all for 2 min is reported earlier.`)
	ThresholdStaleIntervals = limitOfPath("stale_intervals", 3, `OnewayResultStale: intervals without a reply, plus seconds of slack for
scrape and evaluation.`)
	ThresholdStaleSeconds    = limitOfPath("stale_seconds", 60, ``)
	ThresholdTrendShiftRatio = limitOfPath("trend_shift_ratio", 0.1, `OnewayTrendShift: the median delay of 7 days moved by more than this share of what it was in
the 28 days before, and by more than both error bounds.`)
	ThresholdBusyHourRatio = limit("busy_hour_ratio", 1.5, `OnewayBusyHourDegraded: p95 of an hour of the day in the last 7 days over this many times
that hour's in the 28 days before. Not by path ...`)
	ThresholdBusyHourSeconds = limitOfPath("busy_hour_seconds", 0.01, `... and longer by more than this many seconds.`)
	ThresholdTrendDataRatio  = limitOfPath("trend_data_ratio", 0.9, `OnewayTrendDataGap: share of the hours of 7 days that are recorded.`)
	ThresholdHistoryDays     = limit("history_days", 0, `OnewayRetentionShort: days of history that Prometheus must keep; 0: any. Trends of a
year need 400. Not by path.`)
	ThresholdSitePaths = limit("site_paths", 3, `OnewaySiteDegraded: at least so many paths to a site, and this share of them, are
degraded or down. Not by path.`)
	ThresholdSiteRatio     = limit("site_ratio", 0.5, ``)
	ThresholdSitePairPaths = limit("site_pair_paths", 2, `OnewaySitePairDegraded: at least so many paths between two sites, of both directions, and
the same share of them, are degraded or down. Not by path.`)
	ThresholdOutputDroppedPoints = limit("output_dropped_points", 0, `OnewayOutputDropping: points that an output may lose in 15 min. Not by path.`)
	ThresholdOutputBehindSeconds = limit("output_behind_seconds", 300, `OnewayOutputBehind: seconds without an accepted request while points wait ...
Not by path.`)
	ThresholdOutputSpoolRatio    = limit("output_spool_ratio", 0.5, `... or share of the spool in use, 0..1. Not by path.`)
	ThresholdBufferbloatSeconds  = limitOfRuns("bufferbloat_seconds", 0.2, `OnewayBufferbloat: largest delay that a full queue may add, in seconds.`)
	ThresholdWorkingDelaySeconds = limitOfRuns("working_delay_seconds", 0.2, `OnewayWorkingDelayHigh: delay in seconds that a load test may add to the packets of
others. Such a queue alone uses up the 0.15 s up to which ITU-T G.114 (05/2003)
clause 3 sees most applications unaffected.`)
	ThresholdThroughputRatio = limitOfRuns("throughput_ratio", 0.6, `OnewayThroughputDegraded, OnewayCapacityDegraded, OnewayTCPThroughputDegraded:
median of `+fmt.Sprint(recentHours)+` h over its baseline, 0..1.`)
	ThresholdTCPBufferLimitedRatio = limitOfRuns("tcp_buffer_limited_ratio", 0.5, `OnewayTCPBufferLimited: share of a run in which the receive window or the send
buffer limited the sender, 0..1.`)
	ThresholdTCPRetransmittedRatio = limitOfRuns("tcp_retransmitted_ratio", 0.05, `OnewayTCPRetransmissions: share of a run's sent payload that was sent again, 0..1.`)
	ThresholdSenderUnderrunRatio   = limitOfRuns("sender_underrun_ratio", 0.02, `OnewaySenderTooSlow: share of a load test's planned packets that this host or
the remote end did not send, 0..1.`)
	ThresholdRunsFailedRatio = limitOfRuns("runs_failed_ratio", 0.5, `OnewayRunsFailing: share of the runs of load tests that were `+unit.List("or", runreason.Failures()...)+`,
0..1.`)
	ThresholdRunStaleIntervals = limitOfRuns("run_stale_intervals", 3, `OnewayRunResultStale: intervals without a completed run, plus seconds of slack
for jitter, for waiting for the link, and for the run itself ...`)
	ThresholdRunStaleSeconds  = limitOfRuns("run_stale_seconds", 900, ``)
	ThresholdRunClosedSeconds = limitOfRuns("run_closed_seconds", 100000, `... while runs are due; if none was due in `+fmt.Sprintf("%.0f", missedTime.Hours())+` hours, when the last is older than
this many seconds: longer than the windows of the probe are ever closed, except
for those with an exported end (oneway_run_next_timestamp_seconds).`)
)

// thresholds are all thresholds, in the order of their file.
func thresholds() []Threshold {
	return []Threshold{
		ThresholdDelayBlowUpRatio, ThresholdDelayBlowUpSeconds, ThresholdDelaySeconds, ThresholdBaselineHours, ThresholdLossRatio, ThresholdLossPackets,
		ThresholdRFactor, ThresholdClockErrorRatio, ThresholdClockErrorSeconds, ThresholdPPSLostSeconds,
		ThresholdClockDisagreementSeconds, ThresholdFloorStepSeconds, ThresholdFloorStepRatio, ThresholdSelfLimitedRatio,
		ThresholdProbeUpRatio, ThresholdStaleIntervals, ThresholdStaleSeconds, ThresholdTrendShiftRatio, ThresholdBusyHourRatio, ThresholdBusyHourSeconds,
		ThresholdTrendDataRatio, ThresholdHistoryDays, ThresholdSitePaths, ThresholdSiteRatio, ThresholdSitePairPaths, ThresholdOutputDroppedPoints,
		ThresholdOutputBehindSeconds, ThresholdOutputSpoolRatio, ThresholdBufferbloatSeconds, ThresholdWorkingDelaySeconds,
		ThresholdThroughputRatio, ThresholdTCPBufferLimitedRatio, ThresholdTCPRetransmittedRatio, ThresholdSenderUnderrunRatio,
		ThresholdRunsFailedRatio, ThresholdRunStaleIntervals, ThresholdRunStaleSeconds, ThresholdRunClosedSeconds,
	}
}

// limits is the group of the thresholds as users change them.
func limits() Group {
	g := Group{Name: "oneway-thresholds", Interval: 30 * time.Second, Rules: []Rule{RunbooksURL}}
	for _, t := range thresholds() {
		g.Rules = append(g.Rules, t.Rule)
	}
	return g
}

// pathLimits is the group of the thresholds of paths with light probes, and of the host of a path.
func pathLimits() Group {
	rules := byPath(false)
	rules[0].Doc = `The threshold in use by path: its own if there is one, else the default.`
	return Group{Name: "oneway-path-thresholds", Interval: 30 * time.Second, Rules: slices.Concat(rules, []Rule{PathHost})}
}

// runLimits is the group of the thresholds of paths with load tests.
func runLimits() Group {
	rules := byPath(true)
	rules[0].Doc = `As those of oneway-recording.yml, for paths with load tests.`
	return Group{Name: "oneway-load-test-thresholds", Interval: 30 * time.Second, Rules: rules}
}
