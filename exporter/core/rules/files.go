package rules

// Files are the rule files. Prometheus loads all of them.
func Files() []File {
	return []File{
		{"oneway-thresholds.yml", `The thresholds of all oneway alerts, and where their runbooks are: this is the one
file to change. Keep your own copy and load it in place of this one.

A record without a path label is the default of every path. A second record of
the same name with a label ` + "`path`" + ` overrides it for the path of that name:

  - record: oneway:threshold:loss_ratio
    expr: 0.05
    labels: {path: ship-to-shore}

Without this file no alert with a threshold can fire, and OnewayThresholdsMissing
fires.`, []Group{limits()}},
		{"oneway-recording.yml", `Values of the last minutes for panels and alerts: thresholds by path, quantiles,
ratios. Load all files of this directory together.

Quantiles. A quantile of several minutes follows neither from those of its windows nor
from a histogram with fixed buckets, and an average of quantiles is none: if a queue
was full for 30 s of 5 min, the average of the windows' p95 is a delay that no packet had.
Limits do follow:

- oneway_*_quantile_seconds is an order statistic of one window (10 s by default; within
  0.8 % beyond 65,536 packets), lost packets counted as infinite. If the share q of each
  window's packets took at most x, so did the share q of all of them, however many
  packets each window had; the same from below. The quantile of all packets of the
  scraped windows is between the smallest and the largest of the windows' values
  (series quantile5m_lower and quantile5m_upper): always, and tightly where windows are
  alike. Without an upper limit it may be infinite: a window had no such quantile.
  This applies to measured delays; the true ones may differ further by the
  largest oneway_delay_error_bound_seconds of those minutes.
- Between the limits the histogram says what is likelier: it tells the bucket. A native
  one is 9 % wide; the classic ones are few (METRICS.md lists their bounds), and their ends
  differ by a factor of 2 to 5; below the lowest bound they say nothing. What is recorded
  (quantile5m) is the figure of an ordinary window, or, if that is outside of the bucket,
  the nearer end of the bucket, and never beyond the limits. The limits alone tell how
  far it may be off. An ordinary window's p95 and p99 are not the medians of the windows':
  a window of 10 packets has its largest delay as both, and the largest of 10 is below
  the p95 of all with a chance of 0.95^10 = 0.6, below the p99 with 0.99^10 = 0.9.

Where no window has the quantile, because too much was lost, the histogram's is recorded,
interpolated in its bucket: it covers received packets only, and loss is a series of its own.

The delay of a packet that arrived is not always known: forward, not where its reply was lost.
Such packets may be the slowest or the fastest: if less than the share q took at most x, and more
than q with all of them, it is not known whether the quantile is above x. If such an x separates
buckets, the quantile is not recorded, as the agent withholds it (series withheld5m; its value is
the share of unknown delays, which is unknown_ratio5m) unless each window has it. A native
histogram is tested at ranks for a share of up to 0.05 (1 - q) and 0.4 (1 - q); of more, each
quantile is withheld. Alerts then compare the lower limit, which takes all for the fastest.
Variation is recorded in the same way.

Scrape as often as a window ends, else windows are missed: the limits cover scraped windows only.
The histogram also has packets of the current window: nearly the same ones.

histogram_quantile: the first operand of ` + "`or`" + ` finds a native histogram, whose buckets are
9 % wide, the second classic buckets, where the server has no native ones: a server that
has both reads the finer. ` + "`> -Inf`" + ` drops NaN: what was not measured has no series. The
limits of a native quantile are 10 % below and above it; the ends of a classic
bucket: a histogram that is 0 below the bucket with the quantile,
and 1 from there on, has its own quantiles 0 and 1 at them; the factor is a little below
q, so that the rounding of rate() does not matter.

Profile slim: the delay's histogram is native, with a gauge of p50. A server that takes no
native histograms gets a gauge of p95 in its place, so that p50 and p95 are recorded
either way; p99 and the limits of p95 of a server with native histograms come from the
histogram alone. What a slim path has no family of is not recorded: variation, round
trip quantiles, lateness, the floor.

No rule aggregates over targets: a histogram is one path, probe and direction of
one agent already, and so the labels that a site adds to its targets remain.`, []Group{pathLimits(), quantiles5m(), others5m(), variations5m(), lastMinutes(), pathStates(), maintenance(), sites(), events()}},
		{"oneway-baselines.yml", `Values of hours and days for panels and alerts: quantiles of an hour and of a day,
baselines, and excesses over them. Load all files of this directory together; the head of
oneway-recording.yml defines a quantile of many windows.`, []Group{hours(), excesses(), floorSteps(), days(), trends()}},
		{"oneway-days.yml", `Long-term series of local days, for pages of a year: the hours of oneway-baselines.yml together.
Load all files of this directory together.`, []Group{longDays()}},
		{"oneway-load-test.yml", `Values of load tests for panels and alerts: thresholds by path, which paths are
disturbed by a test, the results of runs, and baselines of throughput and capacity. Load
all files of this directory together.

A gauge of a load test has the value of its last completed run until the next. So an
average over time weighs a run by the time to the next; with runs at even times that is
an average of runs.`, []Group{runLimits(), runs(), throughput()}},
		{"oneway-alerts.yml", `Alerts. Thresholds are in oneway-thresholds.yml, the compared values in
oneway-recording.yml and oneway-baselines.yml; the agents serve the runbooks, at the
address of oneway:runbooks:url. Alerts of load tests are in oneway-load-test-alerts.yml.

Load tests fill links on purpose: their effect on delay and loss of the paths over them
starts no alert (oneway:load_test:recent); an alert that fires already continues.

No alert of a path or an agent under maintenance fires (oneway:maintenance:recent), whether its agent is scraped or
not; one that fired before ends, and fires again after the maintenance if its cause is still there. One with
keep_firing_for goes on for that time.

Some alerts never fire for paths of profile slim, which do not have their series; their
runbooks tell so.

Labels: severity is critical (now), warning (today) or info (no action); host is the
host with the fault, which is not always the instance.
owd="absolute" marks alerts that are meaningless while a clock is wrong: loss, round
trips and variation never carry it. See alertmanager.yml for what inhibits what.`, []Group{quiet(agentAlerts()), quiet(clockAlerts()), quiet(delayAlerts()), quiet(pathAlerts()), siteAlerts(), quiet(trendAlerts())}},
		{"oneway-load-test-alerts.yml", `Alerts of load tests: their results, and whether they run. Conventions are those of
oneway-alerts.yml. None is labeled owd="absolute": rates need no clock, and in the delay
that a queue adds, a constant clock offset cancels.`, []Group{quiet(linkAlerts()), quiet(runsAlerts())}},
	}
}
