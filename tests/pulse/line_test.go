package pulse

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"oneway.example/tests/testseed"
)

// running is a line in a bubble, until the test ends.
func running(t *testing.T, s Settings) *line {
	t.Helper()
	l, err := newLine(s, testseed.Of(t))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	go l.run(ctx)
	return l
}

func yes() bool { return true }

// pulses waits for n of them.
func (l *line) pulses(t *testing.T, n int) (all []edge) {
	t.Helper()
	for range n {
		if err := l.wait(time.Hour, yes); err != nil {
			t.Fatal(err)
		}
		_, last := l.state()
		all = append(all, last)
	}
	return all
}

// away is the time since the nearest second.
func away(e edge) time.Duration { return e.at.Sub(e.at.Round(time.Second)) }

func TestPulsesAreAtSecondsPlusOffset(t *testing.T) {
	for _, offset := range []time.Duration{0, 3 * time.Millisecond, -3 * time.Millisecond, 399 * time.Millisecond, -399 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			l := running(t, Settings{Offset: offset})
			for i, e := range l.pulses(t, 20) {
				if away(e) != offset || e.sequence != uint32(i+1) || time.Since(e.at) > 20*time.Second {
					t.Fatalf("pulse %d has number %d and is %v after a second, want %v", i+1, e.sequence, away(e), offset)
				}
			}
			if took := time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)); took > 21*time.Second {
				t.Errorf("20 pulses in %v", took)
			}
		})
	}
}

func TestJitterIsThatOfTheSettings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := running(t, Settings{Jitter: 10 * time.Millisecond})
		squares, before := 0.0, time.Time{}
		const n = 2000
		for _, e := range l.pulses(t, n) {
			squares += math.Pow(away(e).Seconds(), 2)
			if e.at.Sub(before) < 500*time.Millisecond {
				t.Fatalf("two pulses within %v", e.at.Sub(before))
			}
			before = e.at
		}
		// The standard deviation of n samples is within 5 of its own standard deviations, 1/sqrt(2n): fails one seed in 1,700,000.
		if got := math.Sqrt(squares / n); math.Abs(got-0.01) > 5*0.01/math.Sqrt(2*n) {
			t.Errorf("standard deviation %v s, want 0.01", got)
		}
	})
}

func TestStoppedLineHasNoPulsesAndContinuesItsNumbers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := running(t, Settings{})
		l.pulses(t, 5)
		if err := l.set(Settings{Stopped: true}); err != nil {
			t.Fatal(err)
		}
		if err := l.wait(time.Minute, yes); !errors.Is(err, errTimeout) {
			t.Errorf("a stopped line: %v, want a timeout", err)
		}
		if err := l.wait(0, func() bool { return false }); !errors.Is(err, errInterrupted) {
			t.Errorf("a caller that has gone: %v", err)
		}
		if err := l.set(Settings{}); err != nil {
			t.Fatal(err)
		}
		if e := l.pulses(t, 1)[0]; e.sequence != 6 || time.Since(e.at) > time.Second {
			t.Errorf("after it: %+v", e)
		}
	})
}

func TestSkippedPulsesAreTheirShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := running(t, Settings{Skip: 0.3})
		const n = 2000
		time.Sleep(n * time.Second) // the bubble's time
		_, last := l.state()
		// Within 5 standard deviations of the binomial distribution: fails one seed in 1,700,000.
		if got := float64(last.sequence); math.Abs(got-0.7*n) > 5*math.Sqrt(n*0.3*0.7) {
			t.Errorf("%v pulses of %d, want 70 %%", got, n)
		}
	})
}

func TestSettingsOutOfRangeAreRejected(t *testing.T) {
	for _, s := range []Settings{{Offset: maxOffset}, {Offset: -maxOffset}, {Jitter: -1}, {Jitter: maxJitter + 1}, {Skip: 1.1}, {Skip: -0.1}} {
		if _, err := newLine(s, 1); err == nil {
			t.Errorf("%+v was accepted", s)
		}
	}
}

// ram is a program's memory, from address 0.
type ram []byte

