package clock_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"oneway.example/exporter/clock"
)

// Steps by a real kernel: only in a user-mode-linux guest, which has a clock of its own.
func TestKernelReportsARealStepAtOnce(t *testing.T) {
	cpu, err := os.ReadFile("/proc/cpuinfo")
	if err != nil || !strings.Contains(string(cpu), "User Mode Linux") {
		t.Skip("SKIPPED: a real step needs a guest kernel with a clock of its own (user-mode-linux); the host's clock is not touched")
	}
	reader := clock.SystemReader()
	d := clock.NewStepDetector(clock.StepOptions{Read: reader})
	go d.Run(t.Context())
	time.Sleep(100 * time.Millisecond) // until the timer is set; there is no event to wait for
	for i, step := range []time.Duration{5 * time.Second, -7 * time.Second, 10 * time.Microsecond} {
		target := time.Now().Add(step)
		ts := unix.NsecToTimespec(target.UnixNano())
		if err := unix.ClockSettime(unix.CLOCK_REALTIME, &ts); err != nil {
			t.Fatal(err)
		}
		at := reader().Mono
		// The kernel reports a step at once or never; the guest itself may be paused meanwhile.
		c, last, stood := d.Check(), at, time.Duration(0)
		for ; ; c = d.Check() {
			stood, last = max(stood, c.Now.Mono-last), c.Now.Mono
			if c.Steps == uint64(i+1) || c.Now.Mono > at+5*time.Second {
				break
			}
			time.Sleep(10 * time.Millisecond) // polls: Run handles the kernel's notification in another goroutine
		}
		if c.Steps != uint64(i+1) {
			t.Fatalf("after a step of %v: %d steps, want %d", step, c.Steps, i+1)
		}
		if late := c.SteppedAt - at; late > 200*time.Millisecond+stood {
			t.Errorf("a step of %v was noticed %v late, and the guest stood still for %v", step, late, stood)
		}
		time.Sleep(300 * time.Millisecond) // the kernel merges notifications of two steps without a read in between (timerfd_create(2))
		t.Logf("step of %v noticed after %v", step, c.SteppedAt-at)
	}
}
