package chrony

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/clock/clocktest"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/core/sample"
)

// testbed is a monitor and its fake chronyd in a synctest bubble.
type testbed struct {
	*testing.T
	clock   *clocktest.Clock
	daemon  *daemon
	sink    *metrictest.Sink
	monitor *Monitor
}

// inTestbed runs f beside a running monitor, and then checks that all ends.
func inTestbed(t *testing.T, o Options, f func(b *testbed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := clocktest.NewClock()
		b := &testbed{T: t, clock: c, daemon: newDaemon(c), sink: &metrictest.Sink{}}
		o.Sink, o.dial = b.sink, b.daemon.dial
		o.Steps = clock.StepOptions{Read: c.Read, Watch: func(ctx context.Context, _ func()) error {
			<-ctx.Done()
			return nil
		}}
		m, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		b.monitor = m
		if q := m.Quality(c.Read().Wall); q.State != clock.Silent || q.Bound.Reason != sample.ClockSilent {
			t.Errorf("before Run: %+v, want silent", q)
		}
		stop := clocktest.Start(t, m.Run, b.sink)
		synctest.Wait()
		f(b)
		stop()
	})
}

func (b *testbed) quality() clock.Quality { return b.monitor.Quality(b.clock.Read().Wall) }

func (b *testbed) expect(when string, state clock.State, reason sample.Reason) {
	b.Helper()
	if q := b.quality(); q.State != state || q.Bound.Reason != reason {
		b.Errorf("%s: state %v, reason %v, want %v, %v", when, q.State, q.Bound.Reason, state, reason)
	}
}

// pass lets time go by with an update of chronyd's source every ten seconds.
func (b *testbed) pass(d time.Duration) {
	for ; d > 0; d -= 10 * time.Second {
		// simulated time (synctest)
		time.Sleep(min(d, 10*time.Second))
		b.daemon.update(0)
	}
}
