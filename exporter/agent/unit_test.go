package agent

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oneway.example/exporter/core/ctxtime"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/net/listen"
)

func TestPausesGrowAndAreResetAfterAGoodRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var at []time.Duration
		ctx, cancel := context.WithCancel(t.Context())
		u := startUnit(ctx, slog.New(slog.DiscardHandler), retry{first: time.Second, most: 8 * time.Second}, func(ctx context.Context) error {
			at = append(at, time.Since(begin))
			if len(at) == 7 {
				ctxtime.Sleep(ctx, time.Minute) // simulated time (synctest): the run lasts longer than the longest pause
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

func TestRepeatedFailureIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told bytes.Buffer
		ctx, cancel := context.WithCancel(t.Context())
		runs := 0
		u := startUnit(ctx, slog.New(slog.NewTextHandler(&told, nil)), retry{first: time.Second, most: 5 * time.Second}, func(ctx context.Context) error {
			if runs++; runs == 8 {
				ctxtime.Sleep(ctx, time.Minute) // simulated time (synctest): the next failure is a new fault
			}
			return map[bool]error{true: errors.New("no address"), false: errors.New("port in use")}[runs <= 4 || runs >= 8]
		})
		// simulated time (synctest)
		time.Sleep(3 * time.Minute)
		cancel()
		<-u.done
		if lines := strings.Count(told.String(), "no address"); runs < 10 || lines != 2 || strings.Count(told.String(), "port in use") != 1 {
			t.Errorf("%d runs: %s", runs, told.String())
		}
	})
}

// A virtual address appears without an event: a server that has no other one looks as often as package listen does.
func TestServersAreTriedAgainSoon(t *testing.T) {
	fake := newFake()
	r := newRigWith(t, fake, "reflector: {listen: [\"127.0.0.1:0\"]}\n"+twoPaths, func(o *Options) { o.retry = retry{} })
	fake.expect(t, "start a", "start b")
	if most := r.unit("reflector").retry.most; most != listen.RetryInterval {
		t.Errorf("the longest pause is %v, want %v", most, listen.RetryInterval)
	}
	if most := r.job(0).unit.retry.most; most != time.Minute {
		t.Errorf("the longest pause of a probe is %v, want a minute", most)
	}
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
		err := stopAll(nil, tasks...)
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

// startedRunner measures without a goroutine.
type startedRunner struct {
	once
	end func()
}

func (s *startedRunner) Start(context.Context) (func(), error) { return s.end, nil }

// What a runner has started runs without a goroutine, until its task ends, and the series end with it.
func TestStartedRunnerEndsWithItsTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink, ended := &metrictest.Sink{}, 0
		for _, end := range []func(){func() { ended++ }, func() { panic("at its end") }} {
			k := &task{log: slog.New(slog.DiscardHandler), make: func(sink metric.Sink, scopes *metric.Scopes, _ *slog.Logger) (runner, error) {
				scopes.Add(metric.NewScope(sink, "a", "p")).Series(metric.ProbeUp)
				return &startedRunner{end: end}, nil
			}}
			if _, err := k.prepare(sink); err != nil {
				t.Fatal(err)
			}
			k.unit = newUnit(k.logger, retry{first: time.Second, most: time.Minute}, k.runner(sink))
			before := bubbleGoroutines(t)
			k.unit.start(t.Context())
			time.Sleep(time.Hour) // simulated time (synctest)
			synctest.Wait()
			if n := bubbleGoroutines(t); n != before || sink.Open() != 1 || k.fault() != "" {
				t.Errorf("%d goroutines, want %d; %d series, want 1; fault %q", n, before, sink.Open(), k.fault())
			}
			if err := stopAll(nil, k); err != nil || sink.Open() != 0 {
				t.Errorf("%v; %d series are open after the end", err, sink.Open())
			}
		}
		if ended != 1 {
			t.Errorf("ended %d times, want once", ended)
		}
	})
}

// bubbleGoroutines is the number of goroutines of the caller's bubble (testing/synctest). The process has others, which end when
// they like: those of tests before this one, and of finalizers.
func bubbleGoroutines(t *testing.T) int {
	t.Helper()
	own := regexp.MustCompile(`synctest bubble \d+`).Find(stacks(false))
	if own == nil {
		t.Fatal("the stack does not name the bubble")
	}
	return bytes.Count(stacks(true), append(own, ']'))
}

// stacks are the stack of the caller, or of all goroutines.
func stacks(all bool) []byte {
	b := make([]byte, 1<<20)
	return b[:runtime.Stack(b, all)]
}

// A unit whose context ended while its function started something ends that at once.
func TestUnitStoppedDuringItsStartEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := false
		u := newUnit(func() *slog.Logger { return slog.New(slog.DiscardHandler) }, retry{time.Second, time.Second}, func(ctx context.Context) (func(), error) {
			<-ctx.Done()
			return func() { ended = true }, nil
		})
		u.start(t.Context())
		if err := stopAll(nil, &task{what: "it", unit: u}); err != nil || !ended {
			t.Errorf("%v, ended %v", err, ended)
		}
	})
}
