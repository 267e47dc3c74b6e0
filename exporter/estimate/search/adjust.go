package search

import (
	"fmt"
	"time"
)

// AdjustOptions are those of the load adjustment.
type AdjustOptions struct {
	// Min and Max bound the rate. Zero: the standard table's ends.
	Min, Max float64
	// Interval is the time of a step, the feedback interval. Zero: DefaultInterval.
	Interval time.Duration
	// Duration of the whole search. Zero: DefaultDuration.
	Duration time.Duration
	// Lower and Upper are the thresholds of the delay variation. Zero: DefaultLower,
	// DefaultUpper.
	Lower, Upper time.Duration
	// HighSpeedDelta is by how many rows the fast ramp climbs. Zero: 10.
	HighSpeedDelta int
	// SlowAdjust is how many congested steps, not one of them followed by a climb of the
	// fast ramp, end the fast ramp. Zero: 3.
	SlowAdjust int
	// SequenceErrors is how many are tolerated in a step. Zero: 10; below zero: none.
	SequenceErrors int
}

// Defaults of AdjustOptions: those of RFC 9097 section 8.1 and of its reference
// implementation, udpst; its tests last 10 s.
const (
	DefaultInterval       = 50 * time.Millisecond
	DefaultDuration       = 10 * time.Second
	DefaultLower          = 30 * time.Millisecond
	DefaultUpper          = 90 * time.Millisecond
	DefaultHighSpeedDelta = 10
	DefaultSlowAdjust     = 3
	DefaultSequenceErrors = 10
)

// retreat is how many times HighSpeedDelta the rate falls when the fast ramp ends.
const retreat = 3

// tolerable is the largest share of a step's packets that are tolerated sequence errors.
const tolerable = 0.1

// Adjust is the load adjustment of RFC 9097 section 8 and appendix A, which is the type B
// algorithm of ITU-T Y.1540 Annex B and of BBF TR-471: the rate goes up and down
// the rows of a table by the feedback of each step.
//
//	few sequence errors and a delay variation below Lower:
//	    below the high-speed threshold, and not yet slow: HighSpeedDelta rows up
//	    else: one row up
//	too many sequence errors, or a delay variation above Upper:
//	    below the high-speed threshold, the SlowAdjust-th time: 3 HighSpeedDelta rows down
//	    else: one row down
//	between the thresholds: stay
//
// As there, the count of congested steps goes back to zero with each fast climb and no other
// way: once slow, the search stays slow. The high-speed threshold is the row of 1 Gb/s.
//
// It deviates in three things. The standard's table, of 1 Mb/s a row, is for feedback every
// 50 ms and for links of some Mb/s: with longer steps, or with Max below 100 Mb/s, rows
// are of a hundredth of Max. No more than a tenth of a step's packets are tolerated as
// sequence errors, since on slow links ten may be all. And the delay variation is that
// of the one-way delay, in which a constant offset of the clocks cancels, where udpst takes
// the round trip by default.
type Adjust struct {
	o     AdjustOptions
	rows  []float64
	row   int
	high  int // the row of the high-speed threshold
	slow  int // congested steps that have been counted
	steps int
	of    int
	best  float64
}

// NewAdjust returns a load adjustment that begins with the lowest rate, or an error if the
// options are none.
func NewAdjust(o AdjustOptions) (*Adjust, error) {
	orElse(&o.Interval, DefaultInterval)
	orElse(&o.Duration, DefaultDuration)
	orElse(&o.Lower, DefaultLower)
	orElse(&o.Upper, DefaultUpper)
	orElse(&o.HighSpeedDelta, DefaultHighSpeedDelta)
	orElse(&o.SlowAdjust, DefaultSlowAdjust)
	orElse(&o.SequenceErrors, DefaultSequenceErrors)
	orElse(&o.Max, tableEnd)
	o.SequenceErrors = max(o.SequenceErrors, 0)
	switch {
	case o.Min < 0 || !isRate(o.Max) || !(o.Min <= o.Max):
		return nil, fmt.Errorf("search: from %v to %v is no range of rates", o.Min, o.Max)
	case o.Interval < 0 || o.Duration < o.Interval:
		return nil, fmt.Errorf("search: %v in steps of %v is no step", o.Duration, o.Interval)
	case o.Lower < 0 || o.Upper < o.Lower:
		return nil, fmt.Errorf("search: thresholds %v and %v; want the lower first, both above zero", o.Lower, o.Upper)
	case o.HighSpeedDelta < 0 || o.SlowAdjust < 0:
		return nil, fmt.Errorf("search: %d rows, %d steps; want both above zero", o.HighSpeedDelta, o.SlowAdjust)
	}
	a := &Adjust{o: o, of: int(o.Duration / o.Interval)}
	a.rows, a.high = table(o)
	return a, nil
}

func orElse[T comparable](v *T, otherwise T) {
	var zero T
	if *v == zero {
		*v = otherwise
	}
}

// The standard table in IP octets a second, and where it is used.
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

// table is the rates from Min to Max, ascending, and the row of the high-speed threshold.
func table(o AdjustOptions) (rows []float64, high int) {
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

// Next is Algorithm.
func (a *Adjust) Next() (Step, bool) {
	if a.steps >= a.of {
		return Step{}, false
	}
	return Step{Rate: a.rows[a.row], Duration: a.o.Interval}, true
}

// Observe is Algorithm.
func (a *Adjust) Observe(f Feedback) {
	if a.steps >= a.of {
		return
	}
	a.steps++
	a.best = max(a.best, f.Received)
	errors := f.Lost + f.Reordered + f.Duplicate
	tolerated := min(a.o.SequenceErrors, int(tolerable*float64(f.Packets)))
	delay := f.DelayVariation
	if delay < 0 {
		delay = a.o.Lower // not known: it neither raises the rate nor lowers it
	}
	switch {
	case errors <= tolerated && delay < a.o.Lower:
		a.up()
	case errors > tolerated || delay > a.o.Upper:
		a.down()
	}
}

func (a *Adjust) up() {
	if a.row < a.high && a.slow < a.o.SlowAdjust {
		a.row = min(a.row+a.o.HighSpeedDelta, a.high)
		a.slow = 0
		return
	}
	a.row = min(a.row+1, len(a.rows)-1)
}

func (a *Adjust) down() {
	a.slow++
	if a.row < a.high && a.slow == a.o.SlowAdjust {
		a.row = max(a.row-retreat*a.o.HighSpeedDelta, 0)
		return
	}
	a.row = max(a.row-1, 0)
}

// Maximum is the result: the largest rate at which a step was received, in IP octets a
// second (RFC 9097 section 6.3, Maximum_C); false: none was.
func (a *Adjust) Maximum() (rate float64, ok bool) { return a.best, a.best > 0 }
