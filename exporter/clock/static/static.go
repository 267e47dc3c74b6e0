// Package static is the clock of a host whose error bound is known by other
// means: containers or namespaces that share one clock (bound 0), a lab, a PTP
// daemon watched elsewhere. Nobody is asked; the configuration's word is taken.
package static

import (
	"context"
	"time"

	"oneway.example/exporter/bound"
	"oneway.example/exporter/clock"
	"oneway.example/exporter/clock/internal/publish"
	"oneway.example/exporter/instant"
	"oneway.example/exporter/metric"
	"oneway.example/exporter/sample"
)

// Name is the value of the metric label `clock`.
const Name = "static"

// DefaultHoldDown is how long nothing is valid after a step: whoever keeps the
// clock within its bound is given this time to have finished.
const DefaultHoldDown = 10 * time.Second

// Options configure the monitor. A Bound outside of zero to bound.Limit is none,
// and nothing is valid with it; the zero value of all else is a sensible default.
type Options struct {
	// Bound is the largest offset to UTC, or to the one clock that is shared.
	Bound time.Duration
	// HoldDown is how long the clock is distrusted after a step; zero:
	// DefaultHoldDown.
	HoldDown time.Duration
	// Sink takes the clock's metrics; nil: nobody.
	Sink metric.Sink
	// Steps says how steps are detected.
	Steps clock.StepOptions
}

type monitor struct {
	bound    sample.Bound
	holdDown time.Duration
	sink     metric.Sink
	steps    *clock.StepDetector
}

var _ clock.Monitor = (*monitor)(nil)

// New returns the monitor with all defaults.
func New(bound time.Duration, sink metric.Sink) clock.Monitor {
	return NewWith(Options{Bound: bound, Sink: sink})
}

// NewWith returns the monitor.
func NewWith(o Options) clock.Monitor {
	m := &monitor{
		bound:    bound.Claim(o.Bound),
		holdDown: o.HoldDown,
		sink:     o.Sink,
		steps:    clock.NewStepDetector(o.Steps),
	}
	if m.holdDown <= 0 {
		m.holdDown = DefaultHoldDown
	}
	if m.sink == nil {
		m.sink = metric.Discard{}
	}
	return m
}

// Quality is the configured bound, except for the hold-down after a step.
func (m *monitor) Quality(instant.Time) clock.Quality {
	check := m.steps.Check()
	q := clock.Quality{State: clock.Synchronised, Bound: m.bound, Steps: check.Steps}
	switch {
	case check.Since() < m.holdDown:
		q.State = clock.Stepping
		q.Bound.Reason = sample.NearStepped
	case !q.Synchronised():
		q.State = clock.Unsynchronised
	}
	return q
}

// Run watches for steps and publishes.
func (m *monitor) Run(ctx context.Context) error {
	watched := make(chan error, 1)
	go func() { watched <- m.steps.Run(ctx) }()
	publish.New(m.sink, Name).Run(ctx, func() publish.Report { return publish.Bare(m.Quality(0)) })
	return <-watched
}
