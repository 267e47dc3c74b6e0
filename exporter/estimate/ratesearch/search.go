// Package ratesearch selects the rates of a search for a link's capacity: by steps (Halepovic 2008, figure 2) or by
// the load adjustment of RFC 9097 section 8.
//
// Both are state machines without a clock: the caller takes a step from Next, sends it, and passes the result to
// Observe, until Next reports the end. A step of a Sweep is a burst from an idle link; those of an Adjustment follow
// each other without a pause, if the remote end supports it. All rates are IP bytes a second.
package ratesearch

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// Step is the rate and duration to send next.
type Step struct {
	// Rate is in IP bytes a second.
	Rate float64
	// Duration is the length of the step.
	Duration time.Duration
}

// Feedback is the result of a step.
type Feedback struct {
	// Sent and Received are the achieved rates in IP bytes a second.
	Sent, Received float64
	// Packets were sent, of which Lost did not arrive; Reordered and Duplicate are sequence errors too (RFC 9097
	// section 8.1).
	Packets, Lost, Reordered, Duplicate int
	// DelayVariation is the largest delay of the step minus the smallest of the whole run; for a part of a running
	// stream the mean instead of the largest, as in udpst. Below zero: unknown.
	DelayVariation time.Duration
}

// Algorithm is a search.
type Algorithm interface {
	// Next returns the step to send, the same until Observe is called; false: the search has ended.
	Next() (Step, bool)
	// Observe adds the result of the step returned by Next; after the end it has no effect.
	Observe(Feedback)
}

var (
	_ Algorithm = &Sweep{}
	_ Algorithm = &Adjustment{}
)

// AdjustmentOptions are the options of the load adjustment.
type AdjustmentOptions struct {
	// Min and Max bound the rate. Zero: the standard table's ends.
	Min, Max float64
	// Interval is the time of a step, the feedback interval. Zero: DefaultInterval.
	Interval time.Duration
	// Duration of the whole search. Zero: defaultDuration.
	Duration time.Duration
	// Lower and Upper are the thresholds of the delay variation. Zero: DefaultLower,
	// DefaultUpper.
	Lower, Upper time.Duration
}

// Defaults of AdjustmentOptions: those of RFC 9097 section 8.1 and of its reference implementation, udpst; its tests
// last 10 s.
const (
	DefaultInterval = 50 * time.Millisecond
	defaultDuration = 10 * time.Second
	DefaultLower    = 30 * time.Millisecond
	DefaultUpper    = 90 * time.Millisecond
)

// Options of the standard that are constants here.
const (
	// highSpeedDelta is the number of rows of a fast increase; the decrease that ends it is decreaseFactor times as
	// large.
	highSpeedDelta = 10
	decreaseFactor = 3
	// slowAdjust congested steps without a fast increase in between end the fast increases.
	slowAdjust = 3
	// sequenceErrors are tolerated in a step, but at most the share tolerable of its packets.
	sequenceErrors = 10
	tolerable      = 0.1
)

// Adjustment is the load adjustment of RFC 9097 section 8 and appendix A, which is the type B algorithm of ITU-T Y.1540
// Annex B and of BBF TR-471: the rate moves in the rows of a table by the feedback of each step.
//
//	few sequence errors and a delay variation below Lower:
//	    below the high-speed threshold, and not yet slow: highSpeedDelta rows up
//	    else: one row up
//	too many sequence errors, or a delay variation above Upper:
//	    below the high-speed threshold, the slowAdjust-th time: 3 highSpeedDelta rows down
//	    else: one row down
//	between the thresholds: stay
//
// As in the standard, only a fast increase resets the count of congested steps: once slow, the search stays slow.
// The high-speed threshold is the row of 1 Gb/s.
//
// It differs in three points. The standard's table, of 1 Mb/s a row, is for feedback every 50 ms and for links of
// some Mb/s: with longer steps, or with Max below 100 Mb/s, a row is a hundredth of Max. At most a tenth of a
// step's packets are tolerated as sequence errors, since on slow links ten may be all. The delay variation is that
// of the one-way delay, in which a constant clock offset cancels; udpst uses the round trip by default.
type Adjustment struct {
	o     AdjustmentOptions
	rows  []float64
	row   int
	high  int // the row of the high-speed threshold
	slow  int // congested steps counted so far
	steps int
	of    int
	best  float64
}

