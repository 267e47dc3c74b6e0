package pps

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/watcher"
)

func TestStructuresAreThoseOfTheKernel(t *testing.T) {
	var data unix.PPSFData
	size, timeout := uintptr(armSize), uintptr(48)
	if runtime.GOARCH == "386" {
		size, timeout = 60, 44
	}
	if unsafe.Sizeof(data) != size || unsafe.Offsetof(data.Timeout) != timeout || unsafe.Offsetof(data.Info.Clear_tu) != 24 {
		t.Errorf("struct pps_fdata takes %d bytes, its timeout is at %d", unsafe.Sizeof(data), unsafe.Offsetof(data.Timeout))
	}
}

// TestTimeoutForARMIsTheSameToBothKernels decodes it by linux/pps.h of each kernel.
func TestTimeoutForARMIsTheSameToBothKernels(t *testing.T) {
	for timeout, compat := range map[time.Duration]uint64{
		fetchTimeout:               1,
		2 * time.Second:            2,
		time.Hour:                  2,
		100*time.Millisecond + 1:   1,
		1999*time.Millisecond + 99: 1,
	} {
		var data [armSize]byte
		armTimeout(&data, timeout)
		native := time.Duration(binary.LittleEndian.Uint64(data[48:]))*time.Second + time.Duration(int32(binary.LittleEndian.Uint32(data[56:])))
		if want := min(timeout, 2*time.Second) &^ 1; native != want || binary.LittleEndian.Uint32(data[60:]) != 0 {
			t.Errorf("%v: a 32-bit kernel waits for %v, flags %d", timeout, native, binary.LittleEndian.Uint32(data[60:]))
		}
		seconds, ns, flags := binary.LittleEndian.Uint64(data[44:]), binary.LittleEndian.Uint32(data[52:]), binary.LittleEndian.Uint32(data[56:])
		if seconds != compat || ns != 0 || flags&1 != 0 {
			t.Errorf("%v: a 64-bit kernel waits for %d s + %d ns, flags %#x", timeout, seconds, ns, flags)
		}
	}
}

func TestInvalidTimestampIsZero(t *testing.T) {
	for _, c := range []struct {
		in   unix.PPSKTime
		want instant.Time
	}{
		{unix.PPSKTime{Sec: 1_800_000_000, Nsec: 999_999_999}, 1_800_000_000_999_999_999},
		{unix.PPSKTime{}, 0},
		{unix.PPSKTime{Sec: -1, Nsec: 5}, 0},
		{unix.PPSKTime{Sec: 5, Nsec: -1}, 0},
		{unix.PPSKTime{Sec: 5, Nsec: 1_000_000_000}, 0},
		{unix.PPSKTime{Sec: 1 << 62}, 0},
		{unix.PPSKTime{Sec: 9_223_372_036}, 0},
		{unix.PPSKTime{Sec: 9_223_372_035, Nsec: 7}, 9_223_372_035_000_000_007},
	} {
		if got := stamp(c.in); got != c.want {
			t.Errorf("%+v is %d, want %d", c.in, got, c.want)
		}
	}
}

func TestUnsuitableDeviceIsAnErrorWithItsName(t *testing.T) {
	const all = captureAssert | captureClear | canWait
	for _, c := range []struct {
		clear     bool
		able, set uint32
		want      string
	}{
		{false, all, all, ""},
		{true, all, all, ""},
		{false, captureAssert | canWait, captureAssert, ""},
		{true, captureAssert | canWait, captureAssert, "does not timestamp clear edges"},
		{false, captureClear | canWait, captureClear, "does not timestamp assert edges"},
		{false, captureAssert, captureAssert, "cannot be waited for"},
		{false, all, captureClear, "disabled"},
	} {
		err := checkMode("/dev/pps0", c.clear, c.able, c.set)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestOtherDevicesAreNotOpened(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/dev/null", fifo, file, t.TempDir()} {
		if _, err := (linux{}).open(path, false); err == nil || !strings.Contains(err.Error(), "not a PPS device") {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := (linux{}).open("/dev/no-such-pps", false); !errors.Is(err, unix.ENOENT) || !strings.HasSuffix(err.Error(), "`ls /dev/pps*` lists the devices") {
		t.Errorf("no device: %v", err)
	}
	if got := openRemedy(fmt.Errorf("%w", unix.EACCES)); !strings.Contains(got, "group that may read it") {
		t.Errorf("no permission: %q", got)
	}
}

func TestReplacedNodeIsDetected(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pps0")
	create := func() {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	create()
	d := &pulseDevice{path: path}
	if err := unix.Stat(path, &d.node); err != nil {
		t.Fatal(err)
	}
	if err := d.present(); err != nil {
		t.Error(err)
	}
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	if err := d.present(); !errors.Is(err, unix.ENOENT) {
		t.Errorf("removed: %v", err)
	}
	create()
	if err := d.present(); err == nil {
		t.Error("another node was accepted as the same")
	}
}

func TestClocksAreReadAtOneMoment(t *testing.T) {
	first := linux{}.clocks()
	for range 1000 {
		before := instant.Now()
		r := linux{}.clocks()
		after := instant.Now()
		if r.wall < before-1 || r.wall > after+1 || r.uncertainty < 0 || r.raw < first.raw {
			t.Fatalf("%+v between %d and %d", r, before, after)
		}
	}
}

// TestRealPulsesAreFetched needs /dev/pps0 with a driver that makes pulses: a receiver, or pps-ktimer, whose pulses have an
// interval of 1.04 s at some HZ and are then correctly rejected as noise.
func TestRealPulsesAreFetched(t *testing.T) {
	if _, err := os.Stat(DefaultDevice); err != nil {
		t.Skip("SKIPPED, NOT PASSED: this machine has no /dev/pps0")
	}
	sink := &metrictest.Sink{}
	w, err := New(Options{Env: watcher.Env{Sink: sink}})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	ctx := t.Context()
	go func() { ended <- w.Run(ctx) }()
	deadline := time.After(30 * time.Second)
	for w.State().Pulses < 12 {
		select {
		case <-deadline:
			t.Fatalf("after 30 s: %+v", w.State())
		case <-time.After(100 * time.Millisecond): // real pulses take real time
		}
	}
	s := w.State()
	t.Logf("%+v", s)
	for _, d := range []*metric.Desc{metric.PPSPulses, metric.PPSLast} {
		v, _ := sink.Value(d, "pps0")
		t.Logf("%s %v", d.Name, v)
	}
	if !s.Open || !s.Present || s.Missed > 1 || s.Last.RawError <= 0 || s.Last.RawError > maxRawError {
		t.Errorf("%+v", s)
	}
	if age := instant.Now().Sub(s.Last.Assert); age < 0 || age > 2*time.Second {
		t.Errorf("the last pulse was %v ago", age)
	}
	now := linux{}.clocks()
	if apart := (now.wall.Sub(s.Last.Assert) - (now.raw - s.Last.Raw)).Abs(); apart > 2*time.Millisecond {
		t.Errorf("the two clocks went apart by %v since", apart)
	}
}
