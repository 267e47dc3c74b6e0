package chrony

import (
	"context"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/core/instant"
	"oneway.example/tests/await"
)

// guest is a kernel whose clock may be stepped, with a known truth: true time is CLOCK_MONOTONIC_RAW, which neither steps nor
// slews.
type guest struct {
	*testing.T
	base     time.Duration
	verified atomic.Int64
	faults   atomic.Int64
}

// readingError is the maximum error of reading the truth: a clock read is a system call here and takes tens of
// microseconds.
const readingError = 200 * time.Microsecond

func raw() time.Duration {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC_RAW, &ts)
	return time.Duration(ts.Nano())
}

// truth is true time minus system time; ok is false if it could not be read accurately.
func (g *guest) truth() (at instant.Time, truth time.Duration, ok bool) {
	before := raw()
	at = instant.Now()
	after := raw()
	return at, g.base + before + (after-before)/2 - time.Duration(at), after-before < 2*readingError
}

// step sets the clock forward by d.
func (g *guest) step(d time.Duration) {
	g.Helper()
	ts := unix.NsecToTimespec(int64(instant.Now().Add(d)))
	if err := unix.ClockSettime(unix.CLOCK_REALTIME, &ts); err != nil {
		g.Fatal(err)
	}
}

// verify compares bound and truth until ctx ends.
func (g *guest) verify(ctx context.Context, m *Monitor) {
	for ctx.Err() == nil {
		time.Sleep(3 * time.Millisecond) // interval of the comparisons with a real clock
		before := m.Quality(instant.Now())
		at, truth, ok := g.truth()
		q := m.Quality(at)
		if !ok || !q.Synchronized() || before.Steps != q.Steps {
			continue
		}
		g.verified.Add(1)
		if truth.Abs() > q.Bound.Error+readingError && g.faults.Add(1) < 10 {
			g.Errorf("bound %v does not cover the truth %v: %+v", q.Bound.Error, truth, q)
		}
	}
}

// A chronyd that disciplines a clock: it steps the clock at start, another process steps it, it slews, and it hangs during the
// slew. The bound covers the truth whenever it is valid.
func TestBoundHoldsThroughStepsAndAHangOfAChronydInControl(t *testing.T) {
	cpu, err := os.ReadFile("/proc/cpuinfo")
	if err != nil || !strings.Contains(string(cpu), "User Mode Linux") {
		t.Skip("SKIPPED: needs a guest kernel with a clock of its own (user-mode-linux); the host's clock is not touched")
	}
	g := &guest{T: t, base: time.Duration(instant.Now()) - raw() + 3*time.Second}
	d := startDaemonWith(t, sockRefclock+"\nmakestep 0.5 1", "-d")
	m, _ := d.watch(Options{Address: d.addresses()["unix"], holdDown: 2 * time.Second})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); g.verify(ctx, m) }()
	defer func() { cancel(); <-done }()
	go g.feed(ctx, d.dir+"/ref.sock")

	within := func(limit time.Duration, what string, condition func() bool) {
		t.Helper()
		start := time.Now()
		if !await.Within(limit, condition) {
			t.Fatalf("%s: not within %v: %+v", what, limit, m.Quality(instant.Now()))
		}
		t.Logf("%s after %v: %+v", what, time.Since(start).Round(time.Millisecond), m.Quality(instant.Now()))
	}
	synchronized := state(m, clock.Synchronized)
	within(60*time.Second, "chronyd's own step", func() bool { return m.Quality(instant.Now()).Steps == 1 })
	within(20*time.Second, "synchronized after it", synchronized)
	time.Sleep(5 * time.Second) // a real chronyd slews meanwhile, and verify compares its bound with the truth

	g.step(2 * time.Second)
	if q := m.Quality(instant.Now()); q.State != clock.Stepping || q.Steps != 2 {
		t.Errorf("right after the step of another process: %+v", q)
	}
	within(60*time.Second, "synchronized after the step of another process", synchronized)
	within(60*time.Second, "slewing", func() bool { return m.Quality(instant.Now()).Offset < 1500*time.Millisecond })
	if err := d.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	time.Sleep(25 * time.Second) // past zero at a twelfth of a second a second, if it slews at full speed
	_, truth, _ := g.truth()
	t.Logf("chronyd has hung for 25 s: truth %v, %+v", truth, m.Quality(instant.Now()))
	// The time after a SIGCONT is not verified: chronyd then misinterprets the samples that were queued, see the package
	// comment.
	if n := g.verified.Load(); n < 1000 {
		t.Errorf("only %d comparisons with the truth", n)
	}
	t.Logf("%d comparisons with the truth, %d faults", g.verified.Load(), g.faults.Load())
}

func (g *guest) feed(ctx context.Context, path string) {
	// At the rate of a receiver's driver: chronyd runs in real time.
	for ; ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		conn, err := net.Dial("unixgram", path)
		if err != nil {
			continue
		}
		at, truth, ok := g.truth()
		if ok {
			_, _ = conn.Write(sockSampleAt(at, truth))
		}
		_ = conn.Close()
	}
}
