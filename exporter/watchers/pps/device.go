package pps

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"oneway.example/exporter/core/instant"
)

// Modes of linux/pps.h that x/sys/unix lacks.
const (
	captureAssert = 0x01
	captureClear  = 0x02
	canWait       = 0x100
)

const (
	// brackets limits the attempts to read both clocks at almost the same time, and goodUncertainty ends them.
	brackets        = 8
	goodUncertainty = 500 * time.Nanosecond
)

// linux implements kernel.
type linux struct{}

// pulseDevice is an open /dev/ppsN.
type pulseDevice struct {
	fd    int
	path  string
	clear bool
	node  unix.Stat_t
}

func (linux) open(path string, clear bool) (device, error) {
	// Non-blocking, so that the open of another kind of file does not block.
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("pps: open %s: %w%s", path, err, openRemedy(err))
	}
	d := &pulseDevice{fd: fd, path: path, clear: clear}
	if err := d.check(); err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

// openRemedy is what to do if the device cannot be opened, after a separator; empty if that is not known.
func openRemedy(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ": is the driver loaded (pps-ldisc by gpsd or ldattach, or pps-gpio), and is this the right name? `ls /dev/pps*` lists the devices"
	case errors.Is(err, fs.ErrPermission):
		return ": the agent's user needs a group that may read it: see its unit and the udev rules of chrony-config"
	}
	return ""
}

// check checks that the device timestamps the edge and can be waited for. The active edges (PPS_GETPARAMS) are set by other
// programs; setting them needs CAP_SYS_TIME.
func (d *pulseDevice) check() error {
	if err := unix.Fstat(d.fd, &d.node); err != nil {
		return fmt.Errorf("pps: stat %s: %w", d.path, err)
	}
	able, err := unix.IoctlGetUint32(d.fd, unix.PPS_GETCAP)
	if errors.Is(err, unix.ENOTTY) || errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("pps: %s is not a PPS device: %w", d.path, err)
	}
	if err != nil {
		return fmt.Errorf("pps: PPS_GETCAP of %s: %w", d.path, err)
	}
	var set unix.PPSKParams
	if err := d.ioctl(unix.PPS_GETPARAMS, unsafe.Pointer(&set)); err != nil {
		return fmt.Errorf("pps: PPS_GETPARAMS of %s: %w", d.path, err)
	}
	return checkMode(d.path, d.clear, able, uint32(set.Mode))
}

// checkMode checks the capabilities and the mode of the device.
func checkMode(path string, clear bool, able, set uint32) error {
	edge, name := uint32(captureAssert), "assert"
	if clear {
		edge, name = captureClear, "clear"
	}
	switch {
	case able&edge == 0:
		return fmt.Errorf("pps: %s does not timestamp %s edges (capabilities %#x); configure the other edge", path, name, able)
	case able&canWait == 0:
		return fmt.Errorf("pps: %s cannot be waited for (capabilities %#x)", path, able)
	case set&edge == 0:
		return fmt.Errorf("pps: timestamps of %[2]s edges of %[1]s are disabled (mode %#[3]x) by another program", path, name, set)
	}
	return nil
}

func (d *pulseDevice) ioctl(request uint, argument unsafe.Pointer) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(d.fd), uintptr(request), uintptr(argument)); errno != 0 {
		return errno
	}
	return nil
}

func (d *pulseDevice) fetch(timeout time.Duration) (event, error) {
	var data unix.PPSFData
	if runtime.GOARCH == "arm" {
		armTimeout((*[armSize]byte)(unsafe.Pointer(&data)), timeout)
	} else {
		data.Timeout = unix.PPSKTime{Sec: int64(timeout / time.Second), Nsec: int32(timeout % time.Second)}
	}
	switch err := d.ioctl(unix.PPS_FETCH, unsafe.Pointer(&data)); {
	case errors.Is(err, unix.ETIMEDOUT), errors.Is(err, unix.EINTR):
		return event{}, errNoEvent
	case err != nil:
		return event{}, fmt.Errorf("pps: PPS_FETCH of %s: %w", d.path, err)
	}
	if d.clear {
		return event{data.Info.Clear_sequence, stamp(data.Info.Clear_tu)}, nil
	}
	return event{data.Info.Assert_sequence, stamp(data.Info.Assert_tu)}, nil
}

// armSize is sizeof(struct pps_fdata) on 32-bit ARM.
const armSize = 64

// armTimeout encodes the timeout such that two kernels read the same value. A 32-bit ARM kernel has struct pps_fdata with
// the timeout at byte 48. A 64-bit kernel treats 32-bit programs as i386 (struct pps_fdata_compat, aligned to four) and
// reads it at byte 44, and would wait for 136 years instead of one second. Therefore:
//
//	byte    44          48        52        56          60
//	native   padding     seconds . . . . .   nanosec.    flags
//	i386     seconds . . . . . .   nanosec.  flags
//	written  whole sec.  0         0         nanosec.    0
//
// Up to two seconds the native kernel takes the timeout from the nanoseconds only, which the other one reads as flags; they
// are even, since the lowest bit means an infinite timeout.
func armTimeout(data *[armSize]byte, timeout time.Duration) {
	timeout = min(timeout, 2*time.Second)
	binary.LittleEndian.PutUint32(data[44:], max(1, uint32(timeout/time.Second)))
	binary.LittleEndian.PutUint32(data[56:], uint32(timeout)&^1)
}

