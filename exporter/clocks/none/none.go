// Package none is the clock of a host without synchronization: one-way delays are never valid, with reason no_clock.
// Round-trip times, loss and delay variation are measured; steps are still detected, since they invalidate those too.
package none

import (
	"oneway.example/exporter/clock"
	"oneway.example/exporter/clocks/internal/publish"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/sample"
)

// Name is the value of the metric label `clock`.
const Name = "none"

// Options configure the monitor; the zero value is ready for use.
type Options struct {
	// Sink receives the clock's metrics; nil: they are discarded.
	Sink metric.Sink
	// Steps configures the detection of steps.
	Steps clock.StepOptions
}

// New returns the monitor with all defaults.
func New(sink metric.Sink) clock.Monitor { return NewWith(Options{Sink: sink}) }

// NewWith returns the monitor. Its quality is never valid; only Steps changes.
func NewWith(o Options) clock.Monitor {
	return publish.NewWithoutDaemon(o.Sink, Name, o.Steps, func(check clock.Check) clock.Quality {
		return clock.Quality{State: clock.None, Bound: sample.Bound{Reason: sample.NoClock}, Steps: check.Steps}
	})
}
