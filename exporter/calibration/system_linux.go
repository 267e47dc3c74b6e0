package calibration

import (
	"net"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

func kernelRelease() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}

// DriverOf names the driver of an interface as `ethtool -i` does (SIOCETHTOOL,
// ETHTOOL_GDRVINFO), "loopback" for one that has none for that reason; "" if there is
// no such interface or it does not say.
func DriverOf(iface string) string {
	if i, err := net.InterfaceByName(iface); err != nil {
		return ""
	} else if i.Flags&net.FlagLoopback != 0 {
		return "loopback"
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer func() { _ = unix.Close(fd) }()
	info, err := unix.IoctlGetEthtoolDrvinfo(fd, iface)
	if err != nil {
		return ""
	}
	return unix.ByteSliceToString(info.Driver[:])
}

// adaptiveMost is the longest moderation that the kernel's adaptive algorithm sets (Linux
// include/linux/dim.h and lib/dim/net_dim.c: 256 us).
const adaptiveMost = 256 * time.Microsecond

// coalesce is struct ethtool_coalesce of Linux include/uapi/linux/ethtool.h, all of it
// 32-bit numbers.
type coalesce struct {
	command                                 uint32
	rxMicroseconds, _, rxMicrosecondsIRQ, _ uint32
	_, _, _, _, _                           uint32
	adaptiveRx, _, _                        uint32
	rxMicrosecondsLow, _, _, _, _           uint32
	rxMicrosecondsHigh, _, _, _, _          uint32
}

// ModerationOf is for how long the interface may hold back the interrupt after a packet has
// come, as `ethtool -c` tells it (rx-usecs; ETHTOOL_GCOALESCE): the largest of the values
// that the driver may choose from. Zero if there is no such interface, or it does not
// moderate, or does not say.
func ModerationOf(iface string) time.Duration {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	defer func() { _ = unix.Close(fd) }()
	c := coalesce{command: unix.ETHTOOL_GCOALESCE}
	if err := ethtool(fd, iface, unsafe.Pointer(&c)); err != nil {
		return 0
	}
	return c.moderation()
}

func (c *coalesce) moderation() time.Duration {
	most := time.Duration(max(c.rxMicroseconds, c.rxMicrosecondsIRQ)) * time.Microsecond
	if c.adaptiveRx != 0 {
		most = max(most, adaptiveMost, time.Duration(max(c.rxMicrosecondsLow, c.rxMicrosecondsHigh))*time.Microsecond)
	}
	return most
}

// ethtool asks a driver; data begins with the command.
func ethtool(fd int, iface string, data unsafe.Pointer) error {
	req := struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte // the rest of struct ifreq's union
	}{data: data}
	if len(iface) >= len(req.name) {
		return unix.ENODEV
	}
	copy(req.name[:], iface)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&req))); errno != 0 {
		return errno
	}
	return nil
}
