package agent

import (
	"fmt"
	"sync"
	"time"

	"oneway.example/exporter/agent/eventlog"
	"oneway.example/exporter/core/event"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/probe"
)

// routeHold is how long all packets must pass the same number of routers before the route has it: packets that take several
// routes at the same time are no change of it.
const routeHold = time.Minute

// routes finds changes of the routes of paths of profile full: profile slim has thousands of paths, and no number of routers.
type routes struct {
	events *eventlog.Log
	since  time.Time

	mu  sync.Mutex // guards all
	all map[*task]*[2]route
}

// route is the route of one direction.
type route struct {
	known   bool
	routers uint8 // of the route, once known
	// last are the packets' hops at the last look, unchanged from the time steady on.
	last   probe.Hops
	steady time.Duration
}

func newRoutes(events *eventlog.Log) *routes {
	return &routes{events: events, since: time.Now(), all: map[*task]*[2]route{}}
}

// put puts the light probes of a plan in force. Those that continue keep their routes.
func (r *routes) put(p *plan) {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.all
	r.all = map[*task]*[2]route{}
	for _, j := range p.jobs {
		if _, ok := j.running().(probe.RouteSource); ok && j.profile == metric.Full {
			if r.all[j.task] = old[j.task]; old[j.task] == nil {
				r.all[j.task] = &[2]route{}
			}
		}
	}
}

// publish looks at the hops of all paths.
func (r *routes) publish() {
	now := time.Since(r.since)
	r.mu.Lock()
	defer r.mu.Unlock()
	for t, both := range r.all {
		source, ok := t.running().(probe.RouteSource)
		if !ok {
			continue
		}
		for i, h := range source.Hops() {
			if before, since, changed := both[i].see(now, h); changed {
				r.events.OfPath(event.RouteChanged, t.target.Path, r.since.Add(since),
					fmt.Sprintf("%s: %d routers, before %d", sample.Directions()[i], h.Routers, before))
			}
		}
	}
}

// see takes the hops at a time. changed: the route is another one since that time, and had so many routers before.
func (r *route) see(now time.Duration, h probe.Hops) (before uint8, since time.Duration, changed bool) {
	if h != r.last {
		r.last, r.steady = h, now
	}
	if !h.Known || now-r.steady < routeHold {
		return 0, 0, false
	}
	before, changed = r.routers, r.known && r.routers != h.Routers
	r.known, r.routers = true, h.Routers
	return before, r.steady, changed
}
