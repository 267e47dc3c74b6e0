package search

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// SweepOptions are those of a stepped sweep.
type SweepOptions struct {
	// Rates to offer, ascending; or, if there are none, From, and from there on by the
	// factor Factor (zero: DefaultFactor), up to and with To.
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

// Defaults of SweepOptions, and the most steps that a sweep has.
const (
	DefaultStep    = 5 * time.Second
	DefaultMaxLoss = 0.001
	DefaultFactor  = 1.25
	MaxSteps       = 60
)

// short is the share of a step's rate that must really be sent for the rate to count as
// offered; below it, what was sent counts.
const short = 0.98

// SweepStep is a step and what came of it.
type SweepStep struct {
	Step
	Feedback
	// Loss is Lost/Packets; 1 if nothing was sent.
	Loss float64
	// Lossless: no more than MaxLoss was lost.
	Lossless bool
}

// Sweep offers one rate after the other. See NewSweep; the zero value is over.
type Sweep struct {
	o     SweepOptions
	rates []float64
	steps []SweepStep
	lossy int // steps in a row
}

// NewSweep returns a sweep, or an error if there are no rates, more than MaxSteps, or any that
// is no rate.
func NewSweep(o SweepOptions) (*Sweep, error) {
	if o.Duration == 0 {
		o.Duration = DefaultStep
	}
	if o.Factor == 0 {
		o.Factor = DefaultFactor
	}
	if o.MaxLoss == 0 {
		o.MaxLoss = DefaultMaxLoss
	}
	o.MaxLoss = max(o.MaxLoss, 0)
	if o.Duration < 0 {
		return nil, fmt.Errorf("search: sweep: a step of %v, want more than none", o.Duration)
	}
	rates := slices.Clone(o.Rates)
	if len(rates) == 0 {
		var err error
		if rates, err = ladder(o.From, o.To, o.Factor); err != nil {
			return nil, err
		}
	}
	if len(rates) > MaxSteps {
		return nil, fmt.Errorf("search: sweep: %d rates, want %d at the most", len(rates), MaxSteps)
	}
	for i, r := range rates {
		if !isRate(r) || i > 0 && r <= rates[i-1] {
			return nil, fmt.Errorf("search: sweep: rate %d is %v; rates must be above zero, and each above the one before", i, r)
		}
	}
	return &Sweep{o: o, rates: rates}, nil
}

func isRate(r float64) bool { return r > 0 && !math.IsInf(r, 0) }

// ladder is the rates from, to and between.
func ladder(from, to, factor float64) (rates []float64, err error) {
	if !isRate(from) || !isRate(to) || from > to {
		return nil, fmt.Errorf("search: sweep: from %v to %v is no range of rates", from, to)
	}
	if !(factor > 1) || math.IsInf(factor, 0) {
		return nil, fmt.Errorf("search: sweep: a factor of %v, want more than 1", factor)
	}
	for r := from; r < to*(1-1e-9); r *= factor {
		if rates = append(rates, r); len(rates) >= MaxSteps {
			return nil, errors.New("search: sweep: too many steps; want a larger factor or a smaller range")
		}
	}
	return append(rates, to), nil
}

// Next is Algorithm.
func (s *Sweep) Next() (Step, bool) {
	if len(s.steps) >= len(s.rates) || s.o.Beyond > 0 && s.lossy >= s.o.Beyond {
		return Step{}, false
	}
	return Step{Rate: s.rates[len(s.steps)], Duration: s.o.Duration}, true
}

// Observe is Algorithm.
func (s *Sweep) Observe(f Feedback) {
	step, more := s.Next()
	if !more {
		return
	}
	one := SweepStep{Step: step, Feedback: f, Loss: 1}
	if f.Packets > 0 {
		one.Loss = float64(f.Lost) / float64(f.Packets)
	}
	one.Lossless = one.Loss <= s.o.MaxLoss
	s.lossy++
	if one.Lossless {
		s.lossy = 0
	}
	s.steps = append(s.steps, one)
}

// Steps are the steps so far.
func (s *Sweep) Steps() []SweepStep { return slices.Clone(s.steps) }

// Knee is the highest offered rate up to which no step lost more than MaxLoss, in IP octets a
// second; false: the lowest step did, or there is none. Of a step of which the sender
// did not manage 98 %, what it did send is the rate.
func (s *Sweep) Knee() (rate float64, ok bool) {
	for _, one := range s.steps {
		if !one.Lossless {
			break
		}
		rate, ok = one.Rate, true
		if one.Sent < short*one.Rate {
			rate = one.Sent
		}
	}
	return rate, ok && rate > 0
}
