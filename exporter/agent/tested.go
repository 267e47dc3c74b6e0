package agent

import (
	"slices"
	"sync"
	"time"

	"oneway.example/exporter/agent/eventlog"
	"oneway.example/exporter/core/event"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/link"
)

// testedPaths knows which paths load tests affect: the one decision for alerts, annotations and incidents. A test affects each
// path over a link that it fills: the link that it holds, and the configured links of its own path. A session of the
// load server is a test of the paths to its client. A path with no known link has one with its name.
type testedPaths struct {
	table  *link.Table
	sink   metric.Sink
	events *eventlog.Log

	mu     sync.Mutex // guards the fields below
	jobs   []job
	links  map[string]pathLinks // of paths that have some
	info   map[[2]string]metric.Series
	tested map[string]*tested // paths affected so far
}

// pathLinks are the links of a path.
type pathLinks struct {
	configured []string
	all        []string // configured ones, and those of load tests
}

// tested is when a path was last affected.
type tested struct {
	at     time.Time
	series metric.Series
}

// betweenTests is the time without a test after which another one is an event.
const betweenTests = 10 * time.Second

func newTestedPaths(table *link.Table, sink metric.Sink, events *eventlog.Log) *testedPaths {
	return &testedPaths{table: table, sink: sink, events: events, tested: map[string]*tested{}}
}

// put puts the paths of a plan in force. The series of remaining paths continue.
func (t *testedPaths) put(p *plan) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.jobs, t.links = p.jobs, p.pathLinks()
	old, known := t.info, map[string]bool{}
	t.info = map[[2]string]metric.Series{}
	t.sink.Update(func() {
		for path, links := range t.links {
			for _, name := range links.all {
				one := t.sink.Series(metric.PathLinkInfo, path, name)
				one.Set(1)
				t.info[[2]string{path, name}] = one
			}
		}
		for _, gone := range old {
			gone.Close()
		}
		for _, j := range t.jobs {
			known[j.target.Path] = true
		}
		for path, one := range t.tested {
			if !known[path] {
				one.series.Close()
				delete(t.tested, path)
			}
		}
	})
}

// publish sets the times of the paths that load tests affect.
func (t *testedPaths) publish() {
	t.mu.Lock()
	defer t.mu.Unlock()
	affected := t.find()
	if len(affected) == 0 {
		return
	}
	for path, at := range affected {
		if one := t.tested[path]; one == nil || at.Sub(one.at) > betweenTests {
			t.events.OfPath(event.LoadTest, path, at, "A load test fills a link of the path.")
		}
	}
	t.sink.Update(func() {
		for path, at := range affected {
			one := t.tested[path]
			if one == nil {
				one = &tested{series: t.sink.Series(metric.PathTested, path)}
				t.tested[path] = one
			}
			if at.After(one.at) {
				one.at = at
				one.series.Set(float64(at.UnixNano()) / 1e9)
			}
		}
	})
}

// affected are the paths that load tests of the last seconds affect, and when each was last affected: now, while a test runs.
func (t *testedPaths) affected() map[string]time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.find()
}

// find is affected; mu must be held.
func (t *testedPaths) find() map[string]time.Time {
	found := map[string]time.Time{}
	for u, at := range t.table.Uses() {
		own := t.own(u)
		filled := []string{u.Link}
		for path := range own {
			filled = append(filled, t.links[path].configured...)
		}
		for _, j := range t.jobs {
			if path := j.target.Path; (own[path] || t.passes(path, filled)) && at.After(found[path]) {
				found[path] = at
			}
		}
	}
	return found
}

// own are the paths whose packets take the way of a test; mu must be held.
func (t *testedPaths) own(u link.Use) map[string]bool {
	paths := map[string]bool{u.Path: true}
	for _, j := range t.jobs {
		if light, ok := j.running().(probe.Addressed); ok && u.Peer.IsValid() && light.Address().WithZone("") == u.Peer {
			paths[j.target.Path] = true
		}
	}
	return paths
}

// passes reports whether a path has one of these links; mu must be held.
func (t *testedPaths) passes(path string, links []string) bool {
	own := t.links[path].all
	if len(own) == 0 {
		return slices.Contains(links, link.Filled("", "", path))
	}
	return slices.ContainsFunc(own, func(name string) bool { return slices.Contains(links, name) })
}

// pathLinks are the links of the paths that have some.
func (p *plan) pathLinks() map[string]pathLinks {
	all := map[string]pathLinks{}
	for path, names := range p.links {
		all[path] = pathLinks{names, slices.Clone(names)}
	}
	for _, j := range p.jobs {
		if loadTest, ok := j.running().(probe.LinkUser); ok {
			of, name := all[j.target.Path], loadTest.UsedLink().Link
			if !slices.Contains(of.all, name) {
				of.all = append(of.all, name)
			}
			all[j.target.Path] = of
		}
	}
	return all
}
