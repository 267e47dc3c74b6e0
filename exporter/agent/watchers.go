package agent

import (
	"cmp"
	"log/slog"

	"oneway.example/exporter/agent/config"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/watcher"
)

// watchersSection configures the watchers: the list watchers, and the two sections of the clock.
type watchersSection struct {
	clock    *clockSection
	watchers []plannedWatcher // the two of the clock come first
}

// plannedWatcher is a watcher and its task.
type plannedWatcher struct {
	name, kind string
	*task
	// place is the field of the status that has its details too; nil: only the list of watchers has them.
	place func(*Status) *any
	// options are its options in the configuration.
	options config.Section
}

func (s *watchersSection) decode(c *config.Config) error {
	if found := config.CheckItems(c.Watchers, "watcher", "gpsd"); len(found) > 0 {
		return found
	}
	return nil
}

func (s *watchersSection) plan(c *config.Config, m *maker) (found config.Problems) {
	receiver, pulse := func(to *Status) *any { return &to.Receiver }, func(to *Status) *any { return &to.Pulse }
	of := ClockWatchers(m.options.Types.Watchers)
	found = append(s.placed(m, s.clock.GPSD, of[0], receiver), s.placed(m, s.clock.PPS, of[1], pulse)...)
	for i := range c.Watchers {
		w := &c.Watchers[i]
		if w.Type == "" {
			continue // reported by config
		}
		found = append(found, s.add(m, w.Options, plannedWatcher{name: w.Name, kind: w.Type})...)
	}
	return found
}

// ClockWatcher is a watcher that has a key of its own in the section clock.
type ClockWatcher struct {
	// Type is the type, and the key. Name is the default of the key name, by the type. Doc is what it is, in words.
	Type, Name, Doc string
}

// ClockWatchers are the receiver and the pulse, with the names by default of these types.
func ClockWatchers(types []watcher.Type) [2]ClockWatcher {
	all := [...]ClockWatcher{{Type: "gpsd", Doc: "The GNSS receiver"}, {Type: "pps", Doc: "The pulse per second"}}
	for i := range all {
		if t, err := option.Select("type", all[i].Type, types); err == nil {
			if n, ok := t.(watcher.DefaultNamer); ok {
				all[i].Name = n.DefaultName()
			}
		}
	}
	return all
}

// placed adds a watcher whose section is in the clock's.
func (s *watchersSection) placed(m *maker, at config.Section, of ClockWatcher, place func(*Status) *any) config.Problems {
	if !at.Given() {
		return nil
	}
	var one struct {
		Name    string         `yaml:"name"`
		Options config.Section `yaml:",rest"`
	}
	err := at.Decode(&one)
	name := cmp.Or(one.Name, of.Name, of.Type)
	found := append(at.Problems(err), at.Problems(option.Name("name", name))...)
	if one.Options.Given() {
		found = append(found, s.add(m, one.Options, plannedWatcher{name: name, kind: of.Type, place: place})...)
	}
	return found
}

// add adds a watcher to the plan.
func (s *watchersSection) add(m *maker, options config.Section, w plannedWatcher) config.Problems {
	kind, err := option.Select("type", w.kind, m.options.Types.Watchers)
	if err == nil {
		err = s.twice(w)
	}
	if err != nil {
		return options.Problems(err)
	}
	env := watcher.Env{Name: w.name, Recorder: &m.recorder}
	var found config.Problems
	w.task, found = m.placeTyped(options, &options, kind, &task{
		key: "watchers/" + w.kind + "/" + w.name, what: "watcher " + w.name, log: m.log.With("component", w.kind), identity: options.Fingerprint(),
		make: func(sink metric.Sink, scopes *metric.Scopes, log *slog.Logger) (runner, error) {
			env := env
			env.Log, env.Sink, env.Scopes = log, sink, scopes
			return kind.New(env, options.DecodeAll)
		},
	})
	w.options = options
	s.watchers = append(s.watchers, w)
	return found
}

// missing are what this host lacks for watchers, as warnings.
func (s *watchersSection) missing() (found config.Problems) {
	for _, w := range s.watchers {
		if c, ok := w.running().(watcher.Checker); ok {
			found = append(found, w.options.Problems(c.Missing())...)
		}
	}
	return found
}

// twice is an error if a watcher of the same type has the name: their metrics would be the same.
func (s *watchersSection) twice(w plannedWatcher) error {
	for _, other := range s.watchers {
		if other.kind == w.kind && other.name == w.name {
			return option.Errorf("name", "is %q, which is also the name of another watcher of type %s; names must differ", w.name, w.kind)
		}
	}
	return nil
}

// WatcherStatus is the status of a watcher.
type WatcherStatus struct {
	Name string `json:"name"`
	Type string `json:"type"`
	// Health is up, impaired if what it watches does not work, or failed if the watcher does not run.
	Health Health `json:"health"`
	watcher.Status
}

func (s *watchersSection) show(into *Status) {
	for _, w := range s.watchers {
		one := WatcherStatus{Name: w.name, Type: w.kind, Health: Impaired, Status: w.running().(watcher.Watcher).Status()}
		if one.Up {
			one.Health = Up
		}
		if fault := w.fault(); fault != "" {
			one.Health, one.State, one.Reason = Failed, failed, fault
		}
		into.Watchers = append(into.Watchers, one)
		if w.place != nil {
			*w.place(into) = one.Details
		}
	}
}
