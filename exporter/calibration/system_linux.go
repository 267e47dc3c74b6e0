package calibration

import (
	"net"

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
