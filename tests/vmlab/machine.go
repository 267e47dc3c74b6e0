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
	// watchEvery is how often the machine is looked at.
	watchEvery = 500 * time.Microsecond
	// stoodLimit is the time between two looks from which the machine stood still.
	stoodLimit = 650 * time.Microsecond
	// watchNice goes before the guests, which are busy themselves now and then.
	watchNice = -20
)

// watchMachine notes when one of the processors that the guests keep to did nothing for
// anybody who asked: a hypervisor has it, or the host's kernel. A span is as long again
// after that, in which what has piled up is worked off. The function that it returns
// ends the watch and tells.
//
// It knows nothing of packets: what they meet is not judged by how late they were.
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

// stoodStill is the span of two looks that are more than limit apart.
func stoodStill(last, now, limit uint64) (s Span, ok bool) {
	gap := now - last
	return Span{last, now + gap}, gap > limit
}

// slice is the shortest that a thread may ask for (Linux 6.12, sched_setattr(2), EEVDF): it
// goes before others as soon as it wakes, and is not as long on the processor.
const slice = 100 * time.Microsecond

// shortSlice gives a thread, 0: this one, its nice value and that slice. What it starts
// has them, too. Kernels before 6.12 leave the slice as it is.
func shortSlice(thread, nice int) error {
	return unix.SchedSetAttr(thread, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Nice: int32(nice), Runtime: uint64(slice)}, 0)
}