// stamp is the kernel's timestamp; zero if it is invalid.
func stamp(t unix.PPSKTime) instant.Time {
	if t.Sec <= 0 || t.Sec > math.MaxInt64/int64(time.Second)-1 || t.Nsec < 0 || t.Nsec >= int32(time.Second) {
		return 0
	}
	return instant.FromUnix(t.Sec, int64(t.Nsec))
}

func (d *pulseDevice) present() error {
	var now unix.Stat_t
	if err := unix.Stat(d.path, &now); err != nil {
		return fmt.Errorf("pps: %s has been removed: %w", d.path, err)
	}
	if now.Rdev != d.node.Rdev || now.Ino != d.node.Ino || now.Dev != d.node.Dev {
		return fmt.Errorf("pps: %s is another device now", d.path)
	}
	return nil
}

func (d *pulseDevice) close() { _ = unix.Close(d.fd) }

// clocks reads the raw clock between two readings of the other clock, several times, and returns the reading with the
// smallest distance.
func (linux) clocks() reading {
	best := reading{uncertainty: math.MaxInt64}
	for range brackets {
		before, raw, after := read(unix.CLOCK_REALTIME), read(unix.CLOCK_MONOTONIC_RAW), read(unix.CLOCK_REALTIME)
		width := after - before
		// Negative: the clock was stepped in between.
		if blur := (width + 1) / 2; width >= 0 && blur < best.uncertainty {
			best = reading{wall: instant.Time(before + width/2), raw: raw, uncertainty: blur}
		}
		if best.uncertainty <= goodUncertainty {
			break
		}
	}
	return best
}

// read reads a clock by a system call. time.Now would also read CLOCK_MONOTONIC, which is slow in a guest without a vDSO.
func read(clock int32) time.Duration {
	var ts unix.Timespec
	_ = unix.ClockGettime(clock, &ts) // zero is not a valid reading; no kernel fails
	return time.Duration(ts.Nano())
}

// kernel is the used part of the operating system, replaced in tests.
type kernel interface {
	// open opens a device and checks that it timestamps the edge.
	open(path string, clear bool) (device, error)
	// clocks reads both clocks at one moment.
	clocks() reading
}

// device is an open source of pulses.
type device interface {
	// fetch waits for the next edge of either kind and returns the last one of the wanted kind; errNoEvent after the
	// timeout.
	fetch(timeout time.Duration) (event, error)
	// present fails if the path no longer leads to this device: a reader of a removed device waits without end in the
	// kernel.
	present() error
	close()
}

// errNoEvent: no edge within the timeout.
var errNoEvent = errors.New("pps: no pulse in time")

// event is an edge.
type event struct {
	sequence uint32
	at       instant.Time // CLOCK_REALTIME; zero if the kernel's timestamp is invalid
}

// reading is CLOCK_REALTIME and CLOCK_MONOTONIC_RAW at one moment, +- uncertainty.
type reading struct {
	wall             instant.Time
	raw, uncertainty time.Duration
}

const (
	// maxSlew is the largest frequency of the kernel's clock discipline (500 ppm, MAXFREQ in linux/timex.h).
	maxSlew = 500e-6
	// largestSlew is the maximum of frequency and tick together.
	largestSlew = 0.11
	// maxRawError is the RawError above which a pulse is not used: twice the threshold of ppsfit. In a user-mode-linux
	// guest, where a clock read takes tens of microseconds, 10 to 60 us are usual.
	maxRawError = 200 * time.Microsecond
)

// Reasons why a pulse cannot be located on the raw clock.
var (
	errNoTime = errors.New("the timestamp is invalid")
	errFuture = errors.New("the timestamp is in the future")
	errLate   = errors.New("read too late after the pulse")
)

// locate locates the pulse on the raw clock. slew is the recent rate of CLOCK_REALTIME minus that of the raw clock, as
// a ratio.
func locate(e event, now reading, slew float64) (Pulse, error) {
	if e.at <= 0 || now.wall <= 0 {
		return Pulse{}, errNoTime
	}
	age := now.wall.Sub(e.at)
	switch {
	case now.uncertainty > maxRawError:
		return Pulse{}, errLate
	case age < -now.uncertainty:
		return Pulse{}, errFuture
	}
	apart := max(0, float64(age)) * max(maxSlew, 2*math.Abs(slew))
	if apart > float64(maxRawError-now.uncertainty) || age > now.raw {
		return Pulse{}, errLate
	}
	return Pulse{
		Sequence: e.sequence,
		Assert:   e.at,
		Raw:      now.raw - age,
		RawError: now.uncertainty + time.Duration(math.Ceil(apart)),
	}, nil
}

// slewBetween is the rate of CLOCK_REALTIME minus that of the raw clock between two readings; zero after a step or if the
// readings are too far apart.
func slewBetween(a, b reading) float64 {
	elapsed := b.raw - a.raw
	if elapsed < time.Second/10 || elapsed > 10*time.Second {
		return 0
	}
	slew := float64(b.wall.Sub(a.wall)-elapsed) / float64(elapsed)
	if math.Abs(slew) > largestSlew {
		return 0
	}
	return slew
}
