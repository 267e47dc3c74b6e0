package clock

import (
	"context"
	"log/slog"
	"math"
	"sync/atomic"
	"time"
)

const (
	// stepTolerance is the change of REALTIME minus MONOTONIC that the comparison
	// calls a step. It is far above what reading two clocks one after the other
	// blurs (0.1 us with a TSC, some us with an HPET), and far below any step that
	// a daemon would make on purpose. Smaller steps are left to the kernel's notice.
	stepTolerance = 50 * time.Microsecond
	// compareEvery is how often Run compares the clocks when nobody asks.
	compareEvery = time.Second
	// brackets bounds the attempts to read both clocks close together.
	brackets = 16
)

// StepOptions configure a StepDetector. The zero value is ready for use.
type StepOptions struct {
	// Read reads the clocks; nil: SystemReader.
	Read Reader
	// MaxSlew is how fast slewing alone can move CLOCK_REALTIME against
	// CLOCK_MONOTONIC, as a ratio; zero: what the operating system allows, see
	// StepDetector; negative: not at all.
	MaxSlew float64
	// Watch calls cancelled after each discontinuous change that the kernel
	// reports, until ctx ends; nil: the operating system's way, if it has one.
	Watch func(ctx context.Context, cancelled func()) error
	// Log is told when Watch fails; nil: nobody.
	Log *slog.Logger
}

// StepDetector notices discontinuous changes of CLOCK_REALTIME: clock_settime,
// adjtimex with ADJ_SETOFFSET, a leap second put in by the kernel, a suspend.
//
// It has two sources. The kernel cancels a timerfd that was set with
// TFD_TIMER_CANCEL_ON_SET (Linux 3.0) at any such change, however small, but
// the notice takes a scheduling delay to arrive. And every Check compares
// REALTIME minus MONOTONIC with what it was: a packet stamped right after a
// step is caught even if the notice is still on its way.
//
// Slewing does not disturb the comparison. Linux derives REALTIME from MONOTONIC
// by adding a constant (kernel/time/timekeeping.c, offs_real) and applies
// frequency and slew to both, so that only a step changes their difference.
// Systems that slew REALTIME alone get an allowance that grows with the time
// since the last comparison of Run, by 83333 ppm: chrony's maxslewrate.
//
// A virtual machine that is paused and resumed by its host steps nothing: both
// clocks stand still or go on together. Only the time source can tell, at the
// daemon's next update.
type StepDetector struct {
	read    Reader
	maxSlew float64
	watch   func(context.Context, func()) error
	log     *slog.Logger
	era     atomic.Pointer[era]
}

// era is the time between two steps. It is never changed, only replaced.
type era struct {
	offset time.Duration // REALTIME minus MONOTONIC
	blur   time.Duration // how far offset may be off, where reading a clock is slow
	seen   time.Duration // MONOTONIC when offset was measured
	steps  uint64
	began  time.Duration // MONOTONIC when the step was noticed
}

// Check is what one comparison found.
type Check struct {
	// Now is the reading the comparison was made with.
	Now Reading
	// Offset is REALTIME minus MONOTONIC in force: instants of one era minus
	// Offset are on one time scale, whatever was stepped in between.
	Offset time.Duration
	// Steps counts the steps seen so far.
	Steps uint64
	// SteppedAt is MONOTONIC when the last step was noticed; 0 while Steps is 0.
	SteppedAt time.Duration
}

// Since is the time since the last step was noticed; the largest Duration if
// there was none.
func (c Check) Since() time.Duration {
	if c.Steps == 0 {
		return math.MaxInt64
	}
	return c.Now.Mono - c.SteppedAt
}

// NewStepDetector starts to compare; Run adds the kernel's notices.
func NewStepDetector(o StepOptions) *StepDetector {
	d := &StepDetector{read: o.Read, maxSlew: o.MaxSlew, watch: o.Watch, log: o.Log}
	if d.read == nil {
		d.read = SystemReader()
	}
	if d.maxSlew == 0 {
		d.maxSlew = systemSlew
	}
	d.maxSlew = max(d.maxSlew, 0)
	if d.watch == nil {
		d.watch = watchSystem
	}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	b := d.bracket(d.read())
	d.era.Store(&era{offset: b.offset(), blur: b.blur(), seen: b.now.Mono})
	return d
}

