package sched

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oneway.example/tests/testseed"
)

// fakeTimer is a clock that jumps to the time of each wait.
type fakeTimer struct {
	mu    sync.Mutex
	time  time.Duration
	woken chan struct{}
	waits int
	err   error
}

func newFake() *fakeTimer { return &fakeTimer{woken: make(chan struct{}, 1)} }

func (f *fakeTimer) now() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.time
}

func (f *fakeTimer) advance(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.time += d
}

func (f *fakeTimer) wait(until time.Duration) error {
	f.mu.Lock()
	f.waits++
	if f.err != nil {
		defer f.mu.Unlock()
		return f.err
	}
	if until != never {
		f.time = max(f.time, until)
		f.mu.Unlock()
		return nil
	}
	f.mu.Unlock()
	<-f.woken
	return nil
}

func (f *fakeTimer) wake() {
	select {
	case f.woken <- struct{}{}:
	default:
	}
}
func (f *fakeTimer) leave() {}

// runFake runs a pacer on a fake clock until a task calls stop.
func runFake(t *testing.T, plan func(p *Pacer, clock *fakeTimer, stop func())) *fakeTimer {
	t.Helper()
	clock := newFake()
	p := newPacer(clock)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	plan(p, clock, cancel)
	if err := p.Run(ctx); err != nil {
		t.Fatal(err)
	}
	return clock
}

// firing is a call of Fire.
type firing struct {
	Task     string
	Due, Now time.Duration
}

func TestTasksFireInOrderAtTheirTimes(t *testing.T) {
	var got []firing
	clock := runFake(t, func(p *Pacer, _ *fakeTimer, stop func()) {
		every := func(name string, interval time.Duration) {
			p.Add(TaskFunc(func(due, now time.Duration) time.Duration {
				got = append(got, firing{name, due, now})
				return due + interval
			}), interval)
		}
		every("three", 3)
		every("two", 2)
		p.Add(TaskFunc(func(_, _ time.Duration) time.Duration { stop(); return Stop }), 7)
	})
	want := []firing{{"two", 2, 2}, {"three", 3, 3}, {"two", 4, 4}, {"three", 6, 6}, {"two", 6, 6}}
	byName := func(a, b firing) int { return cmpOr(a.Due, b.Due, a.Task, b.Task) }
	slices.SortStableFunc(got, byName)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("firings (-want +got):\n%s", diff)
	}
	if clock.waits != 5 {
		t.Errorf("woke up %d times, want one per due time (5)", clock.waits)
	}
}

func cmpOr(a, b time.Duration, x, y string) int {
	switch {
	case a != b:
		return int(a - b)
	case x < y:
		return -1
	}
	return 1
}

