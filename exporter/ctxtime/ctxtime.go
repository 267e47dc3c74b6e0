// Package ctxtime waits with a context.
package ctxtime

import (
	"context"
	"time"
)

// For waits for d, and reports whether d has passed: false if ctx ended first. A d of zero or less passes at once,
// unless ctx has ended.
//
// Thousands of goroutines wait here: it has no select, whose stack frame would keep the runtime from shrinking their
// stacks.
func For(ctx context.Context, d time.Duration) bool {
	if ctx.Err() != nil {
		return false
	}
	timed, cancel := context.WithTimeout(ctx, d)
	<-timed.Done()
	cancel()
	return ctx.Err() == nil
}
