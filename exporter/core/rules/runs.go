package rules

import (
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/core/unit"
)

// workingDelayRunsBelow is a constant because the rule uses its own last value.
const workingDelayRunsBelow = "oneway:working_delay_excess:runs_below"

const (
	// processStart is the time at which an agent started, which client_golang exports.
	processStart = "process_start_time_seconds"
	completed    = `{result="` + runreason.Completed + `"}`
)

// failedResults matches the results of runs that failed.
func failedResults() string { return strings.Join(runreason.Failures(), "|") }

func failedRuns() string { return `{result=~"` + failedResults() + `"}` }

// Runs of load tests, and the paths that they disturb.
var (
	LoadTestRecent = Rule{
		Name: "oneway:load_test:recent",
		Doc: `Paths whose delay and loss a load test affects: one fills a link of theirs, or
did within the last ` + unit.Duration(metric.TestedRecent) + `, a minute more than alerts look back. The agent decides which
paths a test affects. The maximum keeps a test that a restart has followed. By a clock of the
agent that is wrong, or was, a time is recent if it changes, and none that lies ahead is.`,
		Expr: promql(`
group by (job, instance, path) (
  $recent
)`, names{"recent": strings.ReplaceAll(Tested(metric.PathTested.Name, metric.TestedRecent, metric.TestedRecent), "\n", "\n  ")}),
	}
	RunsCount1h        = runsOf("oneway:runs:count1h", "", "1h", `Runs that were due. The counter begins with 0 for each result: after a restart its first run counts, too.`)
	RunsCount1d        = runsOf("oneway:runs:count1d", "", "1d", ``)
	RunsFailedCount1h  = runsOf("oneway:runs_failed:count1h", failedRuns(), "1h", ``)
	RunsFailedCount1d  = runsOf("oneway:runs_failed:count1d", failedRuns(), "1d", ``)
	RunsMissedCount6h  = runsOf("oneway:runs_missed:count"+missedRange(), `{result!="`+runreason.Completed+`"}`, missedRange(), ``)
	WorkingDelayExcess = Rule{
		Name: "oneway:working_delay_excess_seconds",
		Doc: `What the load of a direction adds to the median delay of others in it. Both delays are
of one run: a constant clock error cancels.`,
		Expr: promql(`
max without (loaded, quantile_rank) (
  $forward
  or
  $reverse
)
- sum without (loaded, quantile_rank) $idle`, names{
			"forward": medianWorkingDelay(forward + "," + UnderLoad("forward")), "reverse": medianWorkingDelay(reverse + "," + UnderLoad("reverse")),
			"idle": medianWorkingDelay(metric.LoadedL + `="none"`),
		}),
	}
	WorkingDelayRunsBelow = Rule{
		Name: workingDelayRunsBelow,
		Doc: `Completed runs when that was last not above its threshold, or unknown, as in a run without
a working delay: the rule keeps its own value while it is above, across an hour without
evaluation. Absent where it always was above.`,
		Expr: promql(`
(
  label_replace(sum without (result, reason) ($completed), "direction", "forward", "", "")
  or
  label_replace(sum without (result, reason) ($completed), "direction", "reverse", "", "")
)
and on (job, instance, path, probe) $runInterval
unless on (job, instance, path, probe, direction)
($workingDelayExcess > on (path) group_left () $workingDelaySeconds)
or
(last_over_time($workingDelayRunsBelow[1h]) and $workingDelayExcess)`, names{
			"completed":             latest(metric.Runs.Name + completed),
			"runInterval":           latest(metric.RunInterval.Name),
			"workingDelayExcess":    WorkingDelayExcess.Name,
			"workingDelaySeconds":   ThresholdWorkingDelaySeconds.ByPath.Name,
			"workingDelayRunsBelow": workingDelayRunsBelow,
		}),
	}
)

// medianWorkingDelay is the gauge of the last run, by matchers.
func medianWorkingDelay(matchers string) string {
	return unlessUnscraped(metric.WorkingDelay.Name + "{" + matchers + `,quantile_rank="0.5"}`)
}

