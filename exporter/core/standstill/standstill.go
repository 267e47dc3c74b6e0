// Package standstill finds times in which this process did not run: it was stopped (SIGSTOP, Ctrl-Z), its host was
// suspended or a paused virtual machine, or other processes used all processors. What is measured over such a time is no
// property of the path.
package standstill

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"oneway.example/exporter/core/ctxtime"
)

// Limit is the shortest time that counts: a busy host holds a process up for less.
const Limit = time.Second

// interval is the time between two looks of Run at the clock.
const interval = 100 * time.Millisecond

// Watch watches one process from New on. Its methods are safe for concurrent use.
type Watch struct {
	now func() time.Duration

	mu      sync.Mutex
	last    time.Duration // the last look at the clock
	longest time.Duration
}

// New begins to watch. Run must follow within Limit.
func New() *Watch { return newWatch(sinceBoot) }

func newWatch(now func() time.Duration) *Watch { return &Watch{now: now, last: now()} }

// sinceBoot is CLOCK_BOOTTIME, which continues while the host is suspended.
func sinceBoot() time.Duration {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) // no kernel fails (Linux 2.6.39)
	return time.Duration(ts.Nano())
}

// Run watches until ctx ends, and calls found with each time of at least Limit in which this process did not run.
func (w *Watch) Run(ctx context.Context, found func(time.Duration)) {
	for ctxtime.Sleep(ctx, interval) { // nothing tells a process that it was stopped: only its own lateness does
		if d := w.look(); d >= Limit {
			found(d)
		}
	}
}

// Longest returns the longest time in which this process did not run, zero if all were below Limit. It needs no turn of
// Run after such a time.
func (w *Watch) Longest() time.Duration {
	w.look()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.longest < Limit {
		return 0
	}
	return w.longest
}

// look returns the time since the look before, without the interval between them.
func (w *Watch) look() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	d := now - w.last - interval
	w.last, w.longest = now, max(w.longest, d)
	return d
}
