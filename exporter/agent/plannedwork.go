package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"oneway.example/exporter/agent/config"
	"oneway.example/exporter/agent/eventlog"
	"oneway.example/exporter/agent/maintenance"
	"oneway.example/exporter/core/event"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/core/strictjson"
)

// maintenanceOptions are the keys of a window of the section maintenance.
type maintenanceOptions struct {
	All    bool           `yaml:"all"`
	Paths  config.Words   `yaml:"paths"`
	Peers  config.Words   `yaml:"peers"`
	Links  config.Words   `yaml:"links"`
	Sites  config.Words   `yaml:"sites"`
	From   timestamp      `yaml:"from"`
	To     timestamp      `yaml:"to"`
	Weekly config.Words   `yaml:"weekly"`
	Reason string         `yaml:"reason"`
	Place  config.Section `yaml:",place"`
}

// timestamp is a time of RFC 3339.
type timestamp struct{ time.Time }

// UnmarshalText parses it.
func (t *timestamp) UnmarshalText(text []byte) error {
	at, err := time.Parse(time.RFC3339, string(text))
	if err != nil {
		return errors.New("it must be a time with its offset from UTC, such as 2026-12-01T22:00:00+01:00 or 2026-12-01T21:00:00Z")
	}
	t.Time = at
	return nil
}

// Pattern matches the texts of UnmarshalText.
func (timestamp) Pattern() string {
	return `^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})$`
}

// String is the time, empty for the zero value.
func (t timestamp) String() string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339)
}

// Describe returns the descriptions of the keys of a window.
func (o *maintenanceOptions) Describe() []option.Description {
	return []option.Description{
		option.Value(&o.All, false, "All paths, and the agent itself: work on its host or site. The alerts of the agent and its clocks are quiet, too."),
		option.Value(&o.Paths, nil, "Names of paths, one or a list; in a pattern * is any text and ? any character.").WithExample("[berlin-*]"),
		option.Value(&o.Peers, nil, "Hosts at the other end, as in peer, without a port; patterns as in {paths}.").WithExample("[probe.hamburg.example.net]"),
		option.Value(&o.Links, nil, "Links of paths (key link of a path).").WithExample("[uplink]"),
		option.Value(&o.Sites, nil, "Values of the label site of paths: of the host at the other end, in a mesh. The paths between two sites are these at the agents of the other site.").WithExample("[hamburg]"),
		option.Value(&o.From, timestamp{}, "When it begins, a time of RFC 3339.").Unset("weekly says it").WithExample("2026-12-01T22:00:00+01:00"),
		option.Value(&o.To, timestamp{}, fmt.Sprintf("When it ends, at most %d days later.", maintenance.MaxLength/(24*time.Hour))).Unset("weekly says it").WithExample("2026-12-02T04:00:00+01:00"),
		option.Value(&o.Weekly, nil, "In place of from and to: local times of the week, one or a list, by {calendar}.").WithExample(`["sun 02:00-04:00"]`),
		option.Text(&o.Reason, fmt.Sprintf("What the work is, for people, in at most %d characters.", maintenance.MaxReason)).WithExample("new router").Required("say what the work is, such as new router"),
	}
}

// window is the window of the options.
func (o *maintenanceOptions) window() (maintenance.Window, error) {
	weekly, err := maintenance.ParseWeekly(o.Weekly)
	return maintenance.Window{
		Selection: maintenance.Selection{All: o.All, Paths: o.Paths, Peers: o.Peers, Links: o.Links, Sites: o.Sites},
		From:      o.From.Time, To: o.To.Time, Weekly: weekly, Reason: o.Reason,
	}, err
}

// checkMaintenance checks the windows, and makes the windows of a plan from all that could be decoded: a plan with an error is not put in force.
func (s *sharedSection) checkMaintenance() (found config.Problems) {
	s.windows = nil
	for i := range s.work {
		o := &s.work[i]
		if !o.Place.Given() {
			continue // it could not be decoded
		}
		w, unparsed := o.window()
		wrong := option.Check(o)
		if o.Reason == "" {
			w.Reason = "missing" // reported by its description
		}
		found = append(found, o.Place.Problems(errors.Join(wrong, optionErrors(unparsed), optionErrors(w.Check())))...)
		s.windows = append(s.windows, w)
	}
	return found
}

