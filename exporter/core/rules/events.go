package rules

import (
	"time"

	"oneway.example/exporter/core/metric"
)

// EventsKept is how long after an event it is known where its series has ended: by a restart of the agent, which forgets it.
const EventsKept = 48 * time.Hour

// eventLast is a constant because its rule uses it itself.
const eventLast = "oneway:event:last"

// EventLast is what happened last, of all agents.
var EventLast = Rule{
	Name: eventLast,
	Doc: `When, in Unix time, an event of each kind last happened to a path, with its site where it has one, or, without the label path, to an agent. Known
for ` + duration(EventsKept) + ` if the agent has forgotten it, or is not scraped.`,
	Expr: promql(`
max by (job, instance, path, site, kind) (
  $ofPath * on (job, instance, path) group_left (site) $labels
  or on (job, instance, path, kind)
  $ofPath
  or
  $ofAgent
)
or
last_over_time($last[5m]) > time() - $kept`, names{
		"ofPath": unlessUnscraped(metric.PathEvent.Name), "ofAgent": unlessUnscraped(metric.AgentEvent.Name), "labels": pathsWith(site), "last": eventLast,
		"kept": decimal(EventsKept.Seconds()),
	}),
}

// events is the group of events.
func events() Group {
	return Group{Name: "oneway-events", Interval: 30 * time.Second, Rules: []Rule{EventLast}}
}
