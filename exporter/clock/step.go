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

	"oneway.example/exporter/core/ctxtime"
	"oneway.example/exporter/core/instant"
)

const (
	// stepTolerance is the smallest change of REALTIME minus MONOTONIC that counts as a step. It is far above the error of
	// reading two clocks one after the other (0.1 us with a TSC, some us with an HPET), and far below the steps of a
	// daemon. Smaller steps are detected by the kernel's notification only.
	stepTolerance = 50 * time.Microsecond
	// compareEvery is the interval at which Run compares the clocks in addition to calls of Check.
	compareEvery = time.Second
	// brackets limits the attempts to read both clocks at almost the same time.
	brackets = 16
)

// StepOptions configure a StepDetector. The zero value is ready for use.
type StepOptions struct {
	// Read reads the clocks; nil: SystemReader.
	Read Reader
	// Watch calls canceled after each discontinuous change that the kernel reports, until ctx ends; nil: with a timerfd,
	// see StepDetector.
	Watch func(ctx context.Context, canceled func()) error
	// Log receives the error of Watch; nil: no log.
	Log *slog.Logger
}

// StepDetector detects discontinuous changes of CLOCK_REALTIME: clock_settime, adjtimex with ADJ_SETOFFSET, a leap second
// inserted by the kernel, a suspend.
//
// It has two sources. The kernel cancels a timerfd with TFD_TIMER_CANCEL_ON_SET (Linux 3.0) at any such change, however
// small, but the notification takes a scheduling delay to arrive. In addition every Check compares REALTIME minus MONOTONIC
// with its previous value: this detects the step for a packet timestamped right after it, before the notification.
//
// Slewing does not affect the comparison. Linux derives REALTIME from MONOTONIC by adding a constant
// (kernel/time/timekeeping.c, offs_real) and applies frequency and slew to both, so only a step changes their difference.
//
// Pausing and resuming a virtual machine is not a step: both clocks stop or continue together. Only the time source shows
// the resulting offset, at the daemon's next update.
type StepDetector struct {
	read  Reader
	watch func(context.Context, func()) error
	log   *slog.Logger
	era   atomic.Pointer[era]
}

// era is the time between two steps. It is immutable.
type era struct {
	offset      time.Duration // REALTIME minus MONOTONIC
	uncertainty time.Duration // error of offset, significant if reading a clock is slow
	steps       uint64
	began       time.Duration // MONOTONIC when the step was detected
}

// Check is the result of one comparison.
type Check struct {
	// Now is the reading of the comparison.
	Now Reading
	// Offset is the current REALTIME minus MONOTONIC: instants of one era minus Offset are on one time scale, independent
	// of steps.
	Offset time.Duration
	// Steps is the number of detected steps.
	Steps uint64
	// SteppedAt is MONOTONIC when the last step was detected; 0 while Steps is 0.
	SteppedAt time.Duration
}

// Since is the time since the last step was detected; the largest Duration if there was none.
func (c Check) Since() time.Duration {
	if c.Steps == 0 {
		return math.MaxInt64
	}
	return c.Now.Mono - c.SteppedAt
}

// NewStepDetector makes a detector that compares; Run adds the kernel's notifications.
func NewStepDetector(o StepOptions) *StepDetector {
	d := &StepDetector{read: o.Read, watch: o.Watch, log: cmp.Or(o.Log, slog.New(slog.DiscardHandler))}
	if d.read == nil {
		d.read = SystemReader()
	}
	if d.watch == nil {
		d.watch = watchSystem
	}
	b := d.bracket(d.read())
	d.era.Store(&era{offset: b.offset(), uncertainty: b.uncertainty()})
	return d
}

// Check compares the clocks. It is safe for concurrent use, does not block, and allocates only when it detects a step.
func (d *StepDetector) Check() Check {
	for {
		e := d.era.Load()
		now := d.read()
		if (now.offset() - e.offset).Abs() <= e.allowance() {
			return e.check(now)
		}
		// The thread may have been preempted between the two reads. Only a bracket that excludes the old offset proves a
		// step.
		b := d.bracket(now)
		if !b.excludes(e) {
			return e.check(b.now)
		}
		if next := e.step(b); d.era.CompareAndSwap(e, next) {
			return next.check(b.now)
		}
	}
}

