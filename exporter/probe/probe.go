// Package probe says what a probe is. It knows no concrete one.
//
// A probe is a Type: it decodes its own options and makes a Prober for one
// path. The agent runs Probers; the registry in package probes lists the Types.
package probe

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"oneway.example/exporter/calibration"
	"oneway.example/exporter/clock"
	"oneway.example/exporter/hostport"
	"oneway.example/exporter/link"
	"oneway.example/exporter/metric"
	"oneway.example/exporter/option"
	"oneway.example/exporter/record"
	"oneway.example/exporter/report"
	"oneway.example/exporter/sched"
)

// Env is what the agent leases to every prober. All fields but Calibration are set;
// in tests Links and Reports may be nil too.
type Env struct {
	Log   *slog.Logger
	Sink  metric.Sink
	Clock clock.Monitor
	// Pacer is the one scheduler of the process; see sched.Pacer.
	Pacer *sched.Pacer
	// Calibration has the stamp errors of this host's interfaces; nil: none are known.
	Calibration *calibration.Table
	// Links keeps load tests of one link apart, and its data quota.
	Links *link.Table
	// Reports takes the reports of load tests' runs.
	Reports *report.Store
	// Recorder takes raw samples; nil: nobody reads them.
	Recorder *record.Recorder
}

// Target is one path as the configuration names it.
type Target struct {
	// Path and Probe are the names used as labels.
	Path, Probe string
	// Peer is what the path is measured to, as written: what it may be, such as a host with an
	// optional port, is the probe's to say (PeerKey).
	Peer string
}

// Host is that of the Peer of a path that was checked, without port and brackets.
func (t Target) Host() string {
	host, _, _ := hostport.Split(t.Peer, 1)
	return host
}

// Type is a kind of probe.
type Type interface {
	// Name is the word used in the configuration, such as "stamp".
	Name() string
	// New checks the options and makes a prober. It opens nothing and sends
	// nothing: check-config calls it too. decode fills structs from the raw
	// options, strictly; a wrong value is reported as *OptionError.
	New(env Env, target Target, decode func(into ...any) error) (Prober, error)
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
	// Fills says which link, for which test, and toward which remote end.
	Fills() Filling
}

// Filling is what a load test needs its link for.
type Filling struct {
	// Kind is the test's word, such as "saturation"; Link is what it holds.
	Kind, Link string
	// Host and Port are the load server's, as configured.
	Host string
	Port uint16
}

// Status is one prober's state in words and its last results.
type Status struct {
	// Up: the peer answers. State says in a few words what is going on, Reason
	// why it is not well (empty if it is).
	Up            bool
	State, Reason string
	// LastSuccess is when the last reply came; zero: never.
	LastSuccess time.Time
	// Results are ready for print, in the order to be shown.
	Results []Result
}

// Result is one line of a Status, such as {"delay", "forward", "30.1 ms +- 0.2 ms"}.
type Result = report.Line

// OptionError says which option is wrong; Key is inside the probe's own options.
type OptionError = option.Error

// PeerKey is the Key of an OptionError that is about the path's peer, which is no option of the probe.
const PeerKey = "peer"

// Figures writes a duration with three figures and a unit that people read.
func Figures(d time.Duration) string {
	switch abs := d.Abs(); {
	case abs >= time.Second:
		return fmt.Sprintf("%.3g s", d.Seconds())
	case abs >= time.Millisecond:
		return fmt.Sprintf("%.3g ms", d.Seconds()*1e3)
	}
	return fmt.Sprintf("%.3g µs", d.Seconds()*1e6)
}
