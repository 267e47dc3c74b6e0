package grafana

import (
	_ "embed"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// script returns the facts of a page.
//
//go:embed facts.js
var script string

// facts are what a page shows.
type facts struct {
	Titles    []string
	Faults    []message
	Quiet     []message
	Variables []struct{ Label, Value string }
	Links     []struct{ Text, URL string }
	Loading   int
}

// message is a text in a panel, or without one.
type message struct{ Panel, Text string }

// mayBeEmpty are labels of variables that have no value where the path has no probe of a type, or where no report was sent.
var mayBeEmpty = []string{"Codec", "Trains", "Size sweep", "Sweep", "Congestion control (models)", "Flows", "Two-way", "Short flows", "Messages"}

// site is a Grafana: its host, and the uids of its dashboards.
type site struct {
	host string
	uids []string
}

// faults are what is wrong with a page of a dashboard.
func (s site) faults(b board, f facts) (all []string) {
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	for _, m := range f.Faults {
		add("panel %q: %s", m.Panel, m.Text)
	}
	for _, p := range b.Panels {
		if p.Type != "row" && !slices.ContainsFunc(f.Titles, func(title string) bool { return shown(title, p.Title) }) {
			add("panel %q is not shown", p.Title)
		}
	}
	for _, m := range f.Quiet {
		known := func(p panel) bool { return shown(m.Panel, p.Title) && m.Text == p.FieldConfig.Defaults.NoValue }
		if !slices.ContainsFunc(b.Panels, known) {
			add("panel %q has %q, which is not its text for no data", m.Panel, m.Text)
		}
	}
	values := map[string]string{}
	for _, v := range f.Variables {
		values[v.Label] = v.Value
	}
	for _, v := range b.Templating.List {
		if v.Hide == 2 {
			continue
		}
		value, found := values[v.Label]
		switch {
		case !found:
			add("variable %q is not shown", v.Label)
		case value == "" && !b.raw() && !slices.Contains(mayBeEmpty, v.Label):
			add("variable %q has no value", v.Label)
		}
	}
	for _, l := range b.Links {
		if l.Type == "link" && !slices.ContainsFunc(f.Links, func(s struct{ Text, URL string }) bool { return shown(s.Text, l.Title) }) {
			add("link %q is not shown", l.Title)
		}
	}
	for _, l := range f.Links {
		if what := s.linkFault(l.URL, values["Path"]); what != "" {
			add("link %q to %s %s", l.Text, l.URL, what)
		}
	}
	return all
}

// linkFault is what is wrong with a link of a page that shows path.
func (s site) linkFault(text, path string) string {
	u, err := url.Parse(text)
	if err != nil {
		return err.Error()
	}
	if u.Host == s.host && strings.Trim(u.Path, "/") == "" {
		return "leads to the start page"
	}
	rest, board := strings.CutPrefix(u.Path, "/d/")
	if !board {
		return ""
	}
	uid, _, _ := strings.Cut(rest, "/")
	q := u.Query()
	switch {
	case !slices.Contains(s.uids, uid):
		return "leads to a dashboard that does not exist"
	case q.Get("from") == "" || q.Get("to") == "":
		return "loses the time range"
	case q.Has("var-path") && path != "" && q.Get("var-path") == "":
		return "loses the path"
	}
	return ""
}
