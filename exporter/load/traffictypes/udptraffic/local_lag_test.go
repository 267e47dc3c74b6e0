package udptraffic_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/loadtesttest"
	"oneway.example/exporter/load/stream"
	"oneway.example/exporter/load/traffictypes/udptraffic"
)

func TestTimeoutIsNeverMoreThanConfigured(t *testing.T) {
	const drain = 5 * time.Second
	for requested, want := range map[time.Duration]time.Duration{
		0: drain, -1: drain, time.Second: time.Second, time.Minute: drain, time.Nanosecond: udptraffic.MinIdle,
	} {
		if got := udptraffic.Timeout(drain, requested); got != want {
			t.Errorf("idle %v: timeout %v, want %v", requested, got, want)
		}
	}
}

// late is a carrier that returns some time after the end of sending.
type late struct {
	*loadtesttest.Link
	lag  time.Duration
	idle time.Duration
}

func (l *late) Transfer(ctx context.Context, d sample.Direction, p stream.Plan, idle time.Duration, progress func(loadtest.Progress), adjustRate stream.Adjuster) (*udptraffic.CarrierResult, error) {
	l.idle = idle
	c, err := l.Link.Transfer(ctx, d, p, idle, progress, adjustRate)
	time.Sleep(l.lag) // simulated time (synctest)
	return c, err
}

func TestLagIsTheTimeAfterTheEndOfSending(t *testing.T) {
	plan := stream.Plan{Segments: []stream.Segment{{PayloadBytes: 972, Interval: 100 * time.Millisecond, Burst: 1, Bursts: 11}}}
	for name, c := range map[string]struct {
		each func(sample.Direction, *udptraffic.CarrierResult) error
		ok   bool
	}{
		"all arrived": {nil, true},
		"one was lost": {func(_ sample.Direction, c *udptraffic.CarrierResult) error {
			c.Received.Packets = c.Received.Packets[1:]
			return nil
		}, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := &late{Link: &loadtesttest.Link{Sleep: true, Each: c.each}, lag: 300 * time.Millisecond}
			got, err := udptraffic.NewSession(l, udptraffic.SessionOptions{}).TransferWithin(t.Context(), sample.Forward, plan, time.Second, nil)
			if err != nil {
				t.Fatal(err)
			}
			// The last packet leaves at 1 s; its interval is over at 1.1 s.
			lag, ok := got.Lag()
			if ok != c.ok || (lag-400*time.Millisecond).Abs() > time.Millisecond {
				t.Errorf("%s: lag %v, %v", name, lag, ok)
			}
			if l.idle != time.Second {
				t.Errorf("%s: the carrier's idle timeout is %v", name, l.idle)
			}
		})
	}
}