func (r ram) ReadAt(p []byte, at int64) (int, error) {
	if int(at)+len(p) > len(r) {
		return 0, unix.EIO
	}
	return copy(p, r[at:]), nil
}

func (r ram) WriteAt(p []byte, at int64) (int, error) {
	if int(at)+len(p) > len(r) {
		return 0, unix.EIO
	}
	return copy(r[at:], p), nil
}

func TestErrorsAreThoseOfTheKernel(t *testing.T) {
	l, err := newLine(Settings{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	d := newDevice(l)
	params := func(mode uint32) ram {
		b := make(ram, 40)
		binary.NativeEndian.PutUint32(b[4:], mode)
		return b
	}
	// timeout is struct pps_fdata, which ends with it.
	timeout := func(at int, ns uint32) ram {
		b := make(ram, at+16)
		binary.NativeEndian.PutUint32(b[at+8:], ns)
		return b
	}
	for _, c := range []struct {
		what    string
		command uint32
		memory  ram
		weak    bool
		compat  bool
		want    unix.Errno
	}{
		{"capabilities", getCap, make(ram, 4), true, false, 0},
		{"no memory", getCap, make(ram, 3), true, false, unix.EFAULT},
		{"parameters", getParams, make(ram, 40), true, false, 0},
		{"no memory for them", getParams, make(ram, 39), true, false, unix.EFAULT},
		{"set them", setParams, params(captureAssert | offsetAssert), false, false, 0},
		{"without CAP_SYS_TIME", setParams, params(captureAssert), true, false, unix.EPERM},
		{"no edge", setParams, params(formatSpec), false, false, unix.EINVAL},
		{"an edge that it lacks", setParams, params(captureBoth), false, false, unix.EINVAL},
		{"no memory with them", setParams, make(ram, 39), false, false, unix.EFAULT},
		{"fetch at once", fetch, make(ram, 64), true, false, 0},
		{"less than a tick", fetch, timeout(48, 3_999_999), true, false, 0},
		{"a timeout", fetch, timeout(48, 5_000_000), true, false, unix.ETIMEDOUT},
		{"that of a 32-bit program", fetch, timeout(44, 5_000_000), true, true, unix.ETIMEDOUT},
		{"fetch without memory", fetch, make(ram, 63), true, false, unix.EFAULT},
		{"kernel consumer", bind, make(ram, 12), false, false, unix.EOPNOTSUPP},
		{"no PPS command", 0xa6, make(ram, 64), false, false, unix.ENOTTY},
	} {
		got := d.ioctl(call{command: c.command, memory: c.memory, compat: c.compat, settime: func() bool { return !c.weak }, waiting: yes})
		if got != c.want {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
	got := make(ram, 40)
	if errno := d.ioctl(call{command: getParams, memory: got}); errno != 0 || binary.NativeEndian.Uint32(got[4:]) != captureAssert|offsetAssert|canWait|formatSpec {
		t.Errorf("the parameters that were set are %x: %v", got, errno)
	}
}

func TestCompensationIsAdded(t *testing.T) {
	l, err := newLine(Settings{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	d := newDevice(l)
	b := make(ram, 40)
	binary.NativeEndian.PutUint32(b[4:], captureAssert|offsetAssert)
	binary.NativeEndian.PutUint32(b[16:], uint32(2_000_000))
	if errno := d.ioctl(call{command: setParams, memory: b, settime: yes}); errno != 0 {
		t.Fatal(errno)
	}
	l.assert(time.Unix(1_800_000_000, 999_000_000))
	for _, compat := range []bool{false, true} {
		data := make(ram, map[bool]int{false: 64, true: 60}[compat])
		if errno := d.ioctl(call{command: fetch, memory: data, compat: compat}); errno != 0 {
			t.Fatal(errno)
		}
		sequence, s, ns := binary.NativeEndian.Uint32(data), binary.NativeEndian.Uint64(data[8:]), binary.NativeEndian.Uint32(data[16:])
		if sequence != 1 || s != 1_800_000_001 || ns != 1_000_000 {
			t.Errorf("pulse %d at %d.%09d", sequence, s, ns)
		}
	}
}
