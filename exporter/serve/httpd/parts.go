package httpd

import (
	"fmt"
	"strings"
	"time"

	"oneway.example/exporter/agent"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/watcher"
)

// part is the state of a part of the agent: of the line below the verdict, and of its card, which has the ID.
type part struct {
	ID, Name string
	Health   agent.Health
	Words    string
}

// partsOf are those that exist, in the order of their cards. Of several links or outputs, the worst counts.
func partsOf(s agent.Status) []part {
	all := []part{clockPart(s.Clock)}
	for _, w := range watched(s.Watchers) {
		all = append(all, w.Part)
	}
	all = append(all, reflectorPart(s.Reflector))
	if s.LoadServer != nil {
		all = append(all, loadServerPart(s.LoadServer))
	}
	if s.OnDemand != nil {
		all = append(all, onDemandPart(s.OnDemand))
	}
	var links, outputs []part
	for _, l := range s.Links {
		links = append(links, linkPart(l))
	}
	for _, o := range s.Outputs {
		outputs = append(outputs, outputPart(o))
	}
	all = append(all, together("links", "Links", links)...)
	all = append(all, together("outputs", "Outputs", outputs)...)
	return append(all, configPart(s.Config))
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

func clockPart(c agent.ClockStatus) part {
	p := part{"clock", "Clock", agent.Impaired, c.State}
	switch {
	case c.Trusted:
		p.Health, p.Words = agent.Up, c.State+" ± "+unit.Duration(time.Duration(c.Bound))
	case c.Source == "none":
		p.Health = agent.Starting
	}
	return p
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

// running is the state of a task that listens.
func running(p part, listens bool, words, fault string) part {
	switch {
	case listens:
		p.Health, p.Words = agent.Up, words
	case fault != "":
		p.Health, p.Words = agent.Failed, "failed, will be tried again"
	default:
		p.Health, p.Words = agent.Starting, "starting"
	}
	return p
}

func reflectorPart(r *agent.ReflectorStatus) part {
	p := part{ID: "reflector", Name: "Reflector", Health: agent.Starting, Words: "not configured"}
	if r != nil {
		p = running(p, r.Listening, "running", r.Error)
	}
	return p
}

func loadServerPart(s *agent.LoadServerStatus) part {
	p := part{ID: "load-server", Name: "Load server"}
	if s.Sessions > 0 {
		p.Health, p.Words = agent.Impaired, "under test"
		return p
	}
	return running(p, s.Running, "ready", s.Error)
}

func onDemandPart(s *agent.OnDemandStatus) part {
	p := part{"on-demand", "On-demand probes", agent.Up, "ready"}
	if s.Running > 0 {
		p.Words = fmt.Sprintf("%d of %d running", s.Running, s.MaxConcurrent)
	}
	return p
}

func linkPart(l agent.LinkStatus) part {
	p := part{"", l.Name, agent.Up, "free"}
	switch {
	case l.Holder != "":
		p.Health, p.Words = agent.Impaired, "under test"
	case l.UsedUp():
		p.Health, p.Words = agent.Starting, "quota used up"
	}
	return p
}

func outputPart(o agent.OutputStatus) part {
	p := part{"", o.Name, agent.Up, "delivering"}
	switch {
	case o.Error != "":
		p.Health, p.Words = agent.Failed, "failed, will be tried again"
	case o.Reason != "":
		p.Health, p.Words = agent.Impaired, "not delivering"
	case o.LastSuccess.IsZero():
		p.Health, p.Words = agent.Starting, "starting"
	}
	return p
}

func configPart(c agent.ConfigStatus) part {
	if c.Error != "" {
		return part{"configuration", "Configuration", agent.Impaired, "last reload failed"}
	}
	return part{"configuration", "Configuration", agent.Up, "in force"}
}
