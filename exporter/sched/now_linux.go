package sched

import (
	"time"

	"golang.org/x/sys/unix"
)

// monotonicAt is what CLOCK_MONOTONIC showed at t, a reading of the runtime's
// clock. The tightest of a few bracketed readings is taken, so that being
// descheduled in between does not shift the two against each other.
func monotonicAt(t time.Time) time.Duration {
	var best, width time.Duration
	for i := range 8 {
		before := time.Since(t)
		var ts unix.Timespec
		if unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) != nil {
			return time.Second
		}
		after := time.Since(t)
		if i == 0 || after-before < width {
			width = after - before
			best = time.Duration(ts.Nano()) - before - width/2
		}
	}
	return best
}
