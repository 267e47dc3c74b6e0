package sched

import (
	"context"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestNowAgreesWithTheKernel(t *testing.T) {
	for range 100 {
		before := Now()
		var ts unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
			t.Fatal(err)
		}
		after := Now()
		const anchored = 5 * time.Microsecond // the bracket of the first reading
		if kernel := time.Duration(ts.Nano()); kernel < before-anchored || kernel > after+anchored {
			t.Fatalf("the kernel says %v between %v and %v", kernel, before, after)
		}
	}
}

// TestIdlePacerDoesNotWake counts the thread's own context switches: a poll
// that comes round on its own would show.
func TestIdlePacerDoesNotWake(t *testing.T) {
	p := start(t)
	thread := make(chan int, 1)
	p.Add(TaskFunc(func(_, _ time.Duration) time.Duration { thread <- unix.Gettid(); return Stop }), 1)
	id := <-thread
	switches := func() string {
		b, err := os.ReadFile("/proc/self/task/" + strconv.Itoa(id) + "/status")
		if err != nil {
			t.Fatal(err)
		}
		return voluntary(string(b))
	}
	time.Sleep(100 * time.Millisecond) // let it fall asleep
	before := switches()
	time.Sleep(500 * time.Millisecond) // real time: it is the kernel that is watched
	if after := switches(); after != before {
		t.Errorf("voluntary context switches went from %s to %s while idle", before, after)
	}
}

func TestThreadIsGivenBackWithItsSlack(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	slack := func() int {
		n, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := slack()
	p, err := NewPacer()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	inside := 0
	p.Add(TaskFunc(func(_, _ time.Duration) time.Duration { inside = slack(); cancel(); return Stop }), 1)
	if err := p.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if inside != 1 || slack() != before {
		t.Errorf("slack %d before, %d inside, %d after; want 1 inside and as before after", before, inside, slack())
	}
}

// voluntary takes the count out of /proc/<pid>/task/<tid>/status.
func voluntary(status string) string {
	for line := range strings.Lines(status) {
		if count, ok := strings.CutPrefix(line, "voluntary_ctxt_switches:"); ok {
			return strings.TrimSpace(count)
		}
	}
	return "unknown"
}
