package pps

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"oneway.example/exporter/core/document"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/watcher"
)

// Type is the type pps: a pulse per second that the kernel timestamps.
type Type struct{}

// NewType makes the type for the registry.
func NewType() Type { return Type{} }

// Name is pps.
func (Type) Name() string { return "pps" }

// Edges of a pulse: its start (assert), the default, and its end (clear).
const (
	edgeAssert = "assert"
	edgeClear  = "clear"
)

// settings are the options in the configuration.
type settings struct {
	Device string `yaml:"device"`
	Edge   string `yaml:"edge"`
}

// Describe describes each option.
func (s *settings) Describe() []option.Description {
	return []option.Description{
		option.Value(&s.Device, DefaultDevice, "The device of the pulse, an absolute path.").Checked(func(string) error { return checkPath(s.Device) }),
		option.Word(&s.Edge, edgeAssert, []string{edgeAssert, edgeClear}, "The edge at the second: clear is for a receiver that inverts the pulse."),
	}
}

// Document describes the type.
func (Type) Document() (doc string, options []option.Described) {
	return "A pulse per second, with kernel timestamps: counted and missed pulses, jitter, and this clock's offset from them, independent of chronyd.",
		[]option.Described{new(option.Defaults[settings]())}
}

// New makes the watcher of a pulse.
func (Type) New(env watcher.Env, decode func(into ...any) error) (watcher.Watcher, error) {
	o := option.Defaults[settings]()
	if err := decode(&o); err != nil {
		return nil, err
	}
	if err := option.Check(&o); err != nil {
		return nil, err
	}
	return New(Options{Env: env, Device: o.Device, Clear: o.Edge == edgeClear})
}

// Missing implements watcher.Checker: the device.
func (w *Watcher) Missing() error {
	if _, err := os.Stat(w.options.Device); errors.Is(err, fs.ErrNotExist) {
		return option.Errorf("device", "is %s, which does not exist%s", w.options.Device, openRemedy(err))
	}
	return nil
}

// DefaultName implements watcher.DefaultNamer: the name of the usual device.
func (Type) DefaultName() string { return filepath.Base(DefaultDevice) }

// StatusDetails implements watcher.Detailed.
func (Type) StatusDetails() any { return Details{} }

// Details is the state of the pulse. Unknown values are absent.
type Details struct {
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
	// Last is the last pulse; absent before the first.
	Last time.Time `json:"last_pulse,omitzero"`
	// Jitter is the jitter of the intervals; absent until there are enough.
	Jitter *document.Seconds `json:"jitter_seconds,omitempty"`
	// Offset is the system clock minus the time of the pulses, modulo one second, and Bound its error bound; absent until
	// enough pulses agree.
	Offset *document.Seconds `json:"fit_offset_seconds,omitempty"`
	Bound  *document.Seconds `json:"fit_error_bound_seconds,omitempty"`
}

// Status is the state of the pulse.
func (w *Watcher) Status() watcher.Status {
	now := w.State()
	d := Details{
		Name: w.options.Name, Device: w.options.Device, Edge: edgeAssert,
		Present: now.Present, Error: now.Fault, Pulses: now.Pulses, Missed: now.Missed, Last: now.Last.Assert.Time(),
	}
	if w.options.Clear {
		d.Edge = edgeClear
	}
	if now.JitterKnown {
		d.Jitter = new(document.Seconds(now.Jitter))
	}
	if now.FitKnown {
		d.Offset, d.Bound = new(document.Seconds(now.FitOffset)), new(document.Seconds(now.FitBound))
	}
	return d.Status()
}

// Status has the generic parts of the details.
func (d Details) Status() watcher.Status {
	s := watcher.Status{Title: "Pulse", Device: d.Device + ", " + d.Edge, Up: d.Present, State: "every second", Reason: d.Error, Details: d}
	if !d.Present {
		s.State, s.Warnings = "no pulse", []string{fmt.Sprintf("No pulses from %s.", d.Device)}
	}
	jitter, clock := watcher.Line{Name: "Jitter"}, watcher.Line{Name: "Clock by pulses"}
	if d.Jitter != nil {
		jitter.Value = d.Jitter.Duration()
	}
	if d.Offset != nil && d.Bound != nil {
		clock.Value, clock.Bound = d.Offset.Duration(), d.Bound.Duration()
	}
	s.Lines = []watcher.Line{{Name: "Pulses", Value: fmt.Sprintf("%d, %d missed", d.Pulses, d.Missed)}, {Name: "Last", Value: d.Last}, jitter, clock}
	return s
}