// optionErrors are the errors of a window as errors of options.
func optionErrors(err error) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return err
	}
	var all []error
	for _, one := range joined.Unwrap() {
		if f, ok := errors.AsType[*maintenance.FieldError](one); ok {
			one = option.Errorf(f.Key, "%s", f.Problem)
		}
		all = append(all, one)
	}
	return errors.Join(all...)
}

// warnMaintenance warns of windows that select no path, or are over.
func (p *plan) warnMaintenance() (found config.Problems) {
	if len(p.shared.windows) == 0 {
		return nil
	}
	facts := p.selectable()
	for i := range p.shared.windows {
		w, at := &p.shared.windows[i], p.shared.work[i].Place
		if !w.To.IsZero() && !time.Now().Before(w.To) {
			found = append(found, at.Problem("to", "is past: the window has no effect; remove it"))
		}
		if !w.All && !selectsAny(&w.Selection, facts) {
			found = append(found, at.Problem("", "selects no path of this agent ("+w.String()+")"))
		}
	}
	return found
}

func selectsAny(s *maintenance.Selection, facts map[string]maintenance.Path) bool {
	for _, one := range facts {
		if s.Selects(one) {
			return true
		}
	}
	return false
}

// selectable are the paths as windows of maintenance select them, by name.
func (p *plan) selectable() map[string]maintenance.Path {
	links, all := p.pathLinks(), make(map[string]maintenance.Path, len(p.paths))
	labels := make(map[string]string, len(p.paths))
	for _, one := range p.paths {
		labels[one.Name] = one.Labels[metric.SiteL]
	}
	for _, j := range p.jobs {
		name := j.target.Path
		if _, known := all[name]; !known {
			all[name] = maintenance.Path{Name: name, Host: j.target.Host(), Site: labels[name], Links: links[name].all}
		}
	}
	return all
}

// selectable are the paths of the plan in force.
func (a *Agent) selectable() map[string]maintenance.Path {
	a.mu.Lock()
	p := a.inForce
	a.mu.Unlock()
	return p.selectable()
}

// plannedWork publishes which paths are under maintenance: the one decision for series, status and page.
type plannedWork struct {
	book   *maintenance.Book
	sink   metric.Sink
	events *eventlog.Log
	log    *slog.Logger

	mu   sync.Mutex // guards the fields below
	plan *plan      // its paths are read only while a window is open; nil: nothing is published
	// open are the series of what is under maintenance; an empty path is the agent.
	open map[string]*openWork
}

// openWork is a maintenance that is under way.
type openWork struct {
	state maintenance.State
	// series are of the probes of the path; the agent has one, with an empty name.
	series map[string]metric.Series
}

func newPlannedWork(sink metric.Sink, events *eventlog.Log, now func() time.Time, log *slog.Logger) *plannedWork {
	return &plannedWork{book: maintenance.New(maintenance.Options{Now: now, Log: log}), sink: sink, events: events, log: log, open: map[string]*openWork{}}
}

// put puts the paths of a plan in force. The series of those that remain continue. A plan without tasks ends all series.
func (w *plannedWork) put(p *plan) {
	w.mu.Lock()
	if w.plan = p; len(p.tasks) == 0 {
		w.plan = nil
	}
	w.mu.Unlock()
	w.publish()
}

// work is a maintenance that was found.
type work struct {
	maintenance.State
	probes []string // of the path; of the agent an empty one
}

// publish publishes what is under maintenance now.
func (w *plannedWork) publish() { w.set(w.find()) }

// find is what is under maintenance now, by path.
func (w *plannedWork) find() map[string]*work {
	now := w.book.Now()
	found := map[string]*work{}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.plan == nil || now.None() {
		return nil
	}
	if s := now.OfAgent(); s != nil {
		found[""] = &work{*s, []string{""}}
	}
	for name, path := range w.plan.selectable() {
		if s := now.OfPath(path); s != nil {
			found[name] = &work{State: *s}
		}
	}
	for _, j := range w.plan.jobs {
		if one := found[j.target.Path]; one != nil {
			one.probes = append(one.probes, j.target.Probe)
		}
	}
	return found
}

// set changes the series to what was found.
func (w *plannedWork) set(found map[string]*work) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(found) == 0 && len(w.open) == 0 {
		return
	}
	w.sink.Update(func() {
		for name, s := range found {
			one := w.open[name]
			if one == nil {
				one = &openWork{series: map[string]metric.Series{}}
				w.open[name] = one
				w.event(event.MaintenanceBegun, name, fmt.Sprintf("%s, until %s", s.Reason, s.Until.UTC().Format(time.RFC3339)))
				w.log.Info("Maintenance begins", "path", shownPath(name), "until", s.Until, "reason", s.Reason)
			}
			one.state = s.State
			w.publishOf(one, name, s)
		}
		for name, one := range w.open {
			if found[name] == nil {
				w.publishOf(one, name, &work{})
				delete(w.open, name)
				w.event(event.MaintenanceEnded, name, one.state.Reason)
				w.log.Info("Maintenance ends", "path", shownPath(name), "reason", one.state.Reason)
			}
		}
	})
}

