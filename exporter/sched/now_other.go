//go:build !linux

package sched

import "time"

// monotonicAt: elsewhere Now counts from a second before the program's start,
// so that it is above zero.
func monotonicAt(time.Time) time.Duration { return time.Second }
