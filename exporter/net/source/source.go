// Package source tells whether this host has an address that replies to its packets reach. Without one, the kernel sends
// nevertheless in several cases: from 0.0.0.0, from ::1, from the address of another interface, or from an IPv6 address that a
// socket was bound to before it was removed.
package source

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Checker checks the addresses of one network namespace. It is safe for concurrent use.
type Checker struct {
	device string

	mu     sync.Mutex
	routes *netlink.Handle
	events int // a netlink socket that receives changes of addresses; -1: there is none
	buffer [8192]byte
}

// Open makes a checker for packets that leave by a device; empty: by any, as the routes of the peers say. Where the system does
// not report changes of addresses, Changed is always true.
func Open(device string) (*Checker, error) {
	routes, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("source: routes of this host: %w", err)
	}
	c := &Checker{device: device, routes: routes, events: -1}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err == nil {
		if err = unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: unix.RTMGRP_IPV4_IFADDR | unix.RTMGRP_IPV6_IFADDR}); err == nil {
			c.events = fd
		} else {
			_ = unix.Close(fd)
		}
	}
	return c, nil
}

// Close frees the sockets. Afterwards Changed is false and Check returns nil.
func (c *Checker) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.routes == nil {
		return
	}
	c.routes.Close()
	if c.routes = nil; c.events >= 0 {
		_ = unix.Close(c.events)
	}
}

// Changed reports whether an address of this host was removed or became unusable since the last call, so that each peer has to be
// checked again. It costs one system call.
func (c *Checker) Changed() (changed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.routes == nil {
		return false
	}
	if c.events < 0 {
		return true
	}
	for {
		n, _, err := unix.Recvfrom(c.events, c.buffer[:], unix.MSG_DONTWAIT)
		switch {
		case errors.Is(err, unix.EAGAIN):
			return changed
		case err != nil: // ENOBUFS: changes were missed
			changed = true
			if !errors.Is(err, unix.ENOBUFS) && !errors.Is(err, unix.EINTR) {
				return true
			}
		default:
			changed = changed || impairs(c.buffer[:n])
		}
	}
}

// unusable are the flags of an IPv6 address that must not be used (RFC 4862 section 5.4).
const unusable = unix.IFA_F_TENTATIVE | unix.IFA_F_DADFAILED

// impairs reports whether messages of the kernel tell of an address that is gone or unusable. A router's advertisements renew
// addresses all the time.
func impairs(b []byte) bool {
	for len(b) >= unix.SizeofNlMsghdr+unix.SizeofIfAddrmsg {
		length := int(binary.NativeEndian.Uint32(b))
		kind, flags := binary.NativeEndian.Uint16(b[4:]), b[unix.SizeofNlMsghdr+2]
		if kind == unix.RTM_DELADDR || kind == unix.RTM_NEWADDR && flags&unusable != 0 {
			return true
		}
		if length < unix.SizeofNlMsghdr {
			return true // not a message that is known
		}
		b = b[min(len(b), (length+unix.NLMSG_ALIGNTO-1)&^(unix.NLMSG_ALIGNTO-1)):]
	}
	return false
}

// Check returns an error if replies cannot reach the source address of packets to peer: local, or, if that is the zero Addr or
// unspecified, the one that the kernel chooses. nil also means that the kernel refuses the packets, whose error tells why.
func (c *Checker) Check(local, peer netip.Addr) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.routes == nil {
		return nil
	}
	if local.IsValid() && !local.IsUnspecified() {
		return c.owned(local)
	}
	return c.chosen(peer.Unmap())
}