// event publishes an event of a path; an empty one is the agent.
func (w *plannedWork) event(kind event.Kind, path, text string) {
	if path == "" {
		w.events.OfAgent(kind, time.Now(), text)
		return
	}
	w.events.OfPath(kind, path, time.Now(), text)
}

// publishOf publishes the end for each probe of a path, and ends the series of others.
func (w *plannedWork) publishOf(one *openWork, name string, found *work) {
	for probe, series := range one.series {
		if !slices.Contains(found.probes, probe) {
			series.Close()
			delete(one.series, probe)
		}
	}
	for _, probe := range found.probes {
		if one.series[probe] == nil {
			one.series[probe] = w.series(name, probe)
		}
		one.series[probe].Set(float64(found.Until.UnixNano()) / 1e9)
	}
}

func (w *plannedWork) series(name, probe string) metric.Series {
	if name == "" {
		return w.sink.Series(metric.AgentMaintenance)
	}
	return w.sink.Series(metric.PathMaintenance, name, probe)
}

// shownPath is a path in the log.
func shownPath(name string) string {
	if name == "" {
		return "all"
	}
	return name
}

// Operations of the agent's socket on maintenance windows, for linklease.Ask. The bodies are a maintenance.Window, nothing, and a MaintenanceID; the replies are
// MaintenanceAdded, a list of maintenance.Entry, and a maintenance.Window.
const (
	OpMaintenanceAdd  = "maintenance_add"
	OpMaintenanceList = "maintenance_list"
	OpMaintenanceEnd  = "maintenance_end"
)

// MaintenanceID is the ID of a window.
type MaintenanceID struct {
	ID string `json:"id"`
}

// MaintenanceAdded is a window that was added.
type MaintenanceAdded struct {
	maintenance.Window
	// Selected is the number of paths that it selects.
	Selected int `json:"selected_paths"`
	// Stored: it survives a restart of the agent, which has a state_dir.
	Stored bool `json:"stored"`
}

// handlers are the operations of the agent's socket on windows: its permissions say who may use them. paths are what can be selected.
func (w *plannedWork) handlers(paths func() map[string]maintenance.Path) map[string]func(json.RawMessage) (any, error) {
	return map[string]func(json.RawMessage) (any, error){
		OpMaintenanceList: func(json.RawMessage) (any, error) { return w.book.List(), nil },
		OpMaintenanceAdd: func(body json.RawMessage) (any, error) {
			var window maintenance.Window
			if err := strictjson.Decode(body, &window); err != nil {
				return nil, err
			}
			return w.add(window, paths())
		},
		OpMaintenanceEnd: func(body json.RawMessage) (any, error) {
			var which MaintenanceID
			if err := strictjson.Decode(body, &which); err != nil {
				return nil, err
			}
			ended, err := w.book.End(which.ID)
			if err != nil {
				return nil, err
			}
			w.log.Info("Maintenance window ended by an operator", "id", ended.ID, "selects", ended.String(), "reason", ended.Reason)
			w.publish()
			return ended, nil
		},
	}
}

// add adds a window that selects at least one path.
func (w *plannedWork) add(window maintenance.Window, paths map[string]maintenance.Path) (any, error) {
	selected := 0
	for _, p := range paths {
		if window.Selects(p) {
			selected++
		}
	}
	if selected == 0 && !window.All && window.String() != "" {
		return nil, fmt.Errorf("the agent on this host has no such path: %s; its paths are shown at its page, and in /api/v1/status", window.String())
	}
	added, err := w.book.Add(window)
	if err != nil {
		return nil, oneLine(err)
	}
	w.log.Info("Maintenance window added by an operator", "id", added.ID, "selects", added.String(), "times", added.Times(time.UTC), "reason", added.Reason)
	w.publish()
	return MaintenanceAdded{added, selected, w.book.Stored()}, nil
}

// oneLine joins the errors of a window in one line.
func oneLine(err error) error {
	return errors.New(strings.ReplaceAll(err.Error(), "\n", "; "))
}
