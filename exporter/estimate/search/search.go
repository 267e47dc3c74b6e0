// Package search decides at which rate to send next, to learn what a link carries: by
// steps (Halepovic 2008, figure 2) or by the load adjustment of RFC 9097 section 8.
//
// Both are state machines without a clock. All rates are IP octets a second.
package search

import "time"

// Step is what to send next.
type Step struct {
	// Rate is in IP octets a second.
	Rate float64
	// Duration is for how long.
	Duration time.Duration
}

// Feedback is what came of a step.
type Feedback struct {
	// Sent and Received are IP octets a second, really.
	Sent, Received float64
	// Packets left, of which Lost did not arrive; Reordered and Duplicate are sequence
	// errors too (RFC 9097 section 8.1).
	Packets, Lost, Reordered, Duplicate int
	// DelayVariation is the largest delay of the step minus the smallest of the whole run.
	// Below zero: not known.
	DelayVariation time.Duration
}

// Algorithm is a search.
type Algorithm interface {
	// Next is what to send next; false: the search is over.
	Next() (Step, bool)
	// Observe tells what came of the last step that Next returned.
	Observe(Feedback)
}

// SweepOptions are those of a stepped sweep.
type SweepOptions struct {
	// Rates to offer, ascending; or, if there are none, From to To by the factor Factor.
	Rates            []float64
	From, To, Factor float64
	// Duration of each step. Zero: DefaultStep.
	Duration time.Duration
	// MaxLoss is the share that a step may lose and still be lossless. Zero: DefaultMaxLoss;
	// below zero: none.
	MaxLoss float64
	// Beyond is how many lossy steps in a row end the sweep. Zero: none does.
	Beyond int
}

// Defaults of SweepOptions.
const (
	DefaultStep    = 5 * time.Second
	DefaultMaxLoss = 0.001
	DefaultFactor  = 1.25
	MaxSteps       = 60
)

// SweepStep is a step and what came of it.
type SweepStep struct {
	Step
	Feedback
	// Loss is Lost/Packets.
	Loss float64
	// Lossless: no more than MaxLoss was lost.
	Lossless bool
}

// Sweep is the stepped sweep. See NewSweep.
type Sweep struct {
	o     SweepOptions
	rates []float64
	steps []SweepStep
}

// NewSweep returns a sweep.
func NewSweep(o SweepOptions) (*Sweep, error) { return &Sweep{o: o, rates: o.Rates}, nil }

// Next is Algorithm.
func (s *Sweep) Next() (Step, bool) {
	if len(s.steps) >= len(s.rates) {
		return Step{}, false
	}
	return Step{s.rates[len(s.steps)], s.o.Duration}, true
}

// Observe is Algorithm.
func (s *Sweep) Observe(f Feedback) {
	if step, ok := s.Next(); ok {
		s.steps = append(s.steps, SweepStep{Step: step, Feedback: f})
	}
}

// Steps are the steps so far.
func (s *Sweep) Steps() []SweepStep { return s.steps }

// Knee is the highest offered rate up to which no step lost more than MaxLoss; false: the
// lowest step did, or there is none.
func (s *Sweep) Knee() (rate float64, ok bool) { return 0, false }

// AdjustOptions are those of the load adjustment.
type AdjustOptions struct {
	// Min and Max bound the rate. Zero: the table's ends.
	Min, Max float64
	// Interval is the time of a step: the feedback interval. Zero: DefaultInterval.
	Interval time.Duration
	// Duration of the whole search. Zero: DefaultDuration.
	Duration time.Duration
	// Lower and Upper are the thresholds of the delay variation. Zero: 30 and 90 ms.
	Lower, Upper time.Duration
	// HighSpeedDelta is by how many rows the fast ramp climbs. Zero: 10.
	HighSpeedDelta int
	// SlowAdjust is how many steps in a row end the fast ramp. Zero: 3.
	SlowAdjust int
	// SequenceErrors is how many are tolerated in a step. Zero: 10.
	SequenceErrors int
}

// Adjust is the load adjustment of RFC 9097 section 8. See NewAdjust.
type Adjust struct{ o AdjustOptions }

// NewAdjust returns a load adjustment.
func NewAdjust(o AdjustOptions) (*Adjust, error) { return &Adjust{o: o}, nil }

// Next is Algorithm.
func (a *Adjust) Next() (Step, bool) { return Step{}, false }

// Observe is Algorithm.
func (a *Adjust) Observe(f Feedback) {}

// Maximum is the result: the largest received rate of a sub-interval (RFC 9097 section 6).
func (a *Adjust) Maximum() (rate float64, ok bool) { return 0, false }
