package rules

import (
	"fmt"
	"time"

	"oneway.example/exporter/core/metric"
)

// ofHourly is the last value of a series that is recorded once an hour.
func ofHourly(series string) string { return "last_over_time(" + series + "[70m])" }

// The alerts of group oneway-trend-alerts.
var (
	TrendShift = Rule{
		Name: "OnewayTrendShift",
		Doc:  `Weeks, not minutes: the value is the difference in seconds. A clock that gets worse widens its bound and does not fire.`,
		Expr: promql(`
($now - $before)
and ignoring (quantile_rank) abs($now - $before) > ignoring (quantile_rank) $bound + $boundBefore
and abs(($now - $before) / $before) > on (path) group_left () $ratio`, names{
			"now": ofHourly(DelayMedian7d.Name), "before": ofHourly(DelayMedian28d.Name), "bound": ofHourly(Bound7d.Name), "boundBefore": ofHourly(Bound28d.Name),
			"ratio": ThresholdTrendShiftRatio.ByPath.Name,
		}),
		Alert: &Alert{
			Severity: Info, Component: Path, Absolute: true, For: time.Hour, KeepFiringFor: 6 * time.Hour,
			Summary: `The {{ $labels.direction }} delay of {{ $labels.path }} {{ if gt $value 0.0 }}rose{{ else }}fell{{ end }} from week to week`,
			Description: "The median of the {{ $labels.direction }} delay of {{ $labels.path }}/{{ $labels.probe }} in the last 7 days differs by {{ $value | humanizeDuration }} from the 28 days before them" +
				lookup(ofHourly(DelayMedian28d.Name+sameDirection), ", {{ .Value | humanizeDuration }}") + ". The dashboard Trends shows when.",
		},
	}
	BusyHourDegraded = Rule{
		Name: "OnewayBusyHourDegraded",
		Doc:  `An hour of the day, not the whole path: where OnewayTrendShift fires, all hours may have moved.`,
		Expr: promql(`
max without (hour, day_type) ($excess) > on (path) group_left () $seconds
unless on ($path, direction) $shifted`, names{
			"excess": ofHourly(BusyHourExcess.Name), "seconds": ThresholdBusyHourSeconds.ByPath.Name, "path": pathLabels, "shifted": firing("OnewayTrendShift"),
		}),
		Alert: &Alert{
			Severity: Warning, Component: Path, Absolute: true, For: time.Hour, KeepFiringFor: 6 * time.Hour,
			Summary: `Some hours of the day are slower on {{ $labels.path }}, {{ $labels.direction }}`,
			Description: "95 % of the {{ $labels.direction }} packets of {{ $labels.path }}/{{ $labels.probe }} took up to {{ $value | humanizeDuration }} longer in some hours of the last 7 days than in the same hours of the 28 days before:" +
				lookup(ofHourly(BusyHourExcess.Name+sameDirection), " {{ .Labels.day_type }} from {{ .Labels.hour }}:00 ({{ .Value | humanizeDuration }})") + ".",
		},
	}
	TrendDataGap = Rule{
		Name: "OnewayTrendDataGap",
		Doc:  `Of paths that are measured now and were a week ago.`,
		Expr: promql(`
$hours < on (path) group_left () $ratio
and on ($path) $up`, names{"hours": ofHourly(HoursRatio7d.Name), "ratio": ThresholdTrendDataRatio.ByPath.Name, "path": pathLabels, "up": latest(metric.ProbeUp.Name)}),
		Alert: &Alert{
			Severity: Info, Component: Agent, For: time.Hour,
			Summary:     `Hours of {{ $labels.path }} are missing in the history`,
			Description: "Only {{ $value | humanizePercentage }} of the hours of {{ $labels.path }}/{{ $labels.probe }} in the last 7 days were recorded: the agent or Prometheus was off, or the rules were not evaluated. Figures of this time are of the other hours.",
		},
	}
	CalendarMissing = Rule{
		Name: "OnewayCalendarMissing",
		Doc:  `An agent without a local time (of an earlier version) has no long-term series; a list of holidays that has ended counts later ones as other days.`,
		Expr: promql(`
time() - $end > 0
or
(group by ($agent) ($sent) unless on ($agent) $offset)`, names{
			"end": latest(metric.HolidaysEnd.Name), "agent": agentLabels, "sent": latest(metric.PacketsSent.Name), "offset": latest(metric.UTCOffset.Name),
		}),
		Alert: &Alert{
			Severity: Info, Component: Agent, For: time.Hour,
			Summary: `{{ $labels.instance }} has no calendar`,
			Description: "Trends by hour and kind of day need the local time of {{ $labels.instance }}" +
				orElse(lookup(metric.HolidaysEnd.Name+"{instance}", ": its list of holidays (calendar.holidays_file) has ended, so that later holidays count as other days"), ": it exports none, so that no long-term series are recorded of its paths") + ".",
		},
	}
	RetentionShort = Rule{
		Name: "OnewayRetentionShort",
		Doc: `Needs the metrics of Prometheus itself, and days above 0 in oneway:threshold:history_days. By the flag of the retention time, or by the oldest sample where
the retention by size removes blocks.`,
		Expr: promql(`
(
  $limit > 0
  or
  (time() - $oldest) and on ($agent) increase($removed[7d]) > 0
) < on () group_left () 86400 * (max($days) > 0)`, names{
			"limit": "prometheus_tsdb_retention_limit_seconds", "oldest": "prometheus_tsdb_lowest_timestamp_seconds", "removed": "prometheus_tsdb_size_retentions_total",
			"agent": agentLabels, "days": ThresholdHistoryDays.Name,
		}),
		Alert: &Alert{
			Always:   true,
			Severity: Info, Component: Agent, For: time.Hour,
			Summary: `{{ $labels.instance }} keeps less history than asked for`,
			Description: "The Prometheus {{ $labels.instance }} keeps {{ $value | humanizeDuration }}" + lookup(ThresholdHistoryDays.Name, ", and {{ .Value }} days are asked for") +
				fmt.Sprintf(" (%s): raise --storage.tsdb.retention.time, or send the long-term series to a second store.", ThresholdHistoryDays.Name),
		},
	}
)

// trendAlerts is the group of these alerts.
func trendAlerts() Group {
	return Group{
		Name: "oneway-trend-alerts", Interval: 5 * time.Minute,
		Doc:   `Weeks and the history: none of them needs a person at night.`,
		Rules: []Rule{TrendShift, BusyHourDegraded, TrendDataGap, CalendarMissing, RetentionShort},
	}
}
