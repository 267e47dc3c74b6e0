// Package ctxtime waits with a context.
package ctxtime

import (
	"context"
	"time"
)

// Sleep waits for d, and reports whether d has passed: false if ctx ended first. A d of zero or less passes at once,
// unless ctx has ended.
func Sleep(ctx context.Context, d time.Duration) bool {
	if ctx.Err() != nil {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
	return ctx.Err() == nil
}
