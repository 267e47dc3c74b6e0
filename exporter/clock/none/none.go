// Package none is the clock of a host that nothing disciplines: one-way delays
// are never valid, for the reason no_clock. Round-trip times, loss and variation
// go on; steps are still watched for, since they spoil those too.
package none

import (
	"oneway.example/exporter/clock"
	"oneway.example/exporter/clock/internal/publish"
	"oneway.example/exporter/metric"
	"oneway.example/exporter/sample"
)

// Name is the value of the metric label `clock`.
const Name = "none"

// Options configure the monitor; the zero value is ready for use.
type Options struct {
	// Sink takes the clock's metrics; nil: nobody.
	Sink metric.Sink
	// Steps says how steps are detected.
	Steps clock.StepOptions
}

// New returns the monitor with all defaults.
func New(sink metric.Sink) clock.Monitor { return NewWith(Options{Sink: sink}) }

// NewWith returns the monitor. Its quality is never valid; only Steps ever changes.
func NewWith(o Options) clock.Monitor {
	return publish.Unasked(o.Sink, Name, o.Steps, func(check clock.Check) clock.Quality {
		return clock.Quality{State: clock.None, Bound: sample.Bound{Reason: sample.NoClock}, Steps: check.Steps}
	})
}
