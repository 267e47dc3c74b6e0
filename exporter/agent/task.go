package agent

import (
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

	"oneway.example/exporter/ctxtime"
	"oneway.example/exporter/metric"
)

// runner is what a task runs, once.
type runner interface {
	Run(ctx context.Context) error
}

// task is one thing that the agent runs because its configuration says so. A plan makes it, and
// what it runs first; its unit runs that under supervision, and another one after each failure; a
// later plan with the same key and identity keeps it; stopAll ends it.
type task struct {
	// key is its place in the configuration, what the words for it in messages.
	key, what string
	// identity is the same (reflect.DeepEqual) as long as the task means the same.
	identity any
	log      *slog.Logger

	mu sync.Mutex // held while one is made
	// make makes what is run. It opens nothing but files that the configuration names.
	make func(sink metric.Sink, log *slog.Logger) (runner, error)
	// secrets are not part of the identity: renew gives them to one that runs. nil: there are none.
	secrets [][]byte
	renew   func(runner) error

	// files are read by what is made, and are not part of the identity: a plan that keeps the
	// task reads them only to check them.
	files bool

	current atomic.Pointer[run]
	unit    *unit
}

// run is one run of a task.
type run struct {
	runner
	lease *lease
}

// stopTimeout is how long tasks may take to end.
const stopTimeout = 5 * time.Second

// prepare makes what is run next.
func (t *task) prepare(sink metric.Sink) (*run, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := newLease(sink)
	r, err := t.make(l, t.log)
	if err != nil {
		return nil, err
	}
	one := &run{r, l}
	t.current.Store(one)
	return one, nil
}

// running is what runs, or was the last to do so, or will be the first.
func (t *task) running() runner { return t.current.Load().runner }

// runner is what the supervised unit of a task runs: first what a plan has prepared.
func (t *task) runner(sink metric.Sink) func(context.Context) error {
	fresh := true
	return func(ctx context.Context) (err error) {
		one := t.current.Load()
		if !fresh {
			// One that has failed is not run again: what it holds is unknown.
			if one, err = t.prepare(sink); err != nil {
				return err
			}
		}
		fresh = false
		defer one.lease.closeAll()
		return one.Run(ctx)
	}
}

// fault is why it does not run now; empty: it does.
func (t *task) fault() string {
	if _, err := t.unit.state(); err != nil {
		return err.Error()
	}
	return ""
}

// same tells whether a later plan's task means what t does.
func (t *task) same(later *task) bool {
	return t != nil && t.key == later.key && reflect.DeepEqual(t.identity, later.identity)
}

// adopt takes over the secrets of a later plan's task that means the same.
func (t *task) adopt(later *task) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if reflect.DeepEqual(t.secrets, later.secrets) {
		return
	}
	t.make, t.secrets = later.make, later.secrets
	if err := later.renew(t.running()); err != nil {
		t.log.Error("Keys not changed", "err", err)
		return
	}
	t.log.Info("Keys changed", "keys", len(t.secrets))
}

// stopAll ends tasks together and waits until they have ended, but not for ever.
func stopAll(tasks ...*task) error {
	deadline, end := context.WithTimeout(context.Background(), stopTimeout)
	defer end()
	for _, t := range tasks {
		t.unit.cancel()
	}
	var errs []error
	for _, t := range tasks {
		errs = append(errs, t.unit.stop(t.what, deadline.Done()))
	}
	return errors.Join(errs...)
}

// retry says how long to wait after a failure: twice as long each time.
type retry struct{ first, most time.Duration }

// unit is something that runs until it is stopped, and is begun again when it
// ends by itself, fails or panics.
type unit struct {
	log   *slog.Logger
	retry retry
	run   func(context.Context) error

	cancel context.CancelFunc
	done   chan struct{}

	mu       sync.Mutex
	err      error // why it does not run now; nil while it runs
	restarts int
}

func newUnit(log *slog.Logger, r retry, run func(context.Context) error) *unit {
	return &unit{log: log, retry: r, run: run, done: make(chan struct{})}
}

func (u *unit) start(ctx context.Context) {
	ctx, u.cancel = context.WithCancel(ctx)
	go u.keep(ctx)
}

func startUnit(ctx context.Context, log *slog.Logger, r retry, run func(context.Context) error) *unit {
	u := newUnit(log, r, run)
	u.start(ctx)
	return u
}

var errEnded = errors.New("it ended by itself")

func (u *unit) keep(ctx context.Context) {
	defer close(u.done)
	delay := u.retry.first
	for {
		begin := time.Now()
		err := u.once(ctx)
		if ctx.Err() != nil {
			if err != nil && !errors.Is(err, context.Canceled) {
				u.log.Warn("Ended with an error", "err", err)
			}
			return
		}
		if err == nil {
			err = errEnded
		}
		if time.Since(begin) > u.retry.most {
			delay = u.retry.first // it ran well for a while: this is a new fault
		}
		u.set(err)
		// A quarter more or less, or many that failed together fail together again.
		pause := delay*3/4 + rand.N(delay/2)
		u.log.Error("Failed, will be tried again", "err", err, "retry_in_seconds", pause.Seconds())
		if !ctxtime.For(ctx, pause) {
			return
		}
		delay = min(2*delay, u.retry.most)
		u.set(nil)
	}
}

// once runs it; a panic is an error with its stack.
func (u *unit) once(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
			u.log.Error("Panic", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		}
	}()
	return u.run(ctx)
}

// set says why it does not run, or, with nil, that it is begun again.
func (u *unit) set(err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.err = err; err == nil {
		u.restarts++
	}
}

// state is how often it was begun again, and the error that keeps it from
// running now, if any.
func (u *unit) state() (restarts int, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.restarts, u.err
}

// stop ends it and waits, but not for ever.
func (u *unit) stop(what string, deadline <-chan struct{}) error {
	u.cancel()
	select {
	case <-u.done:
	case <-deadline:
		select {
		case <-u.done: // both
		default:
			return fmt.Errorf("agent: %s is still running after %v", what, stopTimeout)
		}
	}
	return nil
}

// lease hands out series and takes back those of the path when the prober has
// ended, even if it panicked: a path that is gone must have no series. Series
// without a path, of sockets that probers share, are theirs to close.
type lease struct {
	metric.Sink
	mu   sync.Mutex
	open map[*leased]struct{}
}

func newLease(s metric.Sink) *lease { return &lease{Sink: s, open: map[*leased]struct{}{}} }

type leased struct {
	metric.Series
	from *lease
}

// Series is that of the sink, and remembered.
func (l *lease) Series(d *metric.Desc, values ...string) metric.Series {
	s := l.Sink.Series(d, values...)
	if len(d.Labels) == 0 || d.Labels[0] != metric.Path {
		return s
	}
	one := &leased{s, l}
	l.mu.Lock()
	l.open[one] = struct{}{}
	l.mu.Unlock()
	return one
}

// Close ends the series; a second call does nothing.
func (s *leased) Close() {
	s.from.mu.Lock()
	_, open := s.from.open[s]
	delete(s.from.open, s)
	s.from.mu.Unlock()
	if open {
		s.Series.Close()
	}
}

func (l *lease) closeAll() {
	l.mu.Lock()
	open := l.open
	l.open = map[*leased]struct{}{}
	l.mu.Unlock()
	l.Update(func() {
		for s := range open {
			s.Series.Close()
		}
	})
}