// Check compares the clocks. It may be called from any goroutine, does not
// block, and allocates only in the moment in which it finds a step.
func (d *StepDetector) Check() Check {
	for {
		e := d.era.Load()
		now := d.read()
		if abs(now.offset()-e.offset) <= d.allowance(e, now) {
			return e.check(now)
		}
		// The thread may have been preempted between the two reads. Only a
		// bracket that the old offset lies outside of proves a step.
		b := d.bracket(now)
		if !b.excludes(e.offset, d.allowance(e, b.now)) {
			return e.check(b.now)
		}
		if next := e.step(b); d.era.CompareAndSwap(e, next) {
			return next.check(b.now)
		}
	}
}

// Run listens to the kernel and compares once a second, until ctx ends; it
// returns nil then. Without the kernel's notices (the log says why) it goes on
// by comparing alone.
func (d *StepDetector) Run(ctx context.Context) error {
	watched := make(chan struct{})
	defer func() { <-watched }()
	go func() {
		defer close(watched)
		if err := d.watch(ctx, d.cancelled()); err != nil && ctx.Err() == nil {
			d.log.Warn("no notice of clock steps from the kernel; comparing clocks only", "err", err)
		}
	}()
	tick := time.NewTicker(compareEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			d.rebase()
		}
	}
}

// cancelled returns the function that takes the kernel's notices. The kernel
// knows of a step for certain: if neither this comparison nor one since the
// last notice has seen it, it was too small for the comparison, or went there
// and back, and counts all the same.
func (d *StepDetector) cancelled() func() {
	counted := d.era.Load().steps
	return func() {
		for {
			steps := d.Check().Steps
			if steps == counted {
				e := d.era.Load()
				if e.steps != steps || !d.era.CompareAndSwap(e, e.step(d.bracket(d.read()))) {
					continue
				}
				steps++
			}
			counted = steps
			return
		}
	}
}

// rebase compares, and takes the difference of the clocks as the new reference
// where slewing moves it, or where it was measured badly the last time.
func (d *StepDetector) rebase() {
	check := d.Check()
	e := d.era.Load()
	if e.steps != check.Steps || d.maxSlew == 0 && e.blur <= stepTolerance/8 {
		return
	}
	b := d.bracket(d.read())
	if d.maxSlew == 0 && b.blur() >= e.blur {
		return
	}
	next := *e
	next.offset, next.blur, next.seen = b.offset(), b.blur(), b.now.Mono
	if !b.excludes(e.offset, d.allowance(e, b.now)) {
		d.era.CompareAndSwap(e, &next) // lost to a step: that era has a newer reference
	}
}

// allowance is how far the difference of the clocks may be from e.offset
// without a step.
func (d *StepDetector) allowance(e *era, now Reading) time.Duration {
	if d.maxSlew == 0 {
		return stepTolerance + e.blur
	}
	return stepTolerance + e.blur + time.Duration(d.maxSlew*float64(max(0, now.Mono-e.seen)))
}

// span holds the true difference of the clocks, if no step falls into it.
type span struct {
	low, high time.Duration
	now       Reading
}

// bracket narrows the difference down by successive readings. Whatever the
// order of the two reads inside a Reading: the wall clock of the later one was
// read after the monotonic clock of the earlier one, and the reverse.
func (d *StepDetector) bracket(previous Reading) span {
	best := span{low: math.MinInt64 / 2, high: math.MaxInt64 / 2}
	for range brackets {
		now := d.read()
		s := span{
			low:  time.Duration(previous.Wall) - now.Mono,
			high: time.Duration(now.Wall) - previous.Mono,
			now:  now,
		}
		previous = now
		// low above high: the clock was stepped between the two readings.
		if s.low <= s.high && s.high-s.low < best.high-best.low {
			best = s
		}
		if best.high-best.low <= stepTolerance/4 {
			break
		}
	}
	best.now = previous
	return best
}

func (s span) offset() time.Duration { return s.low + (s.high-s.low)/2 }

func (s span) blur() time.Duration { return (s.high - s.low) / 2 }

// excludes reports whether offset +- allowance lies outside of the span.
func (s span) excludes(offset, allowance time.Duration) bool {
	return offset+allowance < s.low || offset-allowance > s.high
}

// step is the era after e.
func (e *era) step(b span) *era {
	return &era{offset: b.offset(), blur: b.blur(), seen: b.now.Mono, steps: e.steps + 1, began: b.now.Mono}
}

func (e *era) check(now Reading) Check {
	return Check{Now: now, Offset: e.offset, Steps: e.steps, SteppedAt: e.began}
}

func abs(d time.Duration) time.Duration { return max(d, -d) }
