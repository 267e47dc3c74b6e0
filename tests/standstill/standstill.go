// Package standstill tells when this host stood still during a test: it did not run a thread that was due, because the
// processes of the test were stopped, a hypervisor had the processors, or other processes did. What a test measures then
// is no property of the program or the link, and the test says "cannot tell" instead of failing.
//
// The evidence is the schedule of a Watch itself: it depends neither on the program nor on packets, so that a fault of
// the program cannot pass for a standstill. Run `make busy` for tests beside processes that spin and a process that stops all.
package standstill

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"oneway.example/exporter/core/instant"
)

const (
	// Least is the shortest time that counts. The emulated links and round trips of the tests are tens of milliseconds long, and a
	// busy scheduler runs a thread that has slept within a few.
	Least = 20 * time.Millisecond
	// interval is the time between two looks at the clock.
	interval = 2 * time.Millisecond
)

// Span is a time in which this host stood still.
type Span struct{ Begin, End instant.Time }

// late reports whether the time between two looks is a standstill.
func (s Span) late() bool { return s.End.Sub(s.Begin)-interval >= Least }

// Watch watches this host from Begin on. Its methods are safe for concurrent use.
type Watch struct {
	mu    sync.Mutex
	last  []instant.Time // the last look of each processor's thread
	spans []Span
}

// Begin watches each processor of this process until the test ends.
func Begin(t testing.TB) *Watch {
	t.Helper()
	w, end, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	return w
}

// Start watches each processor of this process until end.
func Start() (w *Watch, end func(), err error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, nil, fmt.Errorf("standstill: processors: %w", err)
	}
	var cpus []int
	for cpu := range len(set) * 64 {
		if set.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	w = &Watch{last: slices.Repeat([]instant.Time{instant.Now()}, len(cpus))}
	done := make(chan struct{})
	var watching sync.WaitGroup
	for thread, cpu := range cpus {
		watching.Go(func() { w.run(thread, cpu, done) })
	}
	return w, func() { close(done); watching.Wait() }, nil
}

// run looks at the clock from one processor. Its thread is never unlocked: it ends with its affinity.
func (w *Watch) run(thread, cpu int, done <-chan struct{}) {
	runtime.LockOSThread()
	var one unix.CPUSet
	one.Set(cpu)
	_ = unix.SchedSetaffinity(0, &one) // a thread that moves misses what one processor does
	pause := unix.NsecToTimespec(int64(interval))
	for {
		select {
		case <-done:
			return
		default:
		}
		_ = unix.Nanosleep(&pause, nil) // interrupted by a signal: it looks early
		w.look(thread, instant.Now())
	}
}

func (w *Watch) look(thread int, now instant.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := (Span{w.last[thread], now}); s.late() {
		w.spans = append(w.spans, s)
	}
	w.last[thread] = now
}

// Standstills are the standstills of a time.
type Standstills struct {
	Spans int
	// Longest is the duration of the longest one, and Total the sum over all, and over all processors.
	Longest, Total time.Duration
}

// String tells them, "not at all" without any.
func (s Standstills) String() string {
	if s.Spans == 0 {
		return "not at all"
	}
	return fmt.Sprintf("%d times, for up to %v, %v in all", s.Spans, s.Longest.Round(time.Millisecond), s.Total.Round(time.Millisecond))
}

// Spans returns the times of all standstills, of each processor.
func (w *Watch) Spans() []Span {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all()
}

// all is with those that have not ended.
func (w *Watch) all() []Span {
	now, all := instant.Now(), slices.Clone(w.spans)
	for _, last := range w.last {
		if s := (Span{last, now}); s.late() {
			all = append(all, s)
		}
	}
	return all
}

// Found returns the standstills that overlap a time. One that has not ended is among them.
func (w *Watch) Found(begin, end instant.Time) (s Standstills) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range w.all() {
		if one.End > begin && one.Begin < end {
			lasted := one.End.Sub(one.Begin)
			s.Spans, s.Longest, s.Total = s.Spans+1, max(s.Longest, lasted), s.Total+lasted
		}
	}
	return s
}

// FoundFrom returns the standstills since a time.
func (w *Watch) FoundFrom(begin instant.Time) Standstills { return w.Found(begin, instant.Now()) }
