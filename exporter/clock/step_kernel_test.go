package clock_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"oneway.example/exporter/clock"
)

// Real steps, by the real kernel: only in a user-mode-linux guest, whose clock
// is its own.
func TestRealStepIsNoticedByTheKernelAtOnce(t *testing.T) {
	cpu, err := os.ReadFile("/proc/cpuinfo")
	if err != nil || !strings.Contains(string(cpu), "User Mode Linux") {
		t.Skip("SKIPPED: a real step needs a guest kernel with a clock of its own (user-mode-linux); the host's clock is not touched")
	}
	reader := clock.SystemReader()
	d := clock.NewStepDetector(clock.StepOptions{Read: reader})
	go d.Run(t.Context())
	time.Sleep(100 * time.Millisecond) // let the timer be set; nothing tells
	for i, step := range []time.Duration{5 * time.Second, -7 * time.Second, 10 * time.Microsecond} {
		target := time.Now().Add(step)
		ts := unix.NsecToTimespec(target.UnixNano())
		if err := unix.ClockSettime(unix.CLOCK_REALTIME, &ts); err != nil {
			t.Fatal(err)
		}
		at := reader().Mono
		// The kernel tells of a step at once, or not at all; the guest itself may stand still meanwhile.
		c, last, stood := d.Check(), at, time.Duration(0)
		for ; ; c = d.Check() {
			stood, last = max(stood, c.Now.Mono-last), c.Now.Mono
			if c.Steps == uint64(i+1) || c.Now.Mono > at+5*time.Second {
				break
			}
			time.Sleep(10 * time.Millisecond) // polls: Run handles the notice of the kernel in another goroutine
		}
		if c.Steps != uint64(i+1) {
			t.Fatalf("after a step of %v: %d steps, want %d", step, c.Steps, i+1)
		}
		if late := c.SteppedAt - at; late > 200*time.Millisecond+stood {
			t.Errorf("a step of %v was noticed %v late, and the guest stood still for %v", step, late, stood)
		}
		time.Sleep(300 * time.Millisecond) // the kernel merges notices of two steps that are not read in between (timerfd_create(2))
		t.Logf("step of %v noticed after %v", step, c.SteppedAt-at)
	}
}
