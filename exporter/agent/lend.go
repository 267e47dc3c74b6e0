package agent

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"oneway.example/exporter/config"
	"oneway.example/exporter/hostport"
	"oneway.example/exporter/loan"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/responder"
)

// lend lends links to heavy tests from this host's terminals, whatever is reloaded, until
// stop.
func (a *Agent) lend() (stop func() error) {
	if a.options.Socket == "" {
		return func() error { return nil }
	}
	log := a.log.With("component", "loans")
	s := loan.NewServer(loan.Options{
		Socket: a.options.Socket, Group: a.options.SocketGroup, Links: a.shared.links, Sink: a.sink, Log: log, Find: a.place,
	})
	u := startUnit(context.Background(), log, a.options.retry, s.Run)
	return func() error { return stopUnit("lending links", u) }
}

// terminal is the path, and where no link is known the link, of tests that belong to none
// that is configured.
const terminal = "terminal"

// place finds the link that a test from the terminal fills, and the path and probe that it
// is counted for: those of a heavy test of the same far end, if there is one. Where only
// one link is known, it is that: a host has seldom a second one.
func (a *Agent) place(ask loan.Ask) (loan.Place, error) {
	a.mu.Lock()
	jobs, c := a.jobs, a.config
	a.mu.Unlock()
	known := map[string]bool{}
	for _, l := range c.Links {
		known[l.Name] = true
	}
	if c.Responder != nil {
		known[responderLink(c)] = true
	}
	var same, other []loan.Place // of the same test, and of others, to that far end
	for _, j := range jobs {
		prober, _ := j.current()
		p, ok := prober.(probe.Filler)
		if !ok {
			continue
		}
		f := p.Fills()
		known[f.Link] = true
		if !sameHost(f.Host, ask.Host) || f.Port != ask.Port || ask.Link != "" && ask.Link != f.Link {
			continue
		}
		place := loan.Place{Path: j.target.Path, Probe: j.target.Probe, Link: f.Link}
		if f.Kind == ask.Kind {
			same = append(same, place)
		} else {
			place.Probe = ask.Kind
			other = append(other, place)
		}
	}
	if ask.Link != "" && len(known) > 0 && !known[ask.Link] {
		return loan.Place{}, fmt.Errorf("the agent on this host knows no link %s, but %s; name one of them, or list it under links in the agent's configuration", ask.Link, list(known))
	}
	for _, found := range [][]loan.Place{same, other} {
		if len(found) == 0 {
			continue
		}
		if i := slices.IndexFunc(found, func(p loan.Place) bool { return p.Link != found[0].Link }); i > 0 {
			return loan.Place{}, fmt.Errorf("the agent on this host has heavy tests to %s on the links %s and %s; say which one this test uses, with --link", ask.Host, found[0].Link, found[i].Link)
		}
		return found[0], nil
	}
	return elsewhere(ask, c, known)
}

// elsewhere is the place of a test to where no heavy test is configured.
func elsewhere(ask loan.Ask, c *config.Config, known map[string]bool) (loan.Place, error) {
	place := loan.Place{Path: terminal, Probe: ask.Kind, Link: ask.Link}
	if i := slices.IndexFunc(c.Paths, func(p config.Path) bool { return sameHost(hostOf(p.Peer), ask.Host) }); i >= 0 {
		place.Path = c.Paths[i].Name
	}
	switch {
	case place.Link != "":
	case len(known) == 0:
		place.Link = place.Path
	case len(known) == 1:
		place.Link = list(known)
	default:
		return loan.Place{}, fmt.Errorf("the agent on this host has the links %s, and no heavy test to %s; say which one this test uses, with --link", list(known), ask.Host)
	}
	return place, nil
}

func list(known map[string]bool) string { return strings.Join(slices.Sorted(maps.Keys(known)), ", ") }

func responderLink(c *config.Config) string {
	if c.Responder.Link != "" {
		return c.Responder.Link
	}
	return responder.DefaultLink
}

// hostOf is a peer without its port and brackets.
func hostOf(peer string) string {
	host, _, _ := hostport.Split(peer, 1) // the configuration was checked
	return host
}

func sameHost(a, b string) bool {
	return strings.EqualFold(strings.TrimSuffix(a, "."), strings.TrimSuffix(b, "."))
}