// owned returns an error if this host does not have an address, or must not use it yet. A link-local address is of its interface:
// another one may have the same.
func (c *Checker) owned(local netip.Addr) error {
	var by netlink.Link // nil: any
	if local.Zone() != "" {
		found, err := c.linkOf(local.Zone())
		if errors.As(err, new(netlink.LinkNotFoundError)) {
			return Missing(local)
		}
		by = found
	}
	all, err := c.routes.AddrList(by, familyOf(local))
	if err != nil {
		return nil // not known
	}
	for _, a := range all {
		if ip, _ := netip.AddrFromSlice(a.IP); ip.Unmap() == local.WithZone("") {
			if a.Flags&unusable != 0 {
				return fmt.Errorf("source: this host must not use its address %s yet: duplicate address detection has not ended, or has failed; see `ip address show`", local)
			}
			return nil
		}
	}
	if found, err := c.routes.RouteGet(local.AsSlice()); by == nil && err == nil && len(found) > 0 && found[0].Type == unix.RTN_LOCAL {
		return nil // of a range of local addresses
	}
	return Missing(local)
}

// chosen returns an error if the kernel chooses an address for peer that is of no use.
func (c *Checker) chosen(peer netip.Addr) error {
	name := c.device
	if name == "" {
		name = peer.Zone()
	}
	o := &netlink.RouteGetOptions{}
	if name != "" {
		by, err := c.linkOf(name)
		if err != nil {
			return nil // the kernel refuses the packets
		}
		o.OifIndex = by.Attrs().Index
	}
	found, err := c.routes.RouteGetWithOptions(peer.AsSlice(), o)
	if err != nil || len(found) == 0 {
		return nil // the kernel refuses the packets
	}
	from, _ := netip.AddrFromSlice(found[0].Src)
	from = from.Unmap()
	switch {
	case !from.IsValid() || from.IsUnspecified(), from.IsLoopback() && !peer.IsLoopback():
		return missing(peer, name, "")
	case from.Is6() && from.IsLinkLocalUnicast() && !peer.IsLinkLocalUnicast() && found[0].Gw != nil:
		return missing(peer, name, fmt.Sprintf(" other than the link-local %s, which routers do not forward", from))
	case from.Is6() && from.IsLinkLocalUnicast() && !c.has(found[0].LinkIndex, from), c.device != "" && peer.Is4() && !c.routed(peer, o) && !c.has(o.OifIndex, from):
		return missing(peer, name, fmt.Sprintf(", and the kernel takes %s of another interface", from))
	}
	return nil
}

// linkOf returns the interface with a name or a number (RFC 4007 section 11.2).
func (c *Checker) linkOf(name string) (netlink.Link, error) {
	found, err := c.routes.LinkByName(name)
	if n, notNumber := strconv.Atoi(name); err != nil && notNumber == nil {
		return c.routes.LinkByIndex(n)
	}
	return found, err
}

// routed reports whether there is a route by the interface of o; without one, the kernel assumes that the peer is on its link.
func (c *Checker) routed(peer netip.Addr, o *netlink.RouteGetOptions) bool {
	found, err := c.routes.RouteGetWithOptions(peer.AsSlice(), &netlink.RouteGetOptions{OifIndex: o.OifIndex, FIBMatch: true})
	return err == nil && len(found) > 0
}

// has reports whether the interface with a number has an address.
func (c *Checker) has(index int, from netip.Addr) bool {
	all, err := c.routes.AddrList(nil, familyOf(from))
	for _, a := range all {
		if ip, _ := netip.AddrFromSlice(a.IP); ip.Unmap() == from && a.LinkIndex == index {
			return true
		}
	}
	return err != nil
}

func familyOf(a netip.Addr) int {
	if a.Unmap().Is4() {
		return netlink.FAMILY_V4
	}
	return netlink.FAMILY_V6
}

// missing is the error of a host without an address for peer.
func missing(peer netip.Addr, device, but string) error {
	family, where := "IPv6", ""
	if peer.Is4() {
		family = "IPv4"
	}
	if device != "" {
		where = " on interface " + device
	}
	return fmt.Errorf("source: this host has no usable %s address%s%s; see `ip address show`", family, where, but)
}

// Missing is the error of an address that this host does not have.
func Missing(a netip.Addr) error {
	return fmt.Errorf("source: this host does not have the address %s now; see `ip address show`", a)
}
