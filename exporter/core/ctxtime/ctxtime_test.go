package ctxtime_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"oneway.example/exporter/core/ctxtime"
)

func TestSleepWaitsUnlessItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		// simulated time (synctest)
		if !ctxtime.Sleep(t.Context(), time.Hour) || time.Since(begin) != time.Hour {
			t.Errorf("waited %v, want an hour", time.Since(begin))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begin = time.Now()
		// simulated time (synctest)
		if ctxtime.Sleep(ctx, time.Hour) || time.Since(begin) != time.Minute {
			t.Errorf("waited %v, want a minute and false", time.Since(begin))
		}
		// simulated time (synctest)
		if ctxtime.Sleep(ctx, 0) {
			t.Error("Sleep waited although its context had ended")
		}
		// simulated time (synctest)
		if !ctxtime.Sleep(t.Context(), -time.Second) {
			t.Error("Sleep of a time of zero or less returned false")
		}
	})
}
