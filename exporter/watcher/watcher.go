// Package watcher defines the interfaces of watchers: what observes something beside the packets of probes, such as a GNSS
// receiver, a radio or a position. It imports no concrete one.
//
// A watcher is a Type: it decodes its own options and makes a Watcher. The agent runs Watchers, shows their Status in
// /api/v1/status and on its page, and closes their series; the registry in package watchers lists the Types.
package watcher

import (
	"context"
	"log/slog"
	"time"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/core/record"
)

// Env is the environment that the agent passes to every watcher.
type Env struct {
	// Name is the watcher's name in the configuration, and the first label of its metrics.
	Name string
	Log  *slog.Logger
	// Sink receives the metrics; their series are in the Scope.
	Sink metric.Sink
	// Scopes has the scopes of the watcher, which the agent closes when the watcher has ended; nil: nothing closes them.
	Scopes *metric.Scopes
	// Recorder takes raw samples; nil: there are no readers.
	Recorder *record.Recorder
}

// Scope makes the scope of the watcher's series, whose first label is its name. A run makes a fixed number of them.
func (e *Env) Scope() *metric.Scope { return e.Scopes.Add(metric.NewScope(e.Sink, e.Name)) }

// Type is a kind of watcher.
type Type interface {
	// Document describes the type and its options in deploy/oneway.yml.
	option.Documented
	// Name is the word used in the configuration, such as "gpsd".
	Name() string
	// New checks the options and makes a watcher. It opens nothing, since check-config calls it too. decode fills structs from the
	// raw options, strictly; a wrong value is reported as *option.Error.
	New(env Env, decode func(into ...any) error) (Watcher, error)
}

// Watcher watches until its context ends.
type Watcher interface {
	// Run watches until ctx ends. It then returns with nothing left running. An error means that it cannot continue; a device or
	// daemon that is missing is no error.
	Run(ctx context.Context) error
	// Status is the current state. It may be called at any time, also before Run, and does not block.
	Status() Status
}

// Status is the state of a watcher, with the same parts for each type. Details is a struct whose JSON tags are the names in
// /api/v1/status.
type Status struct {
	// Title names the thing that is watched on the agent's page, such as "Receiver".
	Title string `json:"-"`
	// Device is what the watcher reads, such as a file of a device or a server; empty: it is unknown, or the name tells it.
	Device string `json:"-"`
	// Up: the watched thing works, and its values are current.
	Up bool `json:"-"`
	// State is the state in a few words, such as "no fix".
	State string `json:"state"`
	// Reason is why it is not up, in a sentence; empty: it is up, or the cause is unknown.
	Reason string `json:"error,omitempty"`
	// Warnings are sentences about what needs the attention of a person.
	Warnings []string `json:"warnings,omitempty"`
	// Lines are the values on the agent's page, in display order.
	Lines []Line `json:"-"`
	// Details has the values that only its type has, in the same form at all times; nil: there are none.
	Details any `json:"details,omitempty"`
}

// Line is a value for display.
type Line struct {
	// Name is the quantity, such as "Satellites".
	Name string
	// Value is a string, a time.Duration, or a time.Time, whose age the page shows; nil if the value is unknown.
	Value any
	// Bound is the error bound of a duration; zero: there is no bound.
	Bound time.Duration
}

// DefaultNamer is implemented by a Type whose watchers have a name by default, as the section clock needs it.
type DefaultNamer interface {
	// DefaultName is the name, a label of the metrics.
	DefaultName() string
}

// Checker is implemented by a Watcher that can tell what this host lacks before it runs. check-config warns of it.
type Checker interface {
	// Missing returns an *option.Error with the option that names what this host lacks; nil: it lacks nothing.
	Missing() error
}

// Detailed is implemented by a Type whose Status has Details.
type Detailed interface {
	// StatusDetails is a zero value of the struct in Details, for its JSON Schema.
	StatusDetails() any
}
