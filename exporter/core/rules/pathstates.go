package rules

import (
	"time"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/pathstate"
)

// pathStateNow is a constant because its rule uses it itself.
const pathStateNow = "oneway:path_state:now"

// The states of paths, also of agents that are not scraped.
var (
	PathStateNow = Rule{
		Name: pathStateNow,
		Doc: `The state of each path (METRICS.md, "States of paths"); 1, unknown, while its agent is a target and was not scraped for a minute: a list of the
worst paths must not lose them, nor show the last state as the present one.`,
		Expr: promql(`
$state or last_over_time($state[1m]) and on (job, instance) $up == 0
or
0 * $before + $unknown
and on (job, instance) $up == 0`, names{"state": metric.PathState.Name, "before": "last_over_time(" + pathStateNow + "[1m])", "unknown": decimal(float64(pathstate.Unknown)), "up": up}),
	}
	PathSeverity = Rule{
		Name: "oneway:path_state:severity",
		Doc: `What a list of the worst paths is ordered by, 0..4: the state, and within it the loss of round trips. A path under maintenance is below
all others that are not up: planned work is nothing to look at first.`,
		Expr: promql(`
0.99 + ($now > 0) / 1000 and on (job, instance, path) $maintenance
or
$now + clamp_max($lost, 0.99)
or
$now`, names{"now": pathStateNow, "lost": unlessUnscraped(metric.RoundTripLossRatio.Name), "maintenance": MaintenanceNow.Name}),
	}
	PathStateCount = Rule{
		Name: "oneway:path_state:count",
		Doc:  `The number of paths of an agent in each state, the label state.`,
		Expr: `count_values by (job, instance) ("` + metric.StateL + `", ` + pathStateNow + `)`,
	}
)

// pathStates is the group of these rules.
func pathStates() Group {
	return Group{Name: "oneway-path-states", Interval: 15 * time.Second, Rules: []Rule{PathStateNow, PathSeverity, PathStateCount}}
}
