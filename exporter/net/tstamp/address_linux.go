package tstamp

import (
	"encoding/binary"
	"net/netip"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// putAddress writes a socket address for a socket; b has space for one of IPv6. errno is EAFNOSUPPORT if a is of the other
// family, ENODEV if its zone is no interface, or the socket is bound to one that is gone.
func (z *zones) putAddress(s *socket, b []byte, a netip.AddrPort, v6 bool) (n uint32, errno unix.Errno) {
	ip := a.Addr().Unmap()
	if !ip.IsValid() || ip.Is6() != v6 {
		return 0, unix.EAFNOSUPPORT
	}
	if !v6 {
		b = b[:unix.SizeofSockaddrInet4]
		clear(b)
		binary.NativeEndian.PutUint16(b, unix.AF_INET)
		binary.BigEndian.PutUint16(b[2:], a.Port())
		*(*[4]byte)(b[4:]) = ip.As4()
		return unix.SizeofSockaddrInet4, 0
	}
	b = b[:unix.SizeofSockaddrInet6]
	clear(b)
	binary.NativeEndian.PutUint16(b, unix.AF_INET6)
	binary.BigEndian.PutUint16(b[2:], a.Port())
	*(*[16]byte)(b[8:]) = ip.As16()
	if zone := ip.Zone(); zone != "" {
		index, errno := z.index(s, zone)
		binary.NativeEndian.PutUint32(b[24:], index)
		return unix.SizeofSockaddrInet6, errno
	}
	return unix.SizeofSockaddrInet6, 0
}

// parseAddress reads a socket address of a socket; it returns the zero AddrPort for anything else.
func (z *zones) parseAddress(s *socket, b []byte) netip.AddrPort {
	if len(b) < 2 {
		return netip.AddrPort{}
	}
	switch family := binary.NativeEndian.Uint16(b); {
	case family == unix.AF_INET && len(b) >= unix.SizeofSockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[4:8])), binary.BigEndian.Uint16(b[2:]))
	case family == unix.AF_INET6 && len(b) >= unix.SizeofSockaddrInet6:
		ip := netip.AddrFrom16([16]byte(b[8:24]))
		if index := binary.NativeEndian.Uint32(b[24:]); index != 0 {
			ip = ip.WithZone(z.name(s, index))
		}
		return netip.AddrPortFrom(ip, binary.BigEndian.Uint16(b[2:]))
	}
	return netip.AddrPort{}
}

// zones caches the last zone of a link-local address, an interface by name and number: a socket sees few, and a lookup is a
// system call. Not safe for concurrent use.
type zones struct {
	zone string
	at   uint32 // its number; 0: nothing is cached
	// until is the end of the cached entry: an interface that is deleted and made again has another number.
	until time.Time
}

// zoneAge is how long a number or a name of an interface is used before it is looked up again.
const zoneAge = time.Second

// forget makes the next use a lookup.
func (z *zones) forget() { z.at = 0 }

func (z *zones) cached() bool { return z.at != 0 && time.Now().Before(z.until) }

// index returns the number of a zone, a name or a number (RFC 4007 section 11.2). The number of another interface than a socket
// is bound to would be accepted by the kernel, and the replies would not reach the socket.
func (z *zones) index(s *socket, zone string) (uint32, unix.Errno) {
	if z.zone == zone && z.cached() {
		return z.at, 0
	}
	*z = zones{zone, indexOf(s.fd, zone), time.Now().Add(zoneAge)}
	if z.at == 0 || !s.stillBound() {
		z.forget()
		return 0, unix.ENODEV
	}
	return z.at, 0
}

// name returns the name of the interface with a number; the number if there is no such interface.
func (z *zones) name(s *socket, index uint32) string {
	if z.at != index || !z.cached() {
		*z = zones{nameOf(s.fd, index), index, time.Now().Add(zoneAge)}
	}
	return z.zone
}

// indexOf returns the number of an interface of the namespace of socket fd, which is given by its name or by a number; 0: no
// interface has the name.
func indexOf(fd int, zone string) uint32 {
	if request, err := unix.NewIfreq(zone); err == nil && unix.IoctlIfreq(fd, unix.SIOCGIFINDEX, request) == nil {
		return request.Uint32()
	}
	n, err := strconv.ParseUint(zone, 10, 32)
	if err != nil {
		return 0
	}
	return uint32(n)
}

// nameOf returns the name of the interface with a number in the namespace of socket fd; the number if there is none.
func nameOf(fd int, index uint32) string {
	request, err := unix.NewIfreq("")
	if err == nil {
		request.SetUint32(index)
		if unix.IoctlIfreq(fd, unix.SIOCGIFNAME, request) == nil {
			return request.Name()
		}
	}
	return strconv.FormatUint(uint64(index), 10)
}

// Known returns an address as In.Peer has it: not mapped to IPv6, and the zone by name where it is a number (RFC 4007 section
// 11.2).
func (c *Conn) Known(a netip.AddrPort) netip.AddrPort {
	ip := a.Addr().Unmap()
	c.drainMu.Lock()
	defer c.drainMu.Unlock()
	if zone := ip.Zone(); zone != "" && c.fd >= 0 {
		if index := indexOf(c.fd, zone); index != 0 {
			ip = ip.WithZone(nameOf(c.fd, index))
		}
	}
	return netip.AddrPortFrom(ip, a.Port())
}
