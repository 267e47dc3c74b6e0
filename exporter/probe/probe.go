// Package probe says what a probe is. It knows no concrete one.
//
// A probe is a Type: it decodes its own options and makes a Prober for one
// path. The agent runs Probers; the registry in package probes lists the Types.
package probe

import (
	"context"
	"log/slog"
	"time"

	"oneway.example/exporter/calibration"
	"oneway.example/exporter/clock"
	"oneway.example/exporter/metric"
	"oneway.example/exporter/report"
	"oneway.example/exporter/sched"
)

// Env is what the agent lends to every prober. All fields but Calibration are set;
// in tests Links and Reports may be nil too.
type Env struct {
	Log   *slog.Logger
	Sink  metric.Sink
	Clock clock.Monitor
	// Pacer is the one scheduler of the process; see sched.Pacer.
	Pacer *sched.Pacer
	// Calibration has the stamp errors of this host's interfaces; nil: none are known.
	Calibration *calibration.Table
	// Links keeps heavy tests of one link apart, and its data budget.
	Links *sched.Links
	// Reports takes the reports of heavy tests' runs.
	Reports *report.Store
}

// Target is one path as the configuration names it.
type Target struct {
	// Path and Probe are the names used as labels.
	Path, Probe string
	// Peer is a host name or address with an optional port, as written.
	Peer string
}

// Type is a kind of probe.
type Type interface {
	// Name is the word used in the configuration, such as "stamp".
	Name() string
	// New checks the options and makes a prober. It opens nothing and sends
	// nothing: check-config calls it too. decode fills a struct from the raw
	// options, strictly; a wrong value is reported as *OptionError.
	New(env Env, target Target, decode func(into any) error) (Prober, error)
}

// Prober measures one path until its context ends.
type Prober interface {
	// Run measures; it returns when ctx ends, with its series closed and
	// nothing left running. An error says why measuring cannot go on at all; a
	// silent peer or an unresolvable name is no such reason.
	Run(ctx context.Context) error
	// Status is for the landing page.
	Status() Status
}

// Filler is what a Prober is besides that fills a link.
type Filler interface {
	// Fills says which link, for which test, and towards which far end.
	Fills() Filling
}

// Filling is what a heavy test needs its link for.
type Filling struct {
	// Kind is the test's word, such as "saturate"; Link is what it holds.
	Kind, Link string
	// Host and Port are the responder's, as configured.
	Host string
	Port uint16
}

// Status is one prober's state in words and its last results.
type Status struct {
	// Up: the peer answers. State says in a few words what is going on, Reason
	// why it is not well (empty if it is).
	Up            bool
	State, Reason string
	// LastSuccess is when the last answer came; zero: never.
	LastSuccess time.Time
	// Results are ready for print, in the order to be shown.
	Results []Result
}

// Result is one line of a Status, such as {"delay", "forward", "30.1 ms +- 0.2 ms"}.
type Result struct{ Quantity, Direction, Value string }

// OptionError says which option is wrong and what would be right.
type OptionError struct {
	// Key is the option's path inside the probe's own options, such as "interval".
	Key string
	// Problem completes the sentence "<key> ...", such as "is 0s; it must be
	// between 100us and 1h".
	Problem string
}

// Error is "<key> <problem>".
func (e *OptionError) Error() string { return e.Key + " " + e.Problem }
