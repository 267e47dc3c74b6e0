package agent

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"oneway.example/exporter/agent/config"
	"oneway.example/exporter/clock"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/probe/report"
	"oneway.example/exporter/watcher"
)

// leasedClock is the monitor that probers use. It forwards to the monitor of the current configuration, so that probers do
// not depend on it.
type leasedClock struct{ task atomic.Pointer[task] }

// Quality is the quality by the current monitor; unknown before there is one.
func (c *leasedClock) Quality(at instant.Time) clock.Quality {
	t := c.task.Load()
	if t == nil {
		return clock.Quality{}
	}
	return t.running().(clock.Monitor).Quality(at)
}

// errNotYours is returned to probers, which may query the monitor but not run it.
var errNotYours = errors.New("agent: the clock monitor is run by the agent")

// Run always fails: the agent runs the monitor.
func (*leasedClock) Run(context.Context) error { return errNotYours }

// clockSection configures the source of this host's clock error bound.
type clockSection struct {
	Source string `yaml:"source"`
	// GPSD and PPS configure watchers, which are independent of the source: see watchersSection.
	GPSD config.Section `yaml:"gpsd"`
	PPS  config.Section `yaml:"pps"`

	types    []clock.Type
	watchers []watcher.Type
	options  [][]option.Described // of each type
	task     *task
}

func (s *clockSection) decode(c *config.Config) error {
	option.SetDefaults(s)
	into := []any{s}
	for _, t := range s.types {
		own, same := structsOf(t)
		s.options, into = append(s.options, own), append(into, same...)
	}
	return c.Clock.DecodeAll(into...)
}

func (s *clockSection) plan(c *config.Config, m *maker) (found config.Problems) {
	kind, err := option.Select("source", s.Source, s.types)
	if err != nil {
		return c.Clock.Problems(err)
	}
	var options []option.Described // c would stay in memory
	var errs []error
	for i, other := range s.types {
		if other.Name() == s.Source {
			options = s.options[i]
			continue
		}
		for _, unused := range s.options[i] {
			for _, key := range config.Keys(unused) {
				if c.Clock.Has(key) {
					errs = append(errs, option.Errorf(key, "is not an option of source %s; it is one of source %s", s.Source, other.Name()))
				}
			}
		}
	}
	s.task, found = m.place(c.Clock, &task{
		key: "clock", what: "the clock monitor", log: m.log.With("component", "clock"), identity: [...]any{s.Source, options},
		make: func(sink metric.Sink, _ *metric.Scopes, log *slog.Logger) (runner, error) {
			return kind.New(clock.Env{Sink: sink, Log: log}, func(into ...any) error {
				option.Fill(options, into...)
				return nil
			})
		},
	}, errs...)
	return found
}

// ClockStatus is the status of this host's clock.
type ClockStatus struct {
	// Source is the configured source, State a clock.State.
	Source string `json:"source"`
	State  string `json:"state"`
	// Trusted: one-way delays are valid, and Bound is the error bound; zero if not trusted.
	Trusted bool           `json:"synchronized"`
	Bound   report.Seconds `json:"error_bound_seconds,omitzero"`
	Offset  report.Seconds `json:"offset_seconds"`
	// Reason is why the clock is not trusted, Remedy what to do, in words, and Error why its monitor does not run.
	Reason string `json:"reason,omitempty"`
	Remedy string `json:"remedy,omitempty"`
	Error  string `json:"error,omitempty"`
	Steps  uint64 `json:"clock_steps"`
	// LastUpdate is the time of the last message from the clock's source; zero: unknown.
	LastUpdate time.Time `json:"last_update,omitzero"`
}

func (s *clockSection) show(into *Status) {
	q := s.task.running().(clock.Monitor).Quality(instant.Now())
	into.Clock = ClockStatus{
		Source: s.Source, State: q.State.String(), Trusted: q.Synchronized(), Error: s.task.fault(),
		Offset: report.Seconds(q.Offset), Steps: q.Steps, LastUpdate: q.LastUpdate.Time(),
	}
	if into.Clock.Trusted {
		into.Clock.Bound = report.Seconds(q.Bound.Error)
	} else {
		into.Clock.Reason, into.Clock.Remedy = q.Bound.Reason.String(), clock.Explain(s.task.running().(clock.Monitor))
	}
}
