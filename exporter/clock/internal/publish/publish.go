// Package publish brings what a clock.Monitor knows to a metric.Sink.
//
// It is one place so that all monitors have the same series with the same
// life: what is not known has no value.
package publish

import (
	"context"
	"math"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/instant"
	"oneway.example/exporter/metric"
)

// Every is how often a monitor publishes. A step shows at the latest then.
const Every = time.Second

// Reference is what the clock follows, in words.
//
// Kind is that of the source: pps, nmea, ptp, ntp, local or other.
type Reference struct{ ID, Stratum, Leap, Kind string }

// Report is all that is published of one moment. A NaN, a zero LastUpdate or
// an empty Reference is unknown and gives no series.
type Report struct {
	Quality clock.Quality
	// Offset in seconds, positive: the clock is fast.
	Offset float64
	// Frequency and Skew are ratios; Frequency is positive: the clock is fast.
	Frequency, Skew float64
	Reference       Reference
}

// Bare is a report in which nothing but the quality is known.
func Bare(q clock.Quality) Report {
	return Report{Quality: q, Offset: math.NaN(), Frequency: math.NaN(), Skew: math.NaN()}
}

// Publisher owns the series of one clock. It is not safe for concurrent use.
type Publisher struct {
	sink      metric.Sink
	name      string
	trusted   metric.Series
	states    []metric.Series
	bound     metric.Series
	offset    metric.Series
	frequency metric.Series
	skew      metric.Series
	updated   metric.Series
	steps     metric.Series
	info      metric.Series // nil while there is no reference
	reference Reference
	counted   uint64
}

// New opens the series of the clock with this name (label `clock`).
func New(sink metric.Sink, name string) *Publisher {
	p := &Publisher{
		sink:      sink,
		name:      name,
		trusted:   sink.Series(metric.ClockSynchronized, name),
		bound:     sink.Series(metric.ClockErrorBound, name),
		offset:    sink.Series(metric.ClockOffset, name),
		frequency: sink.Series(metric.ClockFrequency, name),
		skew:      sink.Series(metric.ClockSkew, name),
		updated:   sink.Series(metric.ClockLastUpdate, name),
		steps:     sink.Series(metric.ClockSteps, name),
	}
	for _, s := range clock.States() {
		p.states = append(p.states, sink.Series(metric.ClockState, name, s.String()))
	}
	return p
}

// Publish writes one report, all of it or nothing as far as a scrape can see.
func (p *Publisher) Publish(r Report) {
	p.sink.Update(func() {
		q := r.Quality
		p.trusted.Set(oneIf(q.Synchronised()))
		for i, s := range clock.States() {
			p.states[i].Set(oneIf(s == q.State))
		}
		bound := math.NaN()
		if q.Synchronised() {
			bound = q.Bound.Error.Seconds()
		}
		set(p.bound, bound)
		set(p.offset, r.Offset)
		set(p.frequency, r.Frequency)
		set(p.skew, r.Skew)
		set(p.updated, unix(q.LastUpdate))
		p.steps.Add(float64(q.Steps - p.counted))
		p.counted = q.Steps
		p.follow(r.Reference)
	})
}

// follow swaps the info series: its labels are its value.
func (p *Publisher) follow(r Reference) {
	if r == p.reference {
		return
	}
	if p.info != nil {
		p.info.Close()
		p.info = nil
	}
	p.reference = r
	if r != (Reference{}) {
		p.info = p.sink.Series(metric.ClockReferenceInfo, p.name, r.ID, r.Stratum, r.Leap, r.Kind)
		p.info.Set(1)
	}
}

// Close ends all series.
func (p *Publisher) Close() {
	p.sink.Update(func() {
		p.follow(Reference{})
		for _, s := range append(p.states, p.trusted, p.bound, p.offset, p.frequency, p.skew, p.updated, p.steps) {
			s.Close()
		}
	})
}

// Run publishes what report returns, at once and then every second, and closes
// the series when ctx ends.
func (p *Publisher) Run(ctx context.Context, report func() Report) {
	defer p.Close()
	tick := time.NewTicker(Every)
	defer tick.Stop()
	for {
		p.Publish(report())
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func set(s metric.Series, v float64) {
	if math.IsNaN(v) {
		s.Clear()
		return
	}
	s.Set(v)
}

// unix is t in seconds since 1970, to the microsecond that a float64 still holds.
func unix(t instant.Time) float64 {
	if t.IsZero() {
		return math.NaN()
	}
	return time.Duration(t).Seconds()
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
