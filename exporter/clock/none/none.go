// Package none is the clock of a host that nothing disciplines: one-way delays
// are never valid, for the reason no_clock. Round-trip times, loss and variation
// go on; steps are still watched for, since they spoil those too.
package none

import (
	"context"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/clock/internal/publish"
	"oneway.example/exporter/instant"
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

type monitor struct {
	sink  metric.Sink
	steps *clock.StepDetector
}

var _ clock.Monitor = (*monitor)(nil)

// New returns the monitor with all defaults.
func New(sink metric.Sink) clock.Monitor { return NewWith(Options{Sink: sink}) }

// NewWith returns the monitor.
func NewWith(o Options) clock.Monitor {
	if o.Sink == nil {
		o.Sink = metric.Discard{}
	}
	return &monitor{sink: o.Sink, steps: clock.NewStepDetector(o.Steps)}
}

// Quality is never valid; only Steps ever changes.
func (m *monitor) Quality(instant.Time) clock.Quality {
	return clock.Quality{
		State: clock.None,
		Bound: sample.Bound{Reason: sample.NoClock},
		Steps: m.steps.Check().Steps,
	}
}

// Run watches for steps and publishes.
func (m *monitor) Run(ctx context.Context) error {
	watched := make(chan error, 1)
	go func() { watched <- m.steps.Run(ctx) }()
	publish.New(m.sink, Name).Run(ctx, func() publish.Report { return publish.Bare(m.Quality(0)) })
	return <-watched
}
