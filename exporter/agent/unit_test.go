package agent

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oneway.example/exporter/ctxtime"
	"oneway.example/exporter/internal/promsink"
	"oneway.example/exporter/metric"
	"oneway.example/exporter/metric/metrictest"
)

func TestPausesGrowAndAreResetAfterAGoodRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var at []time.Duration
		ctx, cancel := context.WithCancel(t.Context())
		u := startUnit(ctx, slog.New(slog.DiscardHandler), retry{first: time.Second, most: 8 * time.Second}, func(ctx context.Context) error {
			at = append(at, time.Since(begin))
			if len(at) == 7 {
				ctxtime.For(ctx, time.Minute) // a good run
			}
			return errors.New("no")
		})
		// simulated time (synctest)
		time.Sleep(3 * time.Minute)
		cancel()
		<-u.done
		for i, nominal := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 8 * time.Second, 8 * time.Second, time.Minute + time.Second} {
			pause := at[i+1] - at[i]
			slack := nominal / 4
			if i == 6 {
				slack = time.Second / 4
			}
			if pause < nominal-slack || pause > nominal+slack {
				t.Errorf("pause %d is %v, want about %v", i, pause, nominal)
			}
		}
	})
}

func TestUnitThatDoesNotStopIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		lazy := func(context.Context) error { <-release; return nil }
		prompt := func(ctx context.Context) error { <-ctx.Done(); return nil }
		var tasks []*task
		for name, run := range map[string]func(context.Context) error{"lazy": lazy, "lazier": lazy, "prompt": prompt} {
			tasks = append(tasks, &task{
				what: "probe fake of path " + name, unit: startUnit(t.Context(), slog.New(slog.DiscardHandler), retry{time.Second, time.Second}, run),
			})
		}
		begin := time.Now()
		err := stopAll(tasks...)
		if took := time.Since(begin); took != stopTimeout {
			t.Errorf("took %v, want %v for all together", took, stopTimeout)
		}
		for _, name := range []string{"path lazy ", "path lazier "} {
			if err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("error is %v, want it to name %q", err, name)
			}
		}
		if err != nil && strings.Contains(err.Error(), "prompt") {
			t.Errorf("error is %v", err)
		}
		close(release)
	})
}

// The series of a prober pass exemplars to the sink.
func TestLeaseLetsExemplarsThrough(t *testing.T) {
	sink := promsink.New(promsink.Options{})
	l := newLease(sink)
	defer l.closeAll()
	l.Series(metric.LoadedDelay, "a", "saturation", "forward").ObserveWithExemplar(0.05, metric.RunIDL, "a-run")
	families, err := sink.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if text := families[0].String(); !strings.Contains(text, `value:"a-run"`) {
		t.Errorf("no exemplar in %s", text)
	}
}

func TestLeaseClosesTheSeriesOfThePathOnce(t *testing.T) {
	sink := &metrictest.Sink{}
	l := newLease(sink)
	first := l.Series(metric.ProbeUp, "a", "p")
	l.Series(metric.ProbeUp, "a", "p")
	l.Series(metric.SocketDrops, "0.0.0.0:862") // shared by probers of many paths
	first.Close()
	first.Close()
	if n := sink.Open(); n != 2 {
		t.Errorf("%d series are open after one of two openers closed its series twice, want 2", n)
	}
	l.closeAll()
	if _, drops := sink.Value(metric.SocketDrops, "0.0.0.0:862"); sink.Open() != 1 || !drops {
		t.Errorf("%d series are open, the series of the socket: %v, want that one only", sink.Open(), drops)
	}
}
