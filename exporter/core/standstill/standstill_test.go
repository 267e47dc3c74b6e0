package standstill

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A process that sleeps, or is late as on a busy host, runs; one that was stopped does not.
func TestTimeWithoutARunIsFoundAndABusyHostIsNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin, stopped := time.Now(), atomic.Int64{}
		w := newWatch(func() time.Duration { return time.Since(begin) + time.Duration(stopped.Load()) })
		ctx, cancel := context.WithCancel(t.Context())
		var found []time.Duration
		go w.Run(ctx, func(d time.Duration) { found = append(found, d) })
		for range 10 {
			time.Sleep(time.Minute) // simulated time (synctest)
			stopped.Add(int64(900 * time.Millisecond))
		}
		time.Sleep(time.Second) // simulated time (synctest)
		if w.Longest() != 0 || found != nil {
			t.Errorf("a busy host: %v, %v", w.Longest(), found)
		}
		stopped.Add(int64(25 * time.Second))
		time.Sleep(time.Second) // simulated time (synctest)
		if d := w.Longest(); d < 24*time.Second || d > 26*time.Second || len(found) != 1 || found[0] != d {
			t.Errorf("stopped for 25s: %v, %v", d, found)
		}
		cancel()
	})
}

// The last thing that a process does may come before Run has looked.
func TestLongestNeedsNoTurnOfRun(t *testing.T) {
	var now time.Duration
	w := newWatch(func() time.Duration { return now })
	now += 3 * time.Second
	if d := w.Longest(); d < 2*time.Second || d > 3*time.Second {
		t.Error(d)
	}
	if d := New().Longest(); d != 0 {
		t.Errorf("at once: %v", d)
	}
}
