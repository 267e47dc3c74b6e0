package rules

import (
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"oneway.example/exporter/core/metric"
)

// AfterMaintenance is how long alerts are quiet after planned work, unless they look back further: the 5 min that most look back, and a minute.
const AfterMaintenance = metric.TestedRecent

// maintenanceNow is a constant because its rule uses it itself.
const maintenanceNow = "oneway:maintenance:now"

// Planned work.
var (
	MaintenanceNow = Rule{
		Name: maintenanceNow,
		Doc: `The planned end, in Unix time, of the maintenance that is under way: of each path, and without the label path of the agent
itself. An agent that is not scraped has what it said last, until that end.`,
		Expr: promql(`
(
  max without (probe) $path
  or
  $agent
  or
  last_over_time($now[2m]) and on (job, instance) $up == 0
) > time()`, names{"path": unlessUnscraped(metric.PathMaintenance.Name), "agent": unlessUnscraped(metric.AgentMaintenance.Name), "now": maintenanceNow, "up": up}),
	}
	MaintenanceRecent = Rule{
		Name: "oneway:maintenance:recent",
		Doc:  `The same, and ` + duration(AfterMaintenance) + ` longer, a minute more than most alerts look back. No alert of these paths and agents fires.`,
		Expr: "group by (job, instance, path) (last_over_time(" + maintenanceNow + "[" + duration(AfterMaintenance) + "]))",
	}
)

// maintenance is the group of these rules.
func maintenance() Group {
	return Group{Name: "oneway-maintenance", Interval: 15 * time.Second, Rules: []Rule{MaintenanceNow, MaintenanceRecent}}
}

// quiet makes the alerts of a group quiet under maintenance: the one place that decides it. An alert with the label path is quiet while that path is under
// maintenance, one of an agent while the agent is. One that fires ends, and fires again afterwards if its cause is still there.
func quiet(g Group) Group {
	all := make([]Rule, len(g.Rules))
	for i, r := range g.Rules {
		if r.Alert != nil && !r.Alert.Always {
			r.Expr = unlessMaintenance(r.Expr, r.Alert.LooksBack)
			if r.Alert.OfSite {
				r.Expr = unlessSite(r.Expr)
			}
		}
		all[i] = r
	}
	g.Rules = all
	return g
}

// unlessMaintenance ends the expression of an alert that looks back as long; 0: not longer than most.
func unlessMaintenance(expr string, back time.Duration) string {
	recent := MaintenanceRecent.Name
	if back > AfterMaintenance {
		recent = "last_over_time(" + recent + "[" + model.Duration(back).String() + "])"
	}
	if strings.Contains(expr, "\n") || strings.Contains(expr, " or ") {
		expr = "(\n  " + strings.ReplaceAll(expr, "\n", "\n  ") + "\n)\n"
	} else {
		expr += " "
	}
	return expr + "unless on (job, instance, path) " + recent
}
