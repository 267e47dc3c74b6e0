// Package publish publishes the state of a clock.Monitor to a metric.Sink.
//
// All monitors use it, so that they have the same series with the same lifetime: an unknown value is absent.
package publish

import (
	"context"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
)

// Reference describes the reference of the clock: the source's identifier, its stratum, the pending leap second, and its
// kind (pps, nmea, ptp, ntp, local or other).
type Reference [4]string

// Report is the published state at one moment.
type Report struct {
	Quality clock.Quality
	// Reference is empty if the source is unknown; then the following fields are unknown, too.
	Reference Reference
	// Offset in seconds, positive: the clock is fast.
	Offset float64
	// Frequency and Skew are ratios; Frequency is positive: the clock is fast.
	Frequency, Skew float64
}

// Run detects steps, and publishes the result of report, at once and then every second, with this name (label `clock`). It
// returns nil when ctx ends, with all series closed.
func Run(ctx context.Context, steps *clock.StepDetector, sink metric.Sink, name string, report func() Report) error {
	watched := make(chan error, 1)
	go func() { watched <- steps.Run(ctx) }()
	s := metric.NewScope(sink, name)
	defer s.Close()
	tick := time.NewTicker(time.Second) // maximum delay until a step is published
	defer tick.Stop()
	for last := (Reference{}); ; {
		r := report()
		s.Update(func() { write(s, &r, last) })
		last = r.Reference
		select {
		case <-ctx.Done():
			return <-watched
		case <-tick.C:
		}
	}
}

// withoutDaemon is a monitor without a clock daemon.
type withoutDaemon struct {
	sink    metric.Sink
	name    string
	steps   *clock.StepDetector
	quality func(clock.Check) clock.Quality
}

// NewWithoutDaemon makes a monitor without a clock daemon: its quality at any instant is the result of quality, which
// must not block or allocate. It detects steps and publishes.
func NewWithoutDaemon(sink metric.Sink, name string, o clock.StepOptions, quality func(clock.Check) clock.Quality) clock.Monitor {
	return &withoutDaemon{sink, name, clock.NewStepDetector(o), quality}
}

func (u *withoutDaemon) Quality(instant.Time) clock.Quality { return u.quality(u.steps.Check()) }

func (u *withoutDaemon) Run(ctx context.Context) error {
	return Run(ctx, u.steps, u.sink, u.name, func() Report { return Report{Quality: u.Quality(0)} })
}

// write sets the series from a report; last is the reference of the previous report.
func write(s *metric.Scope, r *Report, last Reference) {
	q, hasReference := &r.Quality, r.Reference != Reference{}
	s.Set(metric.ClockSynchronized, metric.Flag(q.Synchronized()))
	for _, state := range clock.States() {
		s.Set(metric.ClockState, metric.Flag(state == q.State), state.String())
	}
	s.SetIf(metric.ClockErrorBound, q.Bound.Error.Seconds(), q.Synchronized())
	s.SetIf(metric.ClockOffset, r.Offset, hasReference)
	s.SetIf(metric.ClockFrequency, r.Frequency, hasReference)
	s.SetIf(metric.ClockSkew, r.Skew, hasReference)
	// A float64 has a resolution below a microsecond here.
	s.SetIf(metric.ClockLastUpdate, time.Duration(q.LastUpdate).Seconds(), !q.LastUpdate.IsZero())
	s.Total(metric.ClockSteps, float64(q.Steps))
	if r.Reference != last {
		s.Drop(metric.ClockReferenceInfo, last[:]...) // a new reference is a new series
	}
	if hasReference {
		s.Set(metric.ClockReferenceInfo, 1, r.Reference[:]...)
	}
}
