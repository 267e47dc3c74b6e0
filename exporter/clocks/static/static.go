// Package static is the clock of a host whose error bound is known by other means: containers or namespaces that share one
// clock (bound 0), a lab, a PTP daemon monitored elsewhere. It queries no daemon and uses the configured bound.
package static

import (
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/clocks/internal/publish"
	"oneway.example/exporter/core/bound"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/sample"
)

// Name is the value of the metric label `clock`.
const Name = "static"

// HoldDown is the time after a step in which delays are invalid, for whatever disciplines the clock to settle.
const HoldDown = 10 * time.Second

// Options configure the monitor. A Bound outside of zero to bound.Limit is invalid, and so are all delays with it; the zero
// value of all other fields is a sensible default.
type Options struct {
	// Bound is the largest offset to UTC, or to the shared clock.
	Bound time.Duration
	// Sink receives the clock's metrics; nil: they are discarded.
	Sink metric.Sink
	// Steps configures the detection of steps.
	Steps clock.StepOptions
}

// New returns the monitor with all defaults.
func New(bound time.Duration, sink metric.Sink) clock.Monitor {
	return NewWith(Options{Bound: bound, Sink: sink})
}

// NewWith returns the monitor. Its quality is the configured bound, except for the hold-down after a step.
func NewWith(o Options) clock.Monitor {
	bound := bound.ClockBound(o.Bound)
	return publish.NewWithoutDaemon(o.Sink, Name, o.Steps, func(check clock.Check) clock.Quality {
		q := clock.Quality{State: clock.Synchronized, Bound: bound, Steps: check.Steps}
		switch {
		case check.Since() < HoldDown:
			q.State = clock.Stepping
			q.Bound.Reason = sample.LocalStepped
		case !q.Synchronized():
			q.State = clock.Unsynchronized
		}
		return q
	})
}
