// Package sched says when things are done. Its Pacer fires tasks at set times of the
// monotonic clock, all of them in one goroutine.
//
// A Go timer wakes up to a millisecond late, because the runtime's poller rounds
// to milliseconds (measured: 0.6 ms median, 1.1 ms p99). An absolute timerfd,
// which has no slack, is late by tens of microseconds even though the same poller
// waits for it, and one goroutine serves thousands of sessions.
//
// Heavy tests have other needs, in minutes and octets: Calendar says when one is due,
// Links lets one at a time onto a link and keeps the link's data budget.
//
// The package knows times and tasks, not what the tasks do.
package sched

import "time"

// anchor and anchorAt relate the runtime's monotonic clock to the kernel's.
// Both are set once. The runtime reads CLOCK_MONOTONIC through the vDSO in some
// 40 ns, which a clock_gettime of our own would take a system call for.
var (
	anchor   = time.Now()
	anchorAt = monotonicAt(anchor)
)

// Now is CLOCK_MONOTONIC (clock_gettime(2)): the time since an arbitrary start,
// usually the boot, which no step of the real-time clock touches. It is above
// zero. Where the kernel's clock cannot be read it counts from the program's
// start. The absolute value may be off by the few ten nanoseconds between the
// two readings at the start; differences are exact.
func Now() time.Duration { return anchorAt + time.Since(anchor) }
