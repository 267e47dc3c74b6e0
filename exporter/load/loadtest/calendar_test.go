package loadtest_test

import (
	"testing"
	"time"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/probe/calendar"
)

func TestNextRunMetricFollowsTheWindows(t *testing.T) {
	in(t, func(t *testing.T) {
		next := func(b *bench) (time.Duration, bool) { // the time until the next run
			v, ok := b.sink.Value(metric.RunNext, "office", "saturation")
			return time.Until(time.Unix(0, int64(v*1e9))).Round(time.Millisecond), ok
		}
		begin := time.Now()
		b := newBench(t, func(b *bench) {
			from := begin.Hour()*60 + begin.Minute()
			b.opts.Windows = []calendar.Window{{From: from, To: from + 90}} // two runs a day
		})
		b.start()
		time.Sleep(5 * time.Second) // simulated time (synctest)
		if d, ok := next(b); !ok || d != -5*time.Second {
			t.Errorf("next run is due in %v (%v) 5 s into the first", d, ok)
		}
		time.Sleep(10 * time.Second) // simulated time (synctest)
		if d, ok := next(b); !ok || d != time.Hour-15*time.Second {
			t.Errorf("15 s after the first the next is due in %v (%v), want within its hour", d, ok)
		}
		time.Sleep(2 * time.Hour) // simulated time (synctest)
		if d, ok := next(b); !ok || d != 22*time.Hour-15*time.Second {
			t.Errorf("after the window the next run is due in %v (%v), want the next day", d, ok)
		}
		b.expectRuns(map[string]float64{"completed,ok": 2})
		b.end()
	})
}

func TestNextRunMetricIsAbsentIfNoneIsPlanned(t *testing.T) {
	in(t, func(t *testing.T) {
		b := newBench(t, func(b *bench) { b.opts.Windows = []calendar.Window{{From: 60, To: 120, Days: 1 << 7}} })
		b.start()
		time.Sleep(time.Minute) // simulated time (synctest)
		if v, ok := b.sink.Value(metric.RunNext, "office", "saturation"); ok {
			t.Errorf("the time of the next run is %f, want none", v)
		}
		if s := b.prober.Status(); s.State != "no run is due: no window ever opens" {
			t.Errorf("%+v", s)
		}
		b.end()
		once, err := loadtest.RunOnce(t.Context(), b.env, target, b.opts, b.test(), nil, func(loadtest.Progress) {})
		if err != nil || once.Result != loadtest.Completed || len(b.sink.History(metric.RunNext, "office", "saturation")) != 0 {
			t.Errorf("once: %+v, %v", once, err)
		}
	})
}