// NewAdjustment returns a load adjustment that begins with the lowest rate, or an error for invalid options.
func NewAdjustment(o AdjustmentOptions) (*Adjustment, error) {
	o.Interval, o.Duration = cmp.Or(o.Interval, DefaultInterval), cmp.Or(o.Duration, defaultDuration)
	o.Lower, o.Upper = cmp.Or(o.Lower, DefaultLower), cmp.Or(o.Upper, DefaultUpper)
	o.Max = cmp.Or(o.Max, tableEnd)
	switch {
	case o.Min < 0 || !isRate(o.Max) || !(o.Min <= o.Max):
		return nil, fmt.Errorf("ratesearch: rates are %v to %v; they must be an ascending range above zero", o.Min, o.Max)
	case o.Interval < 0 || o.Duration < o.Interval:
		return nil, fmt.Errorf("ratesearch: duration is %v, interval %v; there must be at least one interval", o.Duration, o.Interval)
	case o.Lower < 0 || o.Upper < o.Lower:
		return nil, fmt.Errorf("ratesearch: thresholds are %v and %v; they must be ascending and above zero", o.Lower, o.Upper)
	}
	a := &Adjustment{o: o, of: int(o.Duration / o.Interval)}
	a.rows, a.high = table(o)
	return a, nil
}

// The standard table in IP bytes a second, and the limits of its use.
const (
	mbit        = 1e6 / 8
	tableEnd    = 10_000 * mbit
	highSpeed   = 1000 * mbit
	fineBelow   = 100 * mbit
	fineRows    = 100
	fineBeyond  = 100 * time.Millisecond
	coarseRows  = 100 * mbit
	lowestOfAll = mbit / 2
)

// table returns the rates from Min to Max, ascending, and the row of the high-speed threshold.
func table(o AdjustmentOptions) (rows []float64, high int) {
	add := func(r float64) {
		if r > o.Min && r < o.Max*(1-1e-9) {
			rows = append(rows, r)
		}
	}
	if o.Min > 0 && o.Min < o.Max {
		rows = append(rows, o.Min)
	}
	if o.Max < fineBelow || o.Interval > fineBeyond {
		for i := range fineRows {
			add(o.Max * float64(i+1) / fineRows)
		}
	} else {
		add(lowestOfAll)
		for i := 1; i <= 1000; i++ {
			add(float64(i) * mbit)
		}
		for r := highSpeed + coarseRows; r <= tableEnd; r += coarseRows {
			add(r)
		}
	}
	rows = append(rows, o.Max)
	for high = len(rows) - 1; high > 0 && rows[high] > highSpeed; {
		high--
	}
	return rows, high
}

// Next implements Algorithm.
func (a *Adjustment) Next() (Step, bool) {
	if a.steps >= a.of {
		return Step{}, false
	}
	return Step{Rate: a.rows[a.row], Duration: a.o.Interval}, true
}

// Observe implements Algorithm.
func (a *Adjustment) Observe(f Feedback) {
	if a.steps >= a.of {
		return
	}
	a.steps++
	a.best = max(a.best, f.Received)
	errors := f.Lost + f.Reordered + f.Duplicate
	tolerated := min(sequenceErrors, int(tolerable*float64(f.Packets)))
	delay := f.DelayVariation
	if delay < 0 {
		delay = a.o.Lower // unknown: it neither increases nor decreases the rate
	}
	switch {
	case errors <= tolerated && delay < a.o.Lower:
		a.up()
	case errors > tolerated || delay > a.o.Upper:
		a.down()
	}
}

func (a *Adjustment) up() {
	if a.row < a.high && a.slow < slowAdjust {
		a.row, a.slow = min(a.row+highSpeedDelta, a.high), 0
		return
	}
	a.row = min(a.row+1, len(a.rows)-1)
}

func (a *Adjustment) down() {
	a.slow++
	if a.row < a.high && a.slow == slowAdjust {
		a.row = max(a.row-decreaseFactor*highSpeedDelta, 0)
		return
	}
	a.row = max(a.row-1, 0)
}