// Run receives the kernel's notifications and compares once a second, until ctx ends; it returns nil then. Without the
// kernel's notifications (the reason is logged) it only compares.
func (d *StepDetector) Run(ctx context.Context) error {
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() {
		if err := d.watch(ctx, d.canceled()); err != nil && ctx.Err() == nil {
			d.log.Warn("Kernel does not report clock steps; comparing clocks only", "err", err)
		}
	})
	for ctxtime.Sleep(ctx, compareEvery) {
		d.rebase()
	}
	return nil
}

// canceled returns the function that handles the kernel's notifications. A notification proves a step: if no comparison
// since the last notification has detected one, the step was too small for the comparison or was reversed, and is counted
// too.
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

// rebase compares, and replaces the reference if its last measurement was inaccurate.
func (d *StepDetector) rebase() {
	check := d.Check()
	e := d.era.Load()
	if e.steps != check.Steps || e.uncertainty <= stepTolerance/8 {
		return
	}
	b := d.bracket(d.read())
	if b.uncertainty() < e.uncertainty && !b.excludes(e) {
		next := *e
		next.offset, next.uncertainty = b.offset(), b.uncertainty()
		d.era.CompareAndSwap(e, &next) // fails after a step, whose era has a newer reference
	}
}

// allowance is the largest deviation of the difference of the clocks from e.offset without a step.
func (e *era) allowance() time.Duration { return stepTolerance + e.uncertainty }

// span contains the true difference of the clocks, unless a step falls into it.
type span struct {
	low, high time.Duration
	now       Reading
}

// bracket narrows the difference by successive readings. Independent of the order of the two reads in a Reading, the wall
// clock of the later one was read after the monotonic clock of the earlier one, and vice versa.
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

func (s span) uncertainty() time.Duration { return (s.high - s.low) / 2 }

// excludes reports whether the era's offset, with its allowance, is outside of the span.
func (s span) excludes(e *era) bool {
	return e.offset+e.allowance() < s.low || e.offset-e.allowance() > s.high
}

// step is the era that follows e.
func (e *era) step(b span) *era {
	return &era{offset: b.offset(), uncertainty: b.uncertainty(), steps: e.steps + 1, began: b.now.Mono}
}

func (e *era) check(now Reading) Check {
	return Check{Now: now, Offset: e.offset, Steps: e.steps, SteppedAt: e.began}
}

// Reading is a reading of both clocks at almost the same time.
type Reading struct {
	// Wall is CLOCK_REALTIME.
	Wall instant.Time
	// Mono is CLOCK_MONOTONIC since a fixed moment of this process.
	Mono time.Duration
}

// offset is Wall minus Mono. Only its changes are significant.
func (r Reading) offset() time.Duration { return time.Duration(r.Wall) - r.Mono }

// Reader reads both clocks. It must not allocate, and the monotonic clock of successive readings must not decrease. Tests
// use a Reader with steps.
type Reader func() Reading

// SystemReader reads the system's clocks: one time.Now, which makes two vDSO calls.
func SystemReader() Reader {
	base := time.Now()
	return func() Reading {
		now := time.Now()
		return Reading{Wall: instant.Time(now.UnixNano()), Mono: now.Sub(base)}
	}
}

// watchSystem calls canceled at each discontinuous change of CLOCK_REALTIME.
//
// The timer is absolute and set to a time in the far future; it only serves to be canceled (timerfd_create(2),
// TFD_TIMER_CANCEL_ON_SET). The read that returns ECANCELED rearms the notification. The wait is in the runtime's poller and
// blocks no thread.
func watchSystem(ctx context.Context, canceled func()) error {
	fd, err := unix.TimerfdCreate(unix.CLOCK_REALTIME, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return fmt.Errorf("clock: timerfd_create: %w", err)
	}
	timer := os.NewFile(uintptr(fd), "timerfd")
	defer timer.Close() // a second Close after the one below is harmless
	never := unix.ItimerSpec{Value: unix.Timespec{Sec: math.MaxInt}}
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
		// Without an error the clock has reached that time (2038 on 32-bit processors); this happens at most once.
	}
}
