package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"oneway.example/exporter/core/ctxtime"
	"oneway.example/exporter/core/errtext"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/probe"
)

// runner is what a task runs, once.
type runner interface {
	Run(ctx context.Context) error
}

// task is something that the agent runs because of its configuration. A plan makes it with its first runner; its unit
// supervises that runner, and makes another one after each failure; a later plan with the same key and identity keeps
// it; stopAll ends it.
type task struct {
	// key is its place in the configuration, what its name in messages; empty: that of target.
	key, what string
	// target is that of a probe.
	target probe.Target
	// identity is equal (reflect.DeepEqual) as long as the task has the same meaning.
	identity any
	log      *slog.Logger // logger adds the target

	mu sync.Mutex // held while a runner is made
	// make makes a runner. It opens only files that the configuration names. The scopes of its run are for series that end
	// with it, even after a panic in Run, Start or end: a removed path must have no series.
	make func(sink metric.Sink, scopes *metric.Scopes, log *slog.Logger) (runner, error)
	// secrets are not part of the identity: renew passes them to a running one. nil: no secrets.
	secrets [][]byte
	renew   func(runner) error

	// files reports that runners read files that are not part of the identity: a plan that keeps the task reads them
	// only to check them.
	files bool

	// pause is the longest one after a failure; zero: retry of the options.
	pause time.Duration

	current atomic.Pointer[run]
	unit    *unit
}

// run is one run of a task.
type run struct {
	runner
	scopes metric.Scopes
}

// stopTimeout is the time that tasks have to end.
const stopTimeout = 5 * time.Second

// name is its name in messages.
func (t *task) name() string {
	return cmp.Or(t.what, fmt.Sprintf("probe %s of path %s", t.target.Probe, t.target.Path))
}

// logger is its logger. Those of probes are not kept: thousands of them log little.
func (t *task) logger() *slog.Logger {
	if t.target.Path == "" {
		return t.log
	}
	return t.log.With("path", t.target.Path, "probe", t.target.Probe)
}

// prepare makes the next run.
func (t *task) prepare(sink metric.Sink) (*run, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := new(run)
	var err error
	if one.runner, err = t.make(sink, &one.scopes, t.log); err != nil {
		return nil, err
	}
	t.current.Store(one)
	return one, nil
}

// running is the current runner, or the last or next one if none runs.
func (t *task) running() runner { return t.current.Load().runner }

// runner is the function that the unit of a task runs: first the run that the plan has prepared.
func (t *task) runner(sink metric.Sink) func(context.Context) (end func(), err error) {
	fresh := true
	return func(ctx context.Context) (end func(), err error) {
		one := t.current.Load()
		if !fresh {
			// A runner that has failed is not run again, since its state is unknown.
			if one, err = t.prepare(sink); err != nil {
				return nil, err
			}
		}
		fresh = false
		return one.start(ctx)
	}
}

// start runs the runner, or starts it and returns its end.
func (r *run) start(ctx context.Context) (end func(), err error) {
	started := false
	defer func() {
		if !started {
			r.scopes.Close()
		}
	}()
	s, ok := r.runner.(probe.Starter)
	if !ok {
		return nil, r.Run(ctx)
	}
	stop, err := s.Start(ctx)
	if stop == nil {
		return nil, err
	}
	started = true
	return func() {
		defer r.scopes.Close()
		stop()
	}, nil
}

// fault is why it does not run; empty: it runs.
func (t *task) fault() string {
	if _, err := t.unit.state(); err != nil {
		return errtext.Words(err)
	}
	return ""
}

// same reports whether the task of a later plan has the same meaning.
func (t *task) same(later *task) bool {
	return t != nil && t.key == later.key && reflect.DeepEqual(t.identity, later.identity)
}

// adopt takes over the secrets of a later plan's task of the same meaning.
func (t *task) adopt(later *task) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if reflect.DeepEqual(t.secrets, later.secrets) {
		return
	}
	t.make, t.secrets = later.make, later.secrets
	if err := guarded(t.logger, func() error { return later.renew(t.running()) }); err != nil {
		t.log.Error("Keys not changed", "err", err)
		return
	}
	t.log.Info("Keys changed", "keys", len(t.secrets))
}

// reloaded is the cause of the end of a task that a reload has changed or removed: a load test that runs then has it in its result.
type reloaded struct{}

// Error is the cause in words.
func (reloaded) Error() string { return "a reload of the configuration changed or removed it" }

// Is lets errors.Is find context.Canceled: the task was stopped, and has no fault.
func (reloaded) Is(err error) bool { return err == context.Canceled }

// stopAll ends tasks together and waits until they have ended, at most for stopTimeout. why is the cause that their contexts have;
// nil: context.Canceled.
func stopAll(why error, tasks ...*task) error {
	deadline, end := context.WithTimeout(context.Background(), stopTimeout)
	defer end()
	for _, t := range tasks {
		t.unit.halt(why)
	}
	var errs []error
	for _, t := range tasks {
		errs = append(errs, t.unit.stop(t.name, deadline.Done()))
	}
	return errors.Join(errs...)
}