// Maximum is the result: the largest receive rate of a step, in IP bytes a second (RFC 9097 section 6.3,
// Maximum_C); false: none.
func (a *Adjustment) Maximum() (rate float64, ok bool) { return a.best, a.best > 0 }

// SweepOptions are those of a stepped sweep.
type SweepOptions struct {
	// From is the first rate; each further one is Factor times the previous one (zero: DefaultFactor), and To is
	// the last.
	From, To, Factor float64
	// Duration of each step. Zero: DefaultStep.
	Duration time.Duration
	// MaxLoss is the loss ratio up to which a step counts as lossless. Zero: DefaultMaxLoss; below zero: none.
	MaxLoss float64
	// Beyond is the number of consecutive lossy steps that ends the sweep. Zero: it is not ended.
	Beyond int
}

// Defaults of SweepOptions, and the largest number of steps.
const (
	DefaultStep    = 5 * time.Second
	DefaultMaxLoss = 0.001
	DefaultFactor  = 1.25
	// MaxSteps is the largest number of steps of a sweep.
	MaxSteps = 60
)

// short is the share of a step's rate that must be sent for the rate to count as offered; below it, the sent rate
// counts.
const short = 0.98

// SweepStep is a step and its result.
type SweepStep struct {
	Step
	Feedback
	// Loss is Lost/Packets; 1 if nothing was sent.
	Loss float64
	// Lossless: at most MaxLoss was lost.
	Lossless bool
}

// Sweep offers one rate after the other. See NewSweep; the zero value has ended.
type Sweep struct {
	o     SweepOptions
	rates []float64
	steps []SweepStep
	lossy int // consecutive steps
}

// NewSweep returns a sweep, or an error for invalid options or more than MaxSteps steps.
func NewSweep(o SweepOptions) (*Sweep, error) {
	o.Duration, o.Factor = cmp.Or(o.Duration, DefaultStep), cmp.Or(o.Factor, DefaultFactor)
	o.MaxLoss = max(cmp.Or(o.MaxLoss, DefaultMaxLoss), 0)
	if o.Duration < 0 {
		return nil, fmt.Errorf("ratesearch: sweep: step is %v; it must be above zero", o.Duration)
	}
	rates, err := ladder(o.From, o.To, o.Factor)
	if err != nil {
		return nil, err
	}
	return &Sweep{o: o, rates: rates}, nil
}

func isRate(r float64) bool { return r > 0 && !math.IsInf(r, 0) }

// ladder returns the rates from, to and between.
func ladder(from, to, factor float64) (rates []float64, err error) {
	if !isRate(from) || !isRate(to) || from > to {
		return nil, fmt.Errorf("ratesearch: sweep: rates are %v to %v; they must be an ascending range above zero", from, to)
	}
	if !(factor > 1) || math.IsInf(factor, 0) {
		return nil, fmt.Errorf("ratesearch: sweep: factor is %v; it must be above 1", factor)
	}
	for r := from; r < to*(1-1e-9); r *= factor {
		if rates = append(rates, r); len(rates) >= MaxSteps {
			return nil, errors.New("ratesearch: sweep: too many steps; use a larger factor or a smaller range")
		}
	}
	return append(rates, to), nil
}

// Next implements Algorithm.
func (s *Sweep) Next() (Step, bool) {
	if len(s.steps) >= len(s.rates) || s.o.Beyond > 0 && s.lossy >= s.o.Beyond {
		return Step{}, false
	}
	return Step{Rate: s.rates[len(s.steps)], Duration: s.o.Duration}, true
}

// Observe implements Algorithm.
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
	if s.lossy++; one.Lossless {
		s.lossy = 0
	}
	s.steps = append(s.steps, one)
}

// Steps are the steps so far.
func (s *Sweep) Steps() []SweepStep { return slices.Clone(s.steps) }

// MaxLossless is the highest offered rate up to which no step lost more than MaxLoss, in IP bytes a second; false: the
// lowest step did, or there is none. If the sender sent less than 98 % of a step, the sent rate counts.
func (s *Sweep) MaxLossless() (rate float64, ok bool) {
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
