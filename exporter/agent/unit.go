package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"time"

	"oneway.example/exporter/wait"
)

// retry says how long to wait after a failure: twice as long each time.
type retry struct{ first, most time.Duration }

func (r *retry) complete() {
	if r.first == 0 {
		r.first = time.Second
	}
	if r.most == 0 {
		r.most = time.Minute
	}
}

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

func startUnit(ctx context.Context, log *slog.Logger, r retry, run func(context.Context) error) *unit {
	ctx, cancel := context.WithCancel(ctx)
	u := &unit{log: log, retry: r, run: run, cancel: cancel, done: make(chan struct{})}
	go u.keep(ctx)
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
		u.fail(err)
		// A quarter more or less, or many that failed together fail together again.
		pause := delay*3/4 + rand.N(delay/2)
		u.log.Error("Failed, will be tried again", "err", err, "retry_in_seconds", pause.Seconds())
		if !wait.For(ctx, pause) {
			return
		}
		delay = min(2*delay, u.retry.most)
		u.recover()
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

func (u *unit) fail(err error) {
	u.mu.Lock()
	u.err = err
	u.mu.Unlock()
}

func (u *unit) recover() {
	u.mu.Lock()
	u.err = nil
	u.restarts++
	u.mu.Unlock()
}

// state is how often it was begun again, and the error that keeps it from
// running now, if any.
func (u *unit) state() (restarts int, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.restarts, u.err
}

// stop ends it and waits, but not for ever.
func (u *unit) stop(what string, deadline <-chan time.Time) error {
	u.cancel()
	select {
	case <-u.done:
		return nil
	default:
	}
	select {
	case <-u.done:
		return nil
	case <-deadline:
		return fmt.Errorf("agent: %s is still running after %v", what, stopTimeout)
	}
}
