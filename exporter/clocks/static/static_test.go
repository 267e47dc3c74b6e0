package static_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/clock/clocktest"
	"oneway.example/exporter/clocks/static"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/core/sample"
)

func silent(ctx context.Context, _ func()) error { <-ctx.Done(); return nil }

func TestQualityIsTheConfiguredBound(t *testing.T) {
	q := static.New(time.Millisecond, metric.Discard{}).Quality(instant.Now())
	want := clock.Quality{
		State: clock.Synchronized,
		Bound: sample.Bound{Error: time.Millisecond, Reason: sample.OK},
	}
	if q != want {
		t.Errorf("got %+v, want %+v", q, want)
	}
}

func TestBoundBeyondAnHourOrBelowZeroIsNone(t *testing.T) {
	for bound, reason := range map[time.Duration]sample.Reason{
		0: sample.OK, time.Hour: sample.OK, time.Hour + 1: sample.BoundTooLarge, math.MaxInt64: sample.BoundTooLarge,
		-1: sample.BoundTooLarge, math.MinInt64: sample.BoundTooLarge,
	} {
		state := clock.Synchronized
		if reason != sample.OK {
			state = clock.Unsynchronized
		}
		if q := static.New(bound, metric.Discard{}).Quality(instant.Now()); q.Bound.Reason != reason || q.State != state {
			t.Errorf("%v: %+v, want %v, %v", bound, q, state, reason)
		}
	}
}

func TestStepIsHeldDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clocktest.NewClock()
		m := static.NewWith(static.Options{
			Bound: time.Millisecond, Steps: clock.StepOptions{Read: c.Read, Watch: silent},
		})
		c.Step(-time.Minute)
		for elapsed := time.Duration(0); elapsed < 2*static.HoldDown; elapsed += 500 * time.Millisecond {
			q := m.Quality(instant.Now())
			state, reason := clock.Stepping, sample.LocalStepped
			if elapsed >= static.HoldDown {
				state, reason = clock.Synchronized, sample.OK
			}
			if q.State != state || q.Bound.Reason != reason || q.Steps != 1 {
				t.Errorf("%v after the step: %+v, want %v, %v, 1 step", elapsed, q, state, reason)
			}
			// simulated time (synctest)
			time.Sleep(500 * time.Millisecond)
		}
	})
}

func TestSeriesEndWithRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, sink := clocktest.NewClock(), &metrictest.Sink{}
		m := static.NewWith(static.Options{
			Bound: time.Millisecond, Sink: sink, Steps: clock.StepOptions{Read: c.Read, Watch: silent},
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- m.Run(ctx) }()
		synctest.Wait()
		expect := func(what string, d *metric.Desc, want float64, present bool, labels ...string) {
			t.Helper()
			if v, ok := sink.Value(d, append([]string{static.Name}, labels...)...); v != want || ok != present {
				t.Errorf("%s: %s%v is %v (present %v), want %v (%v)", what, d.Name, labels, v, ok, want, present)
			}
		}
		expect("steady", metric.ClockSynchronized, 1, true)
		expect("steady", metric.ClockErrorBound, 1e-3, true)
		expect("steady", metric.ClockState, 1, true, "synchronized")
		expect("steady", metric.ClockState, 0, true, "stepping")
		expect("steady", metric.ClockSteps, 0, true)
		expect("steady", metric.ClockOffset, 0, false)
		expect("steady", metric.ClockLastUpdate, 0, false)
		c.Step(time.Second)
		time.Sleep(2 * time.Second) // simulated time (synctest)
		expect("stepped", metric.ClockSynchronized, 0, true)
		expect("stepped", metric.ClockErrorBound, 0, false)
		expect("stepped", metric.ClockState, 1, true, "stepping")
		expect("stepped", metric.ClockSteps, 1, true)
		time.Sleep(static.HoldDown) // simulated time (synctest)
		expect("settled", metric.ClockErrorBound, 1e-3, true)
		expect("settled", metric.ClockSteps, 1, true)
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run = %v", err)
		}
		if n := sink.Open(); n != 0 {
			t.Errorf("%d series are left: %v", n, sink.Present(""))
		}
	})
}

func TestQualityDoesNotAllocate(t *testing.T) {
	m := static.New(time.Millisecond, metric.Discard{})
	now := instant.Now()
	if n := testing.AllocsPerRun(1000, func() { m.Quality(now) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