// retry is the backoff after failures: the pause doubles each time.
type retry struct{ first, most time.Duration }

// unit runs a function until it is stopped, and restarts it when it ends by itself, fails or panics.
type unit struct {
	log   func() *slog.Logger
	retry retry
	// run runs until its context ends, or returns the function that ends what it has started (probe.Starter).
	run func(context.Context) (end func(), err error)

	cancel context.CancelCauseFunc
	done   chan struct{}

	mu       sync.Mutex
	end      func() // ends what it has started without a goroutine; nil: nothing
	err      error  // why it does not run; nil while it runs
	restarts int
}

func newUnit(log func() *slog.Logger, r retry, run func(context.Context) (end func(), err error)) *unit {
	return &unit{log: log, retry: r, run: run, done: make(chan struct{})}
}

func (u *unit) start(ctx context.Context) {
	ctx, u.cancel = context.WithCancelCause(ctx)
	go u.keep(ctx)
}

func startUnit(ctx context.Context, log *slog.Logger, r retry, run func(context.Context) error) *unit {
	u := newUnit(func() *slog.Logger { return log }, r, func(ctx context.Context) (func(), error) { return nil, run(ctx) })
	u.start(ctx)
	return u
}

var errEnded = errors.New("it ended without being stopped")

// keep runs the function until ctx ends. What it has started runs on without this goroutine.
func (u *unit) keep(ctx context.Context) {
	end := u.supervise(ctx)
	if end != nil && u.holds(ctx, end) {
		return
	}
	u.finish(end)
}

// holds leaves end to halt, unless ctx has ended.
func (u *unit) holds(ctx context.Context, end func()) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if ctx.Err() == nil {
		u.end = end
	}
	return u.end != nil
}

// halt requests the end for a cause, without waiting for it.
func (u *unit) halt(why error) {
	u.cancel(why)
	u.mu.Lock()
	end := u.end
	u.end = nil
	u.mu.Unlock()
	if end != nil {
		go u.finish(end)
	}
}

// finish ends what the function has started, if anything.
func (u *unit) finish(end func()) {
	defer close(u.done)
	if end != nil {
		u.ended(guarded(u.log, func() error { end(); return nil }))
	}
}

// supervise runs the function, again after each failure, until ctx ends, or until it has started something, whose end it
// returns.
func (u *unit) supervise(ctx context.Context) (end func()) {
	delay, told := u.retry.first, ""
	for {
		begin := time.Now()
		err := guarded(u.log, func() (err error) { end, err = u.run(ctx); return err })
		if end != nil {
			return end
		}
		if ctx.Err() != nil {
			u.ended(err)
			return nil
		}
		if time.Since(begin) > u.retry.most {
			delay, told = u.retry.first, "" // after a long run this is a new fault
		}
		if err == nil {
			err = errEnded
		}
		if !u.failed(ctx, err, delay, err.Error() == told) {
			return nil
		}
		told = err.Error()
		delay = min(2*delay, u.retry.most)
		u.set(nil)
	}
}

// ended logs the error of a stopped unit.
func (u *unit) ended(err error) {
	if err != nil && !errors.Is(err, context.Canceled) {
		u.log().Warn("Ended with an error", "err", err)
	}
}

// failed logs the error of a unit, at the level debug if it is known, and waits until its next start: false if ctx ended before.
func (u *unit) failed(ctx context.Context, err error, delay time.Duration, known bool) bool {
	u.set(err)
	// Jitter of a quarter, so that units that failed together do not fail together again.
	pause := delay*3/4 + rand.N(delay/2)
	level := slog.LevelError
	if known {
		level = slog.LevelDebug
	}
	u.log().Log(ctx, level, "Failed, will be retried", "err", err, "retry_in_seconds", pause.Seconds())
	return ctxtime.Sleep(ctx, pause)
}

// guarded calls f; a panic is an error, and its stack is logged.
func guarded(log func() *slog.Logger, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
			log().Error("Panic", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		}
	}()
	return f()
}

// set stores why it does not run; nil means that it restarts.
func (u *unit) set(err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.err = err; err == nil {
		u.restarts++
	}
}

// state is the number of restarts, and the error that prevents it from running now, if any.
func (u *unit) state() (restarts int, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.restarts, u.err
}

// stop waits until a halted unit has ended, or until deadline.
func (u *unit) stop(name func() string, deadline <-chan struct{}) error {
	select {
	case <-u.done:
	case <-deadline:
		select {
		case <-u.done: // done and deadline at the same time
		default:
			return fmt.Errorf("agent: %s is still running after %v", name(), stopTimeout)
		}
	}
	return nil
}
