package vmlab

import (
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"oneway.example/tests/vmlab/truth"
)

const (
	// watchEvery is the time between checks of the machine.
	watchEvery = 500 * time.Microsecond
	// stoodLimit is the time between two checks from which the machine stood still.
	stoodLimit = 650 * time.Microsecond
	// watchNice has priority over the guests, which are busy themselves at times.
	watchNice = -20
)

// watchMachine records spans in which one of the guests' processors ran no
// waiting thread: a hypervisor or the host's kernel had it. A span has twice that length,
// for the work that has accumulated. The function that it returns
// ends the watch and returns the spans.
//
// It does not depend on packets or on their lateness.
func (l *Lab) watchMachine() func() []Span {
	var watching sync.WaitGroup
	done := make(chan struct{})
	spans := make([][]Span, min(2, runtime.NumCPU()))
	for cpu := range spans {
		watching.Go(func() { spans[cpu] = watchProcessor(cpu, l.Line, done) })
	}
	return func() []Span {
		close(done)
		watching.Wait()
		return slices.Concat(spans...)
	}
}

func watchProcessor(cpu int, line truth.Line, done <-chan struct{}) (stood []Span) {
	runtime.LockOSThread() // never unlocked: the thread ends with its processor and priority
	var one unix.CPUSet
	one.Set(cpu)
	_ = unix.SchedSetaffinity(0, &one)
	_ = shortSlice(0, watchNice)
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // nanoseconds
	pause := unix.NsecToTimespec(int64(watchEvery))
	limit := uint64(stoodLimit.Seconds() * line.Hertz)
	last := truth.Counter()
	for {
		select {
		case <-done:
			return stood
		default:
		}
		_ = unix.Nanosleep(&pause, nil)
		now := truth.Counter()
		if s, ok := stoodStill(last, now, limit); ok {
			stood = append(stood, s)
		}
		last = now
	}
}

// stoodStill is the span of two checks that are more than limit apart.
func stoodStill(last, now, limit uint64) (s Span, ok bool) {
	gap := now - last
	return Span{last, now + gap}, gap > limit
}

// slice is the shortest that a thread may request (Linux 6.12, sched_setattr(2), EEVDF): it
// runs before others as soon as it wakes, and for a shorter time.
const slice = 100 * time.Microsecond

// shortSlice gives a thread, 0: this one, its nice value and that slice. Its children
// inherit both. Kernels before 6.12 do not change the slice.
func shortSlice(thread, nice int) error {
	return unix.SchedSetAttr(thread, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Nice: int32(nice), Runtime: uint64(slice)}, 0)
}
