package agent

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"oneway.example/exporter/agent/linklease"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/link"
)

// lease starts the server that leases links to load tests from this host's terminals, independently of reloads.
func (a *Agent) lease() []*task {
	if a.options.Socket == "" {
		return nil
	}
	log := a.log.With("component", "leases")
	s := linklease.NewServer(linklease.Options{
		Socket: a.options.Socket, Group: a.options.SocketGroup, Links: a.shared.links, Sink: a.sink, Log: log, Find: a.place, Handlers: a.shared.work.handlers(a.selectable),
	})
	return []*task{a.always("the server of leases", log, s.Run)}
}

// terminal is the path of tests that belong to no configured path.
const terminal = "terminal"

// place finds the link that a test from the terminal fills, and the path and probe that it counts for: those of a load test
// to the same remote end, if there is one. If only one link is known, it is that link.
func (a *Agent) place(test linklease.Test) (linklease.Labels, error) {
	a.mu.Lock()
	p := a.inForce
	a.mu.Unlock()
	known := p.knownLinks()
	var same, other []linklease.Labels // to that remote end: of the same type, and of other types
	for _, j := range p.jobs {
		filler, ok := j.running().(probe.LinkUser)
		if !ok {
			continue
		}
		f := filler.UsedLink()
		if !sameHost(f.Host, test.Host) || f.Port != test.Port || test.Link != "" && test.Link != f.Link {
			continue
		}
		place := linklease.Labels{Path: j.target.Path, Probe: j.target.Probe, Link: f.Link}
		if f.Kind == test.Kind {
			same = append(same, place)
		} else {
			place.Probe = test.Kind
			other = append(other, place)
		}
	}
	if test.Link != "" && len(known) > 0 && !known[test.Link] {
		if suggestion := option.Suggestion(test.Link, slices.Collect(maps.Keys(known))); suggestion != "" {
			return linklease.Labels{}, fmt.Errorf("the agent on this host knows no link %s; %s", test.Link, suggestion)
		}
		return linklease.Labels{}, fmt.Errorf("the agent on this host knows no link %s, but %s; use one of them, or add it to links in the agent's configuration", test.Link, list(known))
	}
	for _, found := range [][]linklease.Labels{same, other} {
		if len(found) == 0 {
			continue
		}
		if i := slices.IndexFunc(found, func(p linklease.Labels) bool { return p.Link != found[0].Link }); i > 0 {
			return linklease.Labels{}, fmt.Errorf("the agent on this host has load tests to %s on the links %s and %s; select one with --link", test.Host, found[0].Link, found[i].Link)
		}
		return found[0], nil
	}
	return p.unconfigured(test, known)
}

// knownLinks are the names of all links: declared ones, and those of paths, load tests and the load server.
func (p *plan) knownLinks() map[string]bool {
	known := map[string]bool{}
	for _, name := range p.shared.names() {
		known[name] = true
	}
	for _, links := range p.pathLinks() {
		for _, name := range links.all {
			known[name] = true
		}
	}
	if p.serves {
		known[p.loadServer.options.LinkName()] = true
	}
	return known
}

// unconfigured is the place of a test to a remote end without a configured load test.
func (p *plan) unconfigured(test linklease.Test, known map[string]bool) (linklease.Labels, error) {
	place := linklease.Labels{Path: terminal, Probe: test.Kind, Link: test.Link}
	if i := slices.IndexFunc(p.jobs, func(j job) bool { return sameHost(j.target.Host(), test.Host) }); i >= 0 {
		place.Path = p.jobs[i].target.Path
	}
	target := probe.Target{Path: place.Path, Link: firstLink(p.links[place.Path])}
	switch {
	case place.Link != "", target.Link != "", len(known) == 0:
		place.Link = link.Filled(place.Link, target.Link, target.Path)
	case len(known) == 1:
		place.Link = list(known)
	default:
		return linklease.Labels{}, fmt.Errorf("the agent on this host has the links %s, and no load test to %s; select one with --link", list(known), test.Host)
	}
	return place, nil
}

func list(known map[string]bool) string { return strings.Join(slices.Sorted(maps.Keys(known)), ", ") }

func sameHost(a, b string) bool {
	return strings.EqualFold(strings.TrimSuffix(a, "."), strings.TrimSuffix(b, "."))
}
