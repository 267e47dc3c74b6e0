package clock_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/clock/clocktest"
	"oneway.example/exporter/core/instant"
	"oneway.example/tests/testseed"
)

func TestCheckCountsStepsBothWays(t *testing.T) {
	c := clocktest.NewClock()
	d := clock.NewStepDetector(clock.StepOptions{Read: c.Read})
	if got := d.Check(); got.Steps != 0 || got.Since() != math.MaxInt64 {
		t.Fatalf("before any step: %+v", got)
	}
	for i, step := range []time.Duration{
		time.Hour, -time.Hour, time.Millisecond, -time.Millisecond, 200 * time.Microsecond, 10 * 365 * 24 * time.Hour,
	} {
		before := d.Check()
		c.Step(step)
		after := d.Check()
		if after.Steps != uint64(i+1) {
			t.Errorf("after a step of %v: %d steps, want %d", step, after.Steps, i+1)
		}
		if moved := after.Offset - before.Offset; (moved - step).Abs() > 20*time.Microsecond {
			t.Errorf("a step of %v moved the offset by %v", step, moved)
		}
		if again := d.Check(); again.Steps != after.Steps {
			t.Errorf("a step of %v was counted twice", step)
		}
	}
}

// A thread that is preempted between the two reads gets a wrong difference.
func TestPreemptionIsNotCountedAsAStep(t *testing.T) {
	seed := testseed.Of(t)
	random := rand.New(rand.NewPCG(seed, 0))
	var now time.Duration
	read := func() clock.Reading {
		pause := func() {
			now += 50
			if random.IntN(4) == 0 {
				now += time.Duration(random.Int64N(int64(20 * time.Millisecond)))
			}
		}
		var r clock.Reading
		pause()
		if random.IntN(2) == 0 {
			r.Wall = instant.Time(1e18) + instant.Time(now)
			pause()
			r.Mono = now
		} else {
			r.Mono = now
			pause()
			r.Wall = instant.Time(1e18) + instant.Time(now)
		}
		return r
	}
	d := clock.NewStepDetector(clock.StepOptions{Read: read})
	for range 20000 {
		if c := d.Check(); c.Steps != 0 {
			t.Fatalf("a step was detected at %v", c.SteppedAt)
		}
	}
}

func TestCheckFromManyGoroutinesCountsAStepOnce(t *testing.T) {
	c := clocktest.NewClock()
	d := clock.NewStepDetector(clock.StepOptions{Read: c.Read})
	for want := range uint64(50) {
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 20 {
					d.Check()
				}
			})
		}
		c.Step(time.Second)
		all.Wait()
		if got := d.Check().Steps; got != want+1 {
			t.Fatalf("%d steps, want %d", got, want+1)
		}
	}
}

// watcher is a kernel simulated by the test.
type watcher struct{ notices chan struct{} }

func (w watcher) watch(ctx context.Context, canceled func()) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.notices:
			canceled()
		}
	}
}

func TestKernelNoticeCountsEachStepOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clocktest.NewClock()
		w := watcher{make(chan struct{})}
		d := clock.NewStepDetector(clock.StepOptions{Read: c.Read, Watch: w.watch})
		ctx, cancel := context.WithCancel(t.Context())
		go d.Run(ctx)
		synctest.Wait()
		notice := func() { w.notices <- struct{}{}; synctest.Wait() }
		expect := func(what string, want uint64) {
			t.Helper()
			if got := d.Check().Steps; got != want {
				t.Fatalf("%s: %d steps, want %d", what, got, want)
			}
		}
		c.Step(time.Second)
		notice()
		expect("detected by the kernel first", 1)
		c.Step(-time.Second)
		expect("detected by the comparison first", 2)
		notice()
		expect("then by the kernel", 2)
		c.Step(time.Microsecond)
		expect("too small for the comparison", 2)
		notice()
		expect("but reported by the kernel", 3)
		c.Step(time.Second)
		c.Step(-time.Second)
		notice()
		expect("reversed", 4)
		cancel()
		synctest.Wait()
	})
}

func TestRunComparesTheClocksPeriodically(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clocktest.NewClock()
		broken := func(context.Context, func()) error { return errors.New("no timerfd") }
		d := clock.NewStepDetector(clock.StepOptions{Read: c.Read, Watch: broken})
		ctx, cancel := context.WithCancel(t.Context())
		go d.Run(ctx)
		c.Step(time.Minute)
		// simulated time (synctest)
		time.Sleep(10 * time.Second)
		if since := d.Check().Since(); since < 9*time.Second || since > 10*time.Second {
			t.Errorf("the step was detected %v ago, want 9 s to 10 s", since)
		}
		cancel()
		synctest.Wait()
	})
}

func TestRunWithTheRealTimerEndsWithItsContext(t *testing.T) {
	d := clock.NewStepDetector(clock.StepOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- d.Run(ctx) }()
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("Run = %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("Run did not end")
	}
}

func TestCheckDoesNotAllocate(t *testing.T) {
	d := clock.NewStepDetector(clock.StepOptions{})
	if n := testing.AllocsPerRun(1000, func() { d.Check() }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func BenchmarkCheck(b *testing.B) {
	d := clock.NewStepDetector(clock.StepOptions{})
	b.ReportAllocs()
	for b.Loop() {
		d.Check()
	}
}

// If a clock read is a slow system call (user-mode-linux, some hypervisors), no bracket is narrow. An inaccurate reference
// must not look like a step when it is measured more accurately.
func TestCheckWithASlowClockCountsStepsExactly(t *testing.T) {
	seed := testseed.Of(t)
	random := rand.New(rand.NewPCG(seed, 0))
	var now, shift time.Duration
	pause := func() { now += time.Duration(10_000 + random.Int64N(int64(time.Millisecond))) }
	read := func() clock.Reading {
		var r clock.Reading
		pause()
		r.Wall = instant.Time(1e18) + instant.Time(now+shift)
		pause()
		r.Mono = now
		return r
	}
	d := clock.NewStepDetector(clock.StepOptions{Read: read})
	for want := range uint64(200) {
		for range 200 {
			if got := d.Check().Steps; got != want {
				t.Fatalf("%d steps, want %d", got, want)
			}
		}
		shift += time.Duration(1-2*int64(want%2)) * 20 * time.Millisecond
	}
}