// UnderLoad selects, of the gauges of working delay of a direction, the one of the last run while that direction was loaded: an agent has one
// at most, of the part of the run that estimate/working selects.
func UnderLoad(direction string) string { return metric.LoadedL + `=~"` + direction + `|both"` }

// underItsLoad is UnderLoad of the alert's direction in the query of an annotation.
func underItsLoad() string { return strings.ReplaceAll(UnderLoad("$direction"), `"`, "'") }

// Tested selects the paths that a load test affected within a time before; series selects metric.PathTested. A time that lies ahead is the
// one of a wrong clock: it is recent if it changed in changing, which may be longer, since a change is between two samples.
func Tested(series string, within, changing time.Duration) string {
	return promql(`
-60 < time() - max_over_time($series[$range]) < $seconds
or
changes($series[$changing]) > 0`, names{
		"series": series, "range": duration(within), "seconds": fmt.Sprintf("%g", within.Seconds()), "changing": duration(changing),
	})
}

// duration is a time as PromQL has it.
func duration(d time.Duration) string {
	if d%time.Minute == 0 {
		return fmt.Sprintf("%.0fm", d.Minutes())
	}
	return fmt.Sprintf("%dms", d.Milliseconds())
}

// runs is the group of these rules.
func runs() Group {
	return Group{
		Name: "oneway-load-test", Interval: 30 * time.Second,
		Rules: []Rule{
			LoadTestRecent, RunsCount1h, RunsCount1d, RunsFailedCount1h, RunsFailedCount1d, RunsMissedCount6h,
			WorkingDelayExcess, WorkingDelayRunsBelow,
		},
	}
}

// runsOf counts the runs of a window that a selector selects.
func runsOf(name, selector, window, doc string) Rule {
	return Rule{Name: name, Doc: doc, Expr: promql(`
sum without (result) (increase($runs[$window]))`, names{"runs": metric.RunResults.Name + selector, "window": window})}
}

// Numbers of conditions, which texts repeat.
const (
	// RecentIntervals is the age of a run, in intervals of its probe, up to which its values are current.
	RecentIntervals = 1.5
	// HeldFor is the time for which each run was beyond the threshold of an alert that tolerates one such run. An alert's own time would begin
	// again after each run that is refused.
	HeldFor = time.Hour
	// WorkingDelayRuns is the number of runs one after the other after which WorkingDelayHigh fires.
	WorkingDelayRuns = 3
	// UsedCapacityRatio is the share of the capacity that a transfer reaches where its buffers do not limit it.
	UsedCapacityRatio = 0.9
	// hostShare is the share of late or skipped packets, or of timestamps of user space, from which a host is a cause of delay.
	hostShare = "0.05"
)

// Increase is how much a counter of runs whose series begin above 0 increased in a window, in parentheses: at least, as one that a restart
// begins with no smaller value than it had is not seen. increase() does not see the first value of a series: one that is new counts as a whole. It is new where its agent was scraped without it when the window began, or started in the window; where
// Prometheus has no scrape of that time, nothing is known of it. The window is a duration, or a variable of Grafana.
func Increase(counter, window string) string {
	seconds := window + "_s"
	if d, err := model.ParseDuration(window); err == nil {
		seconds = fmt.Sprint(time.Duration(d).Seconds())
	}
	return "(" + latest(counter) + " unless " + latestBefore(counter, window) +
		" and on (job, instance) (" + latestBefore(processStart, window) + " or " + latest(processStart) + " > time() - " + seconds + ")" +
		" or increase(" + counter + "[" + window + "]))"
}

// recentRun selects the probes whose last completed run is no older than RecentIntervals: their gauges are current.
func recentRun() string {
	return "time() - " + latest(metric.RunLast.Name) + " < " + fmt.Sprint(RecentIntervals) + " * " + latest(metric.RunInterval.Name)
}
