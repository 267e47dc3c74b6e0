package none_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/clock/clocktest"
	"oneway.example/exporter/clocks/none"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/core/sample"
)

func TestNoDelayIsValid(t *testing.T) {
	c := clocktest.NewClock()
	m := none.NewWith(none.Options{Steps: clock.StepOptions{Read: c.Read}})
	for steps := range uint64(3) {
		want := clock.Quality{State: clock.None, Bound: sample.Bound{Reason: sample.NoClock}, Steps: steps}
		if q := m.Quality(instant.Now()); q != want {
			t.Errorf("got %+v, want %+v", q, want)
		}
		c.Step(time.Second)
	}
}

func TestMetricsHaveStateNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &metrictest.Sink{}
		m := none.NewWith(none.Options{Sink: sink, Steps: clock.StepOptions{
			Watch: func(ctx context.Context, _ func()) error { <-ctx.Done(); return nil },
		}})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- m.Run(ctx) }()
		synctest.Wait()
		if v, ok := sink.Value(metric.ClockState, none.Name, "none"); !ok || v != 1 {
			t.Errorf("state none is %v (present %v), want 1", v, ok)
		}
		if v, ok := sink.Value(metric.ClockSynchronized, none.Name); !ok || v != 0 {
			t.Errorf("synchronized is %v (present %v), want 0", v, ok)
		}
		if v, ok := sink.Value(metric.ClockErrorBound, none.Name); ok {
			t.Errorf("there is a bound: %v", v)
		}
		cancel()
		if err := <-ended; err != nil || sink.Open() != 0 {
			t.Errorf("Run = %v with %d series left", err, sink.Open())
		}
	})
}