func TestLatenessIsNowMinusDue(t *testing.T) {
	var got []firing
	runFake(t, func(p *Pacer, clock *fakeTimer, stop func()) {
		p.Add(TaskFunc(func(_, _ time.Duration) time.Duration { clock.advance(5); return Stop }), 10)
		p.Add(TaskFunc(func(due, now time.Duration) time.Duration {
			got = append(got, firing{"late", due, now})
			stop()
			return Stop
		}), 11)
	})
	if want := []firing{{"late", 11, 15}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestFlusherRunsOnceAfterAllDueTasks(t *testing.T) {
	var log []string
	runFake(t, func(p *Pacer, _ *fakeTimer, stop func()) {
		for range 3 {
			p.Add(TaskFunc(func(due, _ time.Duration) time.Duration { log = append(log, "fire"); return due + 10 }), 10)
		}
		p.AddFlusher(func() { log = append(log, "first") })
		remove := p.AddFlusher(func() { log = append(log, "removed") })
		remove()
		rounds := 0
		p.AddFlusher(func() {
			log = append(log, "last")
			if rounds++; rounds == 2 {
				stop()
			}
		})
	})
	round := []string{"fire", "fire", "fire", "first", "last"}
	if want := slices.Concat(round, round); !slices.Equal(log, want) {
		t.Errorf("got %v, want %v", log, want)
	}
}

func TestTaskThatIsAlwaysDueDoesNotStarveTheFlusher(t *testing.T) {
	fired, flushed := 0, 0
	runFake(t, func(p *Pacer, _ *fakeTimer, stop func()) {
		p.Add(TaskFunc(func(_, _ time.Duration) time.Duration { fired++; return 1 }), 1)
		p.AddFlusher(func() {
			if flushed++; flushed == 3 {
				stop()
			}
		})
	})
	if fired != 3 {
		t.Errorf("fired %d times in 3 rounds, want 3", fired)
	}
}

func TestTaskRemovedByAnotherOfTheSameRoundDoesNotFire(t *testing.T) {
	fired := 0
	runFake(t, func(p *Pacer, _ *fakeTimer, stop func()) {
		var removes [2]func()
		for i := range removes {
			removes[i] = p.Add(TaskFunc(func(_, _ time.Duration) time.Duration {
				fired++
				removes[1-i]()
				return Stop
			}), 5)
		}
		p.Add(TaskFunc(func(_, _ time.Duration) time.Duration { stop(); return Stop }), 6)
	})
	if fired != 1 {
		t.Errorf("fired %d tasks, want 1: one removed the other", fired)
	}
}

func TestTaskMayRemoveItselfAndAddOthers(t *testing.T) {
	var log []time.Duration
	runFake(t, func(p *Pacer, _ *fakeTimer, stop func()) {
		var remove func()
		remove = p.Add(TaskFunc(func(due, _ time.Duration) time.Duration {
			log = append(log, due)
			remove()
			remove() // has no effect
			p.Add(TaskFunc(func(due, _ time.Duration) time.Duration { log = append(log, due); stop(); return Stop }), due+7)
			return due + 1 // ignored: the task is removed
		}), 3)
	})
	if want := []time.Duration{3, 10}; !slices.Equal(log, want) {
		t.Errorf("got %v, want %v", log, want)
	}
}

func TestRunReturnsAFailureOfTheTimer(t *testing.T) {
	clock := newFake()
	clock.err = errors.New("broken")
	p := newPacer(clock)
	if err := p.Run(t.Context()); !errors.Is(err, clock.err) {
		t.Errorf("Run: got %v, want the timer's error", err)
	}
	p.Add(TaskFunc(func(_, _ time.Duration) time.Duration { return Stop }), 1)() // add and remove still return
}

func TestQueueReturnsEntriesInOrder(t *testing.T) {
	seed := testseed.Of(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	var q queue
	var in []*entry
	for step := range 4000 {
		switch {
		case rng.IntN(5) < 3 || len(in) == 0:
			e := &entry{due: time.Duration(rng.IntN(1000)), index: absent}
			q.push(e)
			in = append(in, e)
		case rng.IntN(2) == 0:
			i := rng.IntN(len(in))
			q.remove(in[i])
			in = slices.Delete(in, i, i+1)
		default:
			e := q.pop()
			for _, o := range in {
				if o.due < e.due {
					t.Fatalf("step %d: %v came before %v", step, e.due, o.due)
				}
			}
			in = slices.DeleteFunc(in, func(o *entry) bool { return o == e })
		}
		if q.len() != len(in) {
			t.Fatalf("step %d: %d entries, want %d", step, q.len(), len(in))
		}
		for i, s := range q.slots {
			if s.entry.index != i || s.entry.due != s.due {
				t.Fatalf("step %d: slot %d has the entry with index %d", step, i, s.entry.index)
			}
		}
	}
}

func TestFiringDoesNotAllocate(t *testing.T) {
	clock := newFake()
	p := newPacer(clock)
	for i := range 100 {
		p.Add(TaskFunc(func(due, _ time.Duration) time.Duration { return due + 100 }), time.Duration(i+1))
	}
	p.AddFlusher(func() {})
	step := func() { clock.advance(10); p.round() }
	for range 100 {
		step()
	}
	if n := testing.AllocsPerRun(1000, step); n != 0 {
		t.Errorf("%v allocations per round, want 0", n)
	}
}

// BenchmarkRound is the cost of firing one of 10,000 tasks without a wake-up.
func BenchmarkRound(b *testing.B) {
	clock := newFake()
	p := newPacer(clock)
	for i := range 10_000 {
		p.Add(TaskFunc(func(due, _ time.Duration) time.Duration { return due + 10_000 }), time.Duration(i+1))
	}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		clock.advance(1)
		p.round()
	}
}
