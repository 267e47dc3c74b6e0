package sched

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The tests of this file use the kernel's timer.

func start(tb testing.TB) *Pacer {
	tb.Helper()
	p, err := NewPacer()
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- p.Run(ctx) }()
	tb.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			tb.Error(err)
		}
	})
	return p
}

func TestSleepingPacerWakesForAnEarlierTask(t *testing.T) {
	p := start(t)
	p.Add(TaskFunc(func(_, _ time.Duration) time.Duration { return Stop }), Now()+time.Hour)
	fired := make(chan time.Duration, 1)
	first := Now() + time.Millisecond
	p.Add(TaskFunc(func(due, now time.Duration) time.Duration { fired <- now - due; return Stop }), first)
	if late := <-fired; late < 0 {
		t.Errorf("task fired %v early", -late)
	}
}

func TestRemoveWaitsForFire(t *testing.T) {
	p := start(t)
	var inside atomic.Bool
	entered, leave := make(chan struct{}), make(chan struct{})
	enter := sync.OnceFunc(func() { close(entered) })
	remove := p.Add(TaskFunc(func(_, _ time.Duration) time.Duration {
		inside.Store(true)
		enter()
		<-leave
		inside.Store(false)
		return 1
	}), 1)
	<-entered
	removed := make(chan bool)
	go func() { remove(); removed <- inside.Load() }()
	close(leave)
	if <-removed {
		t.Error("remove returned during Fire")
	}
}

func TestRemovedTaskNeverFiresAgain(t *testing.T) {
	p := start(t)
	for range 300 {
		var gone, wrong atomic.Bool
		var flusherGone atomic.Bool
		fired := make(chan struct{}, 1)
		remove := p.Add(TaskFunc(func(_, now time.Duration) time.Duration {
			if gone.Load() {
				wrong.Store(true)
			}
			select {
			case fired <- struct{}{}:
			default:
			}
			return now + 1
		}), 1)
		removeFlusher := p.AddFlusher(func() {
			if flusherGone.Load() {
				wrong.Store(true)
			}
		})
		<-fired
		var done sync.WaitGroup
		for range 2 { // removed twice concurrently
			done.Go(func() { remove(); gone.Store(true) })
		}
		done.Go(func() { removeFlusher(); flusherGone.Store(true) })
		done.Wait()
		if wrong.Load() {
			t.Fatal("task fired after remove had returned")
		}
	}
}

func TestTaskMayRemoveItselfOnTheKernelsTimer(t *testing.T) {
	p := start(t)
	done := make(chan struct{})
	handed := make(chan func(), 1)
	handed <- p.Add(TaskFunc(func(_, _ time.Duration) time.Duration {
		remove := <-handed
		remove()
		close(done)
		return 1
	}), 1)
	<-done
	var removeFlusher func()
	flushed := make(chan struct{})
	ready := make(chan struct{})
	removeFlusher = p.AddFlusher(func() { <-ready; removeFlusher(); close(flushed) })
	close(ready)
	p.Add(TaskFunc(func(_, _ time.Duration) time.Duration { return Stop }), 1)
	<-flushed
}

func TestNowIsMonotonic(t *testing.T) {
	previous := Now()
	if previous <= 0 {
		t.Fatalf("Now is %v, want a time above 0", previous)
	}
	for range 1000 {
		now := Now()
		if now < previous {
			t.Fatalf("Now went back from %v to %v", previous, now)
		}
		previous = now
	}
}

// BenchmarkTenThousandTasks runs 10,000 tasks at one per second: an operation is a firing. It reports the CPU time as a
// share of one core, the wake-ups per second and the lateness of the tasks.
func BenchmarkTenThousandTasks(b *testing.B) {
	const tasks = 10_000
	p := start(b)
	rng := rand.New(rand.NewPCG(1, 2))
	late := make([]time.Duration, 0, b.N)
	var wakes int
	enough := make(chan struct{})
	removes := []func(){p.AddFlusher(func() { wakes++ })}
	begin := Now() + 200*time.Millisecond
	b.ReportAllocs()
	for range tasks {
		s := Periodic(time.Second, begin+RandomPhase(time.Second, rng))
		removes = append(removes, p.Add(TaskFunc(func(due, now time.Duration) time.Duration {
			if len(late) < b.N {
				if late = append(late, now-due); len(late) == b.N {
					close(enough)
				}
			}
			return s.Next(due)
		}), s.Next(begin)))
	}
	b.ResetTimer()
	cpu, from := cpuTime(), Now()
	<-enough
	used, took := cpuTime()-cpu, Now()-from
	b.StopTimer()
	for _, remove := range removes {
		remove()
	}
	slices.Sort(late)
	b.ReportMetric(used.Seconds()/took.Seconds(), "cores")
	b.ReportMetric(float64(wakes)/took.Seconds(), "wakes/s")
	b.ReportMetric(float64(late[len(late)/2])/1e3, "late_p50_us")
	b.ReportMetric(float64(late[len(late)*99/100])/1e3, "late_p99_us")
}
