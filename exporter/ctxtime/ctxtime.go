// Package ctxtime waits.
package ctxtime

import (
	"context"
	"time"
)

// For waits for d, and reports whether it did: false if ctx ended first. A d of
// zero or less is over at once, unless ctx has ended.
func For(ctx context.Context, d time.Duration) bool {
	if ctx.Err() != nil {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
