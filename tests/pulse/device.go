package pulse

import (
	"encoding/binary"
	"errors"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Modes of linux/pps.h.
const (
	captureAssert = 0x01
	captureBoth   = 0x03
	offsetAssert  = 0x10
	canWait       = 0x100
	formats       = 0x3000
	formatSpec    = 0x1000
	timeInvalid   = 1
	version       = 1
)

// capabilities are those of a line of pps-gpio without its clear edge (drivers/pps/clients/pps-gpio.c).
const capabilities = captureAssert | offsetAssert | canWait | formatSpec

// The numbers of the commands (linux/pps.h), without direction and size.
const (
	getParams = 0xa1 + iota
	setParams
	getCap
	fetch
	bind
)

// tick is the kernel's resolution of a timeout at 250 Hz.
const tick = 4 * time.Millisecond

// memory is a program's.
type memory interface {
	ReadAt(p []byte, address int64) (int, error)
	WriteAt(p []byte, address int64) (int, error)
}

// call is one ioctl of the device.
type call struct {
	command  uint32
	argument uint64
	// compat: by a 32-bit program of a 64-bit kernel, whose structures are aligned to four bytes.
	compat bool
	memory memory
	// settime: the program has CAP_SYS_TIME.
	settime func() bool
	// waiting: the program still waits for the reply.
	waiting func() bool
}

// params are the mode and the compensation of struct pps_kparams.
type params struct {
	mode   uint32
	assert time.Duration
	// clear is kept for PPS_GETPARAMS: seconds and nanoseconds.
	clear [12]byte
}

// device carries out the ioctls of a device (pps_cdev_ioctl and pps_cdev_compat_ioctl of drivers/pps/pps.c).
type device struct {
	*line
	mu     sync.Mutex
	params params
}

func newDevice(l *line) *device {
	return &device{line: l, params: params{mode: captureAssert | canWait | formatSpec}}
}

// ioctl returns 0, or the error of the system call.
func (d *device) ioctl(c call) unix.Errno {
	switch c.command & 0xff {
	case getParams:
		return c.write(d.encodeParams())
	case setParams:
		return d.setParams(c)
	case getCap:
		return c.write(binary.NativeEndian.AppendUint32(nil, capabilities))
	case fetch:
		return d.fetch(c)
	case bind:
		return unix.EOPNOTSUPP // a kernel without CONFIG_NTP_PPS
	}
	return unix.ENOTTY
}

func (c *call) write(b []byte) unix.Errno {
	if _, err := c.memory.WriteAt(b, int64(c.argument)); err != nil {
		return unix.EFAULT
	}
	return 0
}

func (d *device) encodeParams() []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	b := binary.NativeEndian.AppendUint32(nil, version)
	b = binary.NativeEndian.AppendUint32(b, d.params.mode)
	b = appendTime(b, time.Unix(0, int64(d.params.assert)))
	return append(append(b, d.params.clear[:]...), 0, 0, 0, 0)
}

// appendTime is struct pps_ktime.
func appendTime(b []byte, t time.Time) []byte {
	b = binary.NativeEndian.AppendUint64(b, uint64(t.Unix()))
	b = binary.NativeEndian.AppendUint32(b, uint32(t.Nanosecond()))
	return binary.NativeEndian.AppendUint32(b, 0) // flags
}

func (d *device) setParams(c call) unix.Errno {
	if !c.settime() {
		return unix.EPERM
	}
	var b [40]byte
	if _, err := c.memory.ReadAt(b[:], int64(c.argument)); err != nil {
		return unix.EFAULT
	}
	p := params{mode: binary.NativeEndian.Uint32(b[4:])}
	if p.mode&captureBoth == 0 || p.mode&^capabilities != 0 {
		return unix.EINVAL
	}
	if p.mode&formats == 0 {
		p.mode |= formatSpec
	}
	p.mode |= canWait
	p.assert = time.Duration(int64(binary.NativeEndian.Uint64(b[8:])))*time.Second + time.Duration(int32(binary.NativeEndian.Uint32(b[16:])))
	copy(p.clear[:], b[24:])
	d.mu.Lock()
	defer d.mu.Unlock()
	d.params = p
	return 0
}

// sizes of struct pps_kinfo, which the timeout follows, by alignment; struct pps_ktime has 16 bytes.
const (
	infoSize, infoSizeCompat = 48, 44
	timeSize                 = 16
)

// fetch is PPS_FETCH: it waits for the next pulse if the timeout is not zero, and returns the last one.
func (d *device) fetch(c call) unix.Errno {
	size := infoSize
	if c.compat {
		size = infoSizeCompat
	}
	data := make([]byte, size+timeSize)
	if _, err := c.memory.ReadAt(data, int64(c.argument)); err != nil {
		return unix.EFAULT
	}
	timeout, forever := decodeTimeout(data[size:])
	if timeout >= tick || forever {
		switch err := d.wait(timeout, c.waiting); {
		case errors.Is(err, errTimeout):
			return unix.ETIMEDOUT
		case err != nil:
			return unix.EINTR
		}
	}
	copy(data, d.encodeInfo())
	return c.write(data)
}

// decodeTimeout reads struct pps_ktime; 0: forever, or no wait.
func decodeTimeout(b []byte) (timeout time.Duration, forever bool) {
	if binary.NativeEndian.Uint32(b[12:])&timeInvalid != 0 {
		return 0, true
	}
	const longest = uint64(24 * time.Hour / time.Second)
	seconds := min(binary.NativeEndian.Uint64(b), longest)
	return time.Duration(seconds)*time.Second + time.Duration(int32(binary.NativeEndian.Uint32(b[8:]))), false
}

// encodeInfo is struct pps_kinfo, without the padding at its end.
func (d *device) encodeInfo() []byte {
	_, last := d.state()
	d.mu.Lock()
	defer d.mu.Unlock()
	at := last.at
	switch {
	case last.sequence == 0:
		at = time.Unix(0, 0)
	case d.params.mode&offsetAssert != 0:
		at = at.Add(d.params.assert)
	}
	b := binary.NativeEndian.AppendUint32(nil, last.sequence)
	b = binary.NativeEndian.AppendUint32(b, 0)
	b = appendTime(appendTime(b, at), time.Unix(0, 0))
	return binary.NativeEndian.AppendUint32(b, d.params.mode)
}
