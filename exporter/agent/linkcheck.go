package agent

import (
	"errors"
	"slices"
	"strings"

	"oneway.example/exporter/agent/config"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/probe"
)

// names are those of the declared links.
func (s *sharedSection) names() (all []string) {
	for _, l := range s.links {
		all = append(all, l.Name)
	}
	return all
}

// firstLink returns the link of a path's links that load tests of the path fill; empty: the path names no links.
func firstLink(links []string) string {
	if len(links) == 0 {
		return ""
	}
	return links[0]
}

// checkLinks reports links of the load server and of paths that are not declared, once links are.
func checkLinks(c *config.Config, p *plan) (found config.Problems) {
	declared := p.shared.names()
	check := func(at config.Section, key, name string) {
		found = append(found, at.Problems(undeclared(key, name, declared))...)
	}
	check(c.LoadServer, "link", p.loadServer.options.Link)
	for i := range c.Paths {
		path := &c.Paths[i]
		for j, name := range path.Links {
			at, key := path.LinkPlace(j)
			check(at, key, name)
		}
	}
	return found
}

// undeclared is the error of the name of a link that is not declared.
func undeclared(key, name string, declared []string) error {
	if name == "" || len(declared) == 0 || slices.Contains(declared, name) {
		return nil
	}
	if suggestion := option.Suggestion(name, declared); suggestion != "" {
		return option.Errorf(key, "is %q, which is not in links; %s", name, suggestion)
	}
	return option.Errorf(key, "is %q, which is not in links; add it there, or use one of %s", name, strings.Join(declared, ", "))
}

// checkLoadTest reports a load test without an option that it requires, or on a link that is not declared.
func (m *maker) checkLoadTest(t probe.Type, options config.Section) config.Problems {
	test, ok := t.(probe.LoadTest)
	if !ok {
		return nil
	}
	wrong := []error{undeclared(test.LinkKey(), options.Text(test.LinkKey()), m.plan.shared.names())}
	for _, r := range test.Requirements() {
		wrong = append(wrong, r.Check(func(key string) bool { return options.Text(key) != "" }))
	}
	return options.Problems(errors.Join(wrong...))
}
