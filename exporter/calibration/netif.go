package calibration

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"
)

// InterfaceOf names the interface of this host that has the address. It looks the
// address up and asks nobody else. An address of no interface, an unspecified one for
// instance, is an error.
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

// ModerationAt is for how long the interfaces of these addresses may hold an interrupt back
// after a packet has come (see ModerationOf): the largest of them; of an unspecified address,
// and of no addresses, that of all interfaces. An address of none adds nothing.
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
		all, err := net.Interfaces()
		if err != nil {
			continue
		}
		for _, i := range all {
			if i.Flags&net.FlagUp != 0 {
				most = max(most, ModerationOf(i.Name))
			}
		}
	}
	return most
}

// has tells whether addr is the address in p, or one of 127.0.0.0/8, all of which are
// this host's own.
func has(i *net.Interface, p netip.Prefix, addr netip.Addr) bool {
	return p.Addr().Unmap() == addr ||
		i.Flags&net.FlagLoopback != 0 && addr.Is4() && addr.IsLoopback() && p.Masked().Contains(addr)
}

// InterfaceTo names the interface over which packets go to peer from local, which may
// be invalid or unspecified: then the kernel's routes decide. Nothing is sent. It is
// the interface that has the source address; on a host that sends from the address
// of one interface over another (a router's loopback address) name that in `local`.
// Packets to one of the host's own addresses pass the loopback interface, whatever
// interface has the address.
func InterfaceTo(ctx context.Context, local netip.Addr, peer netip.AddrPort) (string, error) {
	if _, err := InterfaceOf(peer.Addr()); err == nil {
		return loopback()
	}
	if local.IsValid() && !local.IsUnspecified() {
		return InterfaceOf(local)
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, "udp", peer.String())
	if err != nil {
		return "", fmt.Errorf("calibration: route to %s: %w", peer.Addr(), err)
	}
	defer func() { _ = c.Close() }() // nothing was sent
	at, err := netip.ParseAddrPort(c.LocalAddr().String())
	if err != nil {
		return "", fmt.Errorf("calibration: route to %s: %w", peer.Addr(), err)
	}
	return InterfaceOf(at.Addr())
}

func loopback() (string, error) {
	all, err := net.Interfaces()
	if err != nil {
		return "", fmt.Errorf("calibration: interfaces: %w", err)
	}
	for _, i := range all {
		if i.Flags&net.FlagLoopback != 0 {
			return i.Name, nil
		}
	}
	return "", fmt.Errorf("calibration: this host has no loopback interface")
}
