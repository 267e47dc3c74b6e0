package calibration

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// InterfaceOf is the interface of this host with the address. It uses local information only. An address of no interface,
// for example an unspecified one, is an error.
func InterfaceOf(addr netip.Addr) (string, error) {
	all, err := net.Interfaces()
	if err != nil {
		return "", fmt.Errorf("calibration: interfaces: %w", err)
	}
	bare := addr.Unmap().WithZone("")
	for _, i := range all {
		if z := addr.Zone(); z != "" && z != i.Name && z != strconv.Itoa(i.Index) {
			continue
		}
		addrs, err := i.Addrs()
		if err != nil {
			return "", fmt.Errorf("calibration: addresses of %s: %w", i.Name, err)
		}
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil && has(&i, p, bare) {
				return i.Name, nil
			}
		}
	}
	return "", fmt.Errorf("calibration: %s is an address of no interface of this host", addr)
}

// ModerationAt is the maximum interrupt moderation of the interfaces of these addresses (see ModerationOf); for an unspecified
// address, and without addresses, of all interfaces. An address of no interface adds nothing.
func ModerationAt(addrs []netip.AddrPort) (most time.Duration) {
	if len(addrs) == 0 {
		addrs = []netip.AddrPort{netip.AddrPortFrom(netip.IPv4Unspecified(), 0)}
	}
	for _, a := range addrs {
		if !a.Addr().IsUnspecified() {
			if name, err := InterfaceOf(a.Addr()); err == nil {
				most = max(most, ModerationOf(name))
			}
			continue
		}
		all, _ := net.Interfaces() // after an error nothing is known
		for _, i := range all {
			if i.Flags&net.FlagUp != 0 {
				most = max(most, ModerationOf(i.Name))
			}
		}
	}
	return most
}

// has reports whether addr is the address in p, or an address of 127.0.0.0/8, all of which are local.
func has(i *net.Interface, p netip.Prefix, addr netip.Addr) bool {
	return p.Addr().Unmap() == addr ||
		i.Flags&net.FlagLoopback != 0 && addr.Is4() && addr.IsLoopback() && p.Masked().Contains(addr)
}

// InterfaceTo is the interface over which packets go to peer from local, which may be invalid or unspecified: then the
// kernel's routes decide. It sends nothing. The result is the interface with the source address; a host that sends from
// the address of one interface over another one (the loopback address of a router) must set `local` accordingly. Packets
// to an address of this host pass the loopback interface, whichever interface has the address.
func InterfaceTo(ctx context.Context, local netip.Addr, peer netip.AddrPort) (string, error) {
	return InterfaceVia(ctx, "", local, peer)
}

// InterfaceVia is InterfaceTo for packets sent through a device, an interface or a VRF; empty: the kernel's choice.
func InterfaceVia(ctx context.Context, device string, local netip.Addr, peer netip.AddrPort) (string, error) {
	if _, err := InterfaceOf(peer.Addr()); err == nil {
		i, err := net.InterfaceByIndex(loopbackIndex)
		if err != nil {
			return "", fmt.Errorf("calibration: loopback interface: %w", err)
		}
		return i.Name, nil
	}
	if local.IsValid() && !local.IsUnspecified() {
		return InterfaceOf(local)
	}
	d := net.Dialer{Control: func(_, _ string, c syscall.RawConn) (err error) {
		failed := c.Control(func(fd uintptr) { err = unix.BindToDevice(int(fd), device) })
		return cmp.Or(failed, err)
	}}
	if device == "" {
		d.Control = nil
	}
	c, err := d.DialContext(ctx, "udp", peer.String())
	if err != nil {
		return "", fmt.Errorf("calibration: route to %s: %w", peer.Addr(), err)
	}
	defer func() { _ = c.Close() }() // nothing was sent
	return InterfaceOf(c.LocalAddr().(*net.UDPAddr).AddrPort().Addr())
}

// loopbackIndex is the index of the loopback interface in each network namespace (Linux include/net/flow.h,
// LOOPBACK_IFINDEX).
const loopbackIndex = 1

// DriverOf is the driver of an interface as shown by `ethtool -i` (SIOCETHTOOL, ETHTOOL_GDRVINFO), "loopback" for a loopback
// interface, which has no driver; "" if there is no such interface or its driver is unknown.
func DriverOf(iface string) string {
	if i, err := net.InterfaceByName(iface); err != nil {
		return ""
	} else if i.Flags&net.FlagLoopback != 0 {
		return "loopback"
	}
	var info *unix.EthtoolDrvinfo
	if !onSocket(func(fd int) (err error) {
		info, err = unix.IoctlGetEthtoolDrvinfo(fd, iface)
		return err
	}) {
		return ""
	}
	return unix.ByteSliceToString(info.Driver[:])
}

// maxAdaptive is the maximum moderation of the kernel's adaptive algorithm (Linux include/linux/dim.h and
// lib/dim/net_dim.c: 256 us).
const maxAdaptive = 256 * time.Microsecond

// coalesce is struct ethtool_coalesce of Linux include/uapi/linux/ethtool.h, which has 32-bit numbers only.
type coalesce struct {
	command                                 uint32
	rxMicroseconds, _, rxMicrosecondsIRQ, _ uint32
	_, _, _, _, _                           uint32
	adaptiveRx, _, _                        uint32
	rxMicrosecondsLow, _, _, _, _           uint32
	rxMicrosecondsHigh, _, _, _, _          uint32
}

// ModerationOf is the time for which the interface may delay the interrupt after a packet was received, as shown by
// `ethtool -c` (rx-usecs; ETHTOOL_GCOALESCE): the largest of the values that the driver may choose from. Zero if there is
// no such interface, or it does not moderate, or its setting is unknown.
func ModerationOf(iface string) time.Duration {
	c := coalesce{command: unix.ETHTOOL_GCOALESCE}
	if !onSocket(func(fd int) error { return ethtool(fd, iface, unsafe.Pointer(&c)) }) {
		return 0
	}
	return c.moderation()
}

func (c *coalesce) moderation() time.Duration {
	most := time.Duration(max(c.rxMicroseconds, c.rxMicrosecondsIRQ)) * time.Microsecond
	if c.adaptiveRx != 0 {
		most = max(most, maxAdaptive, time.Duration(max(c.rxMicrosecondsLow, c.rxMicrosecondsHigh))*time.Microsecond)
	}
	return most
}

// onSocket calls call with a socket for ioctls, and reports whether both succeeded.
func onSocket(call func(fd int) error) bool {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer func() { _ = unix.Close(fd) }()
	return call(fd) == nil
}

// ethtool sends a request to a driver; data begins with the command.
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
