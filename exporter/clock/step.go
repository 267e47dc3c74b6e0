package clock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"oneway.example/exporter/ctxtime"
	"oneway.example/exporter/instant"
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
	// Watch calls canceled after each discontinuous change that the kernel
	// reports, until ctx ends; nil: by a timer of the kernel, see StepDetector.
	Watch func(ctx context.Context, canceled func()) error
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
//
// A virtual machine that is paused and resumed by its host steps nothing: both
// clocks stand still or go on together. Only the time source can tell, at the
// daemon's next update.
type StepDetector struct {
	read  Reader
	watch func(context.Context, func()) error
	log   *slog.Logger
	era   atomic.Pointer[era]
}

// era is the time between two steps. It is never changed, only replaced.
type era struct {
	offset time.Duration // REALTIME minus MONOTONIC
	blur   time.Duration // how far offset may be off, where reading a clock is slow
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
	d := &StepDetector{read: o.Read, watch: o.Watch, log: cmp.Or(o.Log, slog.New(slog.DiscardHandler))}
	if d.read == nil {
		d.read = SystemReader()
	}
	if d.watch == nil {
		d.watch = watchSystem
	}
	b := d.bracket(d.read())
	d.era.Store(&era{offset: b.offset(), blur: b.blur()})
	return d
}

// Check compares the clocks. It may be called from any goroutine, does not
// block, and allocates only in the moment in which it finds a step.
func (d *StepDetector) Check() Check {
	for {
		e := d.era.Load()
		now := d.read()
		if (now.offset() - e.offset).Abs() <= e.allowance() {
			return e.check(now)
		}
		// The thread may have been preempted between the two reads. Only a
		// bracket that the old offset lies outside of proves a step.
		b := d.bracket(now)
		if !b.excludes(e) {
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
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() {
		if err := d.watch(ctx, d.canceled()); err != nil && ctx.Err() == nil {
			d.log.Warn("no notice of clock steps from the kernel; comparing clocks only", "err", err)
		}
	})
	for ctxtime.For(ctx, compareEvery) {
		d.rebase()
	}
	return nil
}

// canceled returns the function that takes the kernel's notices. The kernel
// knows of a step for certain: if neither this comparison nor one since the
// last notice has seen it, it was too small for the comparison, or went there
// and back, and counts all the same.
func (d *StepDetector) canceled() func() {
	counted := d.era.Load().steps
	return func() {
		for {
			if steps := d.Check().Steps; steps != counted {
				counted = steps
				return
			}
			if e := d.era.Load(); e.steps == counted && d.era.CompareAndSwap(e, e.step(d.bracket(d.read()))) {
				counted++
				return
			}
		}
	}
}

// rebase compares, and takes the difference of the clocks as the new reference where it was
// measured badly the last time.
func (d *StepDetector) rebase() {
	check := d.Check()
	e := d.era.Load()
	if e.steps != check.Steps || e.blur <= stepTolerance/8 {
		return
	}
	b := d.bracket(d.read())
	if b.blur() < e.blur && !b.excludes(e) {
		next := *e
		next.offset, next.blur = b.offset(), b.blur()
		d.era.CompareAndSwap(e, &next) // lost to a step: that era has a newer reference
	}
}

// allowance is how far the difference of the clocks may be from e.offset without a step.
func (e *era) allowance() time.Duration { return stepTolerance + e.blur }

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
		s := span{low: time.Duration(previous.Wall) - now.Mono, high: time.Duration(now.Wall) - previous.Mono, now: now}
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

// excludes reports whether the era's offset, with its allowance, lies outside of the span.
func (s span) excludes(e *era) bool {
	return e.offset+e.allowance() < s.low || e.offset-e.allowance() > s.high
}

// step is the era after e.
func (e *era) step(b span) *era {
	return &era{offset: b.offset(), blur: b.blur(), steps: e.steps + 1, began: b.now.Mono}
}

func (e *era) check(now Reading) Check {
	return Check{Now: now, Offset: e.offset, Steps: e.steps, SteppedAt: e.began}
}

// Reading is both clocks read at, as nearly as can be, one moment.
type Reading struct {
	// Wall is CLOCK_REALTIME.
	Wall instant.Time
	// Mono is CLOCK_MONOTONIC since some fixed moment of this process.
	Mono time.Duration
}

// offset is Wall minus Mono. It has no meaning of its own; that it changes has.
func (r Reading) offset() time.Duration { return time.Duration(r.Wall) - r.Mono }

// Reader reads both clocks. It must not allocate, and the monotonic clock of
// successive readings must not go back. Tests hand in a Reader that steps.
type Reader func() Reading

// SystemReader reads the system's clocks: one time.Now, which the Go runtime
// answers with two calls into the vDSO.
func SystemReader() Reader {
	base := time.Now()
	return func() Reading {
		now := time.Now()
		return Reading{Wall: instant.Time(now.UnixNano()), Mono: now.Sub(base)}
	}
}

// watchSystem calls canceled at each discontinuous change of CLOCK_REALTIME.
//
// The timer is absolute and set for a moment that never comes; what it is for
// is to be canceled (timerfd_create(2), TFD_TIMER_CANCEL_ON_SET). The read that
// returns ECANCELED arms the notice again. It waits in the runtime's poller, so
// that no thread is held.
func watchSystem(ctx context.Context, canceled func()) error {
	fd, err := unix.TimerfdCreate(unix.CLOCK_REALTIME, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return fmt.Errorf("clock: timerfd_create: %w", err)
	}
	timer := os.NewFile(uintptr(fd), "timerfd")
	defer timer.Close() // a second Close after the one below is harmless
	never := unix.ItimerSpec{Value: unix.NsecToTimespec(math.MaxInt64)}
	if err := unix.TimerfdSettime(fd, unix.TFD_TIMER_ABSTIME|unix.TFD_TIMER_CANCEL_ON_SET, &never, nil); err != nil {
		return fmt.Errorf("clock: timerfd_settime: %w", err)
	}
	defer context.AfterFunc(ctx, func() { timer.Close() })()
	var expirations [8]byte
	for {
		switch _, err := timer.Read(expirations[:]); {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, unix.ECANCELED):
			canceled()
		case err != nil:
			return fmt.Errorf("clock: timerfd: %w", err)
		}
		// Without an error the clock has reached the year 2262; that, too, is read once.
	}
}
