package agent

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"oneway.example/exporter/agent/config"
	"oneway.example/exporter/clock"
	"oneway.example/exporter/clocks"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/probe/report"
	"oneway.example/exporter/watchers/gpsd"
	"oneway.example/exporter/watchers/pps"
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
	// GPSD and PPS have sections of their own and are independent of the source.
	GPSD config.Section `yaml:"gpsd"`
	PPS  config.Section `yaml:"pps"`

	sources []clock.Source
	task    *task
}

func (s *clockSection) decode(c *config.Config) error {
	s.sources = clocks.All()
	s.Source = s.sources[0].Name()
	into := []any{s}
	for _, one := range s.sources {
		into = append(into, one)
	}
	return c.Clock.DecodeAll(into...)
}

func (s *clockSection) plan(c *config.Config, m *maker) (found config.Problems) {
	i := slices.Index(clocks.Names(), s.Source)
	if i < 0 {
		return c.Clock.Problems(option.Errorf("source", "is %q; it must be one of %q", s.Source, clocks.Names()))
	}
	source := s.sources[i]
	var errs []error
	for _, other := range s.sources {
		for _, key := range config.Keys(other) {
			if other != source && c.Clock.Has(key) {
				errs = append(errs, option.Errorf(key, "is not an option of source %s; it is one of source %s", s.Source, other.Name()))
			}
		}
	}
	s.task, found = m.place(c.Clock, &task{
		key: "clock", what: "the clock monitor", log: m.log.With("component", "clock"), identity: source,
		make: func(sink metric.Sink, _ *metric.Scopes, log *slog.Logger) (runner, error) {
			return source.New(clock.Env{Sink: sink, Log: log})
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

// gpsdSection configures the GNSS receiver.
type gpsdSection struct {
	Address string `yaml:"address"`
	Device  string `yaml:"device"`
	Name    string `yaml:"name"`

	clock *clockSection
	task  *task // nil: not configured
}

func (s *gpsdSection) decode(*config.Config) error {
	err := s.clock.GPSD.Decode(s)
	s.Address, s.Name = cmp.Or(s.Address, gpsd.DefaultAddress), cmp.Or(s.Name, gpsd.DefaultName)
	return err
}

func (s *gpsdSection) plan(_ *config.Config, m *maker) (found config.Problems) {
	if !s.clock.GPSD.Given() {
		return nil
	}
	errs := []error{option.Name("name", s.Name)}
	host, port, err := net.SplitHostPort(s.Address)
	if n, wrong := strconv.ParseUint(port, 10, 16); err != nil || host == "" || wrong != nil || n == 0 {
		errs = append(errs, option.Errorf("address", "is %q; it must be a host and a port, such as 127.0.0.1:2947 or [::1]:2947", s.Address))
	}
	s.task, found = m.place(s.clock.GPSD, &task{
		key: "clock.gpsd", what: "the receiver", log: m.log.With("component", "gpsd"), identity: [...]string{s.Address, s.Device, s.Name},
		make: func(sink metric.Sink, _ *metric.Scopes, log *slog.Logger) (runner, error) {
			return gpsd.New(gpsd.Options{Address: s.Address, Device: s.Device, Name: s.Name, Sink: sink, Log: log, Recorder: &m.recorder})
		},
	}, errs...)
	return found
}

// ReceiverStatus is the status of the GNSS receiver behind gpsd. Unknown values are nil, empty or zero.
type ReceiverStatus struct {
	// Name and Address are configured, Device is the name of the device in gpsd.
	Name    string `json:"name"`
	Address string `json:"address"`
	Device  string `json:"device,omitempty"`
	// Replying: gpsd is connected; Connected: gpsd also receives from the receiver.
	Replying  bool `json:"gpsd_replying"`
	Connected bool `json:"connected"`
	// Error is why the client of gpsd does not run.
	Error string `json:"error,omitempty"`
	// Fix is "none", "2D", "3D" or "unknown".
	Fix string `json:"fix"`
	// Used and Seen count satellites.
	Used *int `json:"satellites_used,omitempty"`
	Seen *int `json:"satellites_seen,omitempty"`
	// PulseOffset is the system clock minus the true second at gpsd's last pulse.
	PulseOffset *report.Seconds `json:"pulse_offset_seconds,omitempty"`
	// LastMessage is the time of the receiver's last message.
	LastMessage time.Time `json:"last_message,omitzero"`
}

func (s *gpsdSection) show(into *Status) {
	if s.task == nil {
		return
	}
	now := s.task.running().(*gpsd.Client).State()
	into.Receiver = &ReceiverStatus{
		Name: s.Name, Address: s.Address, Device: now.Device, Replying: now.Replying, Connected: now.Connected,
		Error: s.task.fault(), Fix: now.Fix.String(), Used: counted(now.Used), Seen: counted(now.Seen), LastMessage: now.LastMessage.Time(),
	}
	if !now.Pulse.At.IsZero() {
		into.Receiver.PulseOffset = new(report.Seconds(now.Pulse.Offset))
	}
}

func counted(c gpsd.Count) *int {
	if !c.Known {
		return nil
	}
	return &c.N
}

// Edges of a pulse: its start (assert), the default, and its end (clear).
const (
	edgeAssert = "assert"
	edgeClear  = "clear"
)

// defaultPulse is the default name of the pulse.
const defaultPulse = "pps0"

// ppsSection configures the pulse per second.
type ppsSection struct {
	Device string `yaml:"device"`
	Edge   string `yaml:"edge"`
	Name   string `yaml:"name"`

	clock *clockSection
	task  *task // nil: not configured
}

func (s *ppsSection) decode(*config.Config) error {
	err := s.clock.PPS.Decode(s)
	s.Device, s.Edge, s.Name = cmp.Or(s.Device, pps.DefaultDevice), cmp.Or(s.Edge, edgeAssert), cmp.Or(s.Name, defaultPulse)
	return err
}

func (s *ppsSection) plan(_ *config.Config, m *maker) (found config.Problems) {
	if !s.clock.PPS.Given() {
		return nil
	}
	errs := []error{option.Name("name", s.Name)}
	if !filepath.IsAbs(s.Device) {
		errs = append(errs, option.Errorf("device", "is %q; it must be an absolute path, such as /dev/pps0", s.Device))
	}
	if s.Edge != edgeAssert && s.Edge != edgeClear {
		errs = append(errs, option.Errorf("edge", "is %q; it must be one of %q", s.Edge, []string{edgeAssert, edgeClear}))
	}
	s.task, found = m.place(s.clock.PPS, &task{
		key: "clock.pps", what: "the pulse", log: m.log.With("component", "pps"), identity: [...]string{s.Device, s.Edge, s.Name},
		make: func(sink metric.Sink, _ *metric.Scopes, log *slog.Logger) (runner, error) {
			return pps.New(pps.Options{Device: s.Device, Clear: s.Edge == edgeClear, Name: s.Name, Sink: sink, Log: log})
		},
	}, errs...)
	return found
}

// PulseStatus is the status of the pulse per second that the kernel timestamps.
type PulseStatus struct {
	// Name, Device and Edge are configured.
	Name   string `json:"name"`
	Device string `json:"device"`
	Edge   string `json:"edge"`
	// Present: there was a pulse recently. Error is the reason of a missing pulse, if known.
	Present bool   `json:"present"`
	Error   string `json:"error,omitempty"`
	// Pulses is the number of pulses since the start, Missed the number of seconds without a pulse.
	Pulses uint64 `json:"pulses"`
	Missed uint64 `json:"missed_pulses"`
	// Last is the last pulse; zero before the first.
	Last time.Time `json:"last_pulse,omitzero"`
	// Jitter is the jitter of the intervals; nil until there are enough.
	Jitter *report.Seconds `json:"jitter_seconds,omitempty"`
	// Offset is the system clock minus the time of the pulses, modulo one second, and Bound its error bound; nil until
	// enough pulses agree.
	Offset *report.Seconds `json:"fit_offset_seconds,omitempty"`
	Bound  *report.Seconds `json:"fit_error_bound_seconds,omitempty"`
}

func (s *ppsSection) show(into *Status) {
	if s.task == nil {
		return
	}
	now := s.task.running().(*pps.Watcher).State()
	p := &PulseStatus{
		Name: s.Name, Device: s.Device, Edge: s.Edge,
		Present: now.Present, Error: cmp.Or(s.task.fault(), now.Fault), Pulses: now.Pulses, Missed: now.Missed, Last: now.Last.Assert.Time(),
	}
	if now.JitterKnown {
		p.Jitter = new(report.Seconds(now.Jitter))
	}
	if now.FitKnown {
		p.Offset, p.Bound = new(report.Seconds(now.FitOffset)), new(report.Seconds(now.FitBound))
	}
	into.Pulse = p
}
