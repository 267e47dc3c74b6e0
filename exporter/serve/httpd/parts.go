//go:build !slim

package httpd

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"oneway.example/exporter/agent"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/watcher"
)

// part is the state of a part of the agent: of the line below the verdict, and of its card, which has the ID.
type part struct {
	ID, Name string
	Health   agent.Health
	Words    string
}

// briefed is the status of a part.
type briefed interface {
	Brief() (h agent.Health, words string)
}

func partOf(id, name string, s briefed) part {
	h, words := s.Brief()
	return part{id, name, h, words}
}

func clockPart(c agent.ClockStatus) part {
	p := partOf("clock", metric.TitleClock, c)
	if c.Trusted {
		p.Words += " " + unit.Seconds.FormatLimit(c.Bound.Seconds())
	}
	return p
}

// partsOf are those that exist, in the order of their cards. Of several links or outputs, the worst counts.
func partsOf(s agent.Status) []part {
	all := []part{clockPart(s.Clock)}
	for _, w := range watched(s.Watchers) {
		all = append(all, w.Part)
	}
	all = append(all, partOf("reflector", "Reflector", s.Reflector))
	if s.LoadServer != nil {
		all = append(all, partOf("load-server", metric.TitleLoadServer, s.LoadServer))
	}
	if s.OnDemand != nil {
		all = append(all, partOf("on-demand", metric.TitleOnDemand, s.OnDemand))
	}
	var links, outputs []part
	for _, l := range s.Links {
		links = append(links, partOf("", l.Name, l))
	}
	for _, o := range s.Outputs {
		outputs = append(outputs, partOf("", o.Name, o))
	}
	all = append(all, together("links", "Links", links)...)
	all = append(all, together("outputs", metric.TitleOutputs, outputs)...)
	return append(all, partOf("configuration", "Configuration", s.Config))
}

// Part is the part of a card.
func (v view) Part(id string) part {
	return v.Parts[slices.IndexFunc(v.Parts, func(p part) bool { return p.ID == id })]
}

// together is one part for several of a sort, or none.
func together(id, name string, all []part) []part {
	if len(all) == 0 {
		return nil
	}
	worst, same := all[0], 0
	for _, p := range all {
		if severity(p.Health) > severity(worst.Health) {
			worst = p
		}
	}
	for _, p := range all {
		if p.Words == worst.Words {
			same++
		}
	}
	if same < len(all) {
		worst.Words = fmt.Sprintf("%d of %d %s", same, len(all), worst.Words)
	}
	return []part{{id, name, worst.Health, worst.Words}}
}

// watchedThing is a watcher with its part.
type watchedThing struct {
	Part part
	agent.WatcherStatus
}

// watched are the watchers with their parts. The second and later ones with a title have their name in it.
func watched(all []agent.WatcherStatus) (out []watchedThing) {
	seen := map[string]bool{}
	for _, w := range all {
		title := w.Title
		if seen[title] {
			title += " " + w.Name
		}
		seen[w.Title] = true
		id := strings.ToLower(strings.NewReplacer(" ", "-", "/", "-", ":", "-").Replace(title))
		out = append(out, watchedThing{part{id, title, w.Health, w.State}, w})
	}
	return out
}

// shown is a line's value as text.
func shown(l watcher.Line, now time.Time) string {
	switch v := l.Value.(type) {
	case string:
		return v
	case time.Time:
		return age(now, v)
	case time.Duration:
		if l.Bound > 0 {
			return unit.Seconds.FormatBound(v.Seconds(), l.Bound.Seconds())
		}
		return unit.Duration(v)
	}
	return "unknown"
}
