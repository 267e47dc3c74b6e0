package tstamp

import (
	"encoding/binary"
	"net"
	"net/netip"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// message is struct mmsghdr (sendmmsg(2)).
type message struct {
	header unix.Msghdr
	length uint32
}

// controlBytes is room for every control message that we send or ask for:
// stamps 64, extended error with address 48, packet info 40, TTL 24, TOS 24.
const controlBytes = 256

// envelope is what a message points to beside its payload. It is kept where it
// is once the pointers have been set.
type envelope struct {
	control [controlBytes / 8]uint64 // aligned as cmsghdr wants it
	name    [unix.SizeofSockaddrInet6]byte
	vector  unix.Iovec
}

func (e *envelope) controlSlice() []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(&e.control[0])), controlBytes)
}

// mail is an array of messages with their envelopes.
type mail struct {
	messages  []message
	envelopes []envelope
}

func newMail(n int) mail {
	m := mail{make([]message, n), make([]envelope, n)}
	for i := range m.messages {
		h, e := &m.messages[i].header, &m.envelopes[i]
		h.Name = &e.name[0]
		h.Iov = &e.vector
		h.SetIovlen(1)
		h.Control = (*byte)(unsafe.Pointer(&e.control[0]))
	}
	return m
}

// setPayload points message i at b.
func (m *mail) setPayload(i int, b []byte) {
	v := &m.envelopes[i].vector
	v.Base = unsafe.SliceData(b)
	v.SetLen(len(b))
}

// ready prepares the first n messages to be received into.
func (m *mail) ready(n int) {
	for i := range m.messages[:n] {
		h := &m.messages[i].header
		h.Namelen = unix.SizeofSockaddrInet6
		h.SetControllen(controlBytes)
		h.Flags = 0
	}
}

func (m *mail) control(i int) []byte {
	return m.envelopes[i].controlSlice()[:min(int(m.messages[i].header.Controllen), controlBytes)]
}

func (m *mail) name(i int) []byte {
	return m.envelopes[i].name[:min(m.messages[i].header.Namelen, unix.SizeofSockaddrInet6)]
}

// sendmmsg does not tell Go's scheduler of the call: it does not block, and a thread
// that the scheduler has taken for blocked (after 20 us, runtime/proc.go) waits for its
// turn before it can read the clock, and until then its packets count as held.
func sendmmsg(fd int, m []message) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(m))),
		uintptr(len(m)), unix.MSG_DONTWAIT, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}

func recvmmsg(fd int, m []message, flags uintptr) (int, unix.Errno) {
	n, _, errno := unix.Syscall6(unix.SYS_RECVMMSG, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(m))),
		uintptr(len(m)), unix.MSG_DONTWAIT|flags, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}

// putAddress writes a socket address; b has room for one of IPv6. ok is false
// if a is not of the family.
func (z *zones) putAddress(b []byte, a netip.AddrPort, v6 bool) (n uint32, ok bool) {
	ip := a.Addr().Unmap()
	if !ip.IsValid() || ip.Is6() != v6 {
		return 0, false
	}
	if !v6 {
		b = b[:unix.SizeofSockaddrInet4]
		clear(b)
		binary.NativeEndian.PutUint16(b, unix.AF_INET)
		binary.BigEndian.PutUint16(b[2:], a.Port())
		*(*[4]byte)(b[4:]) = ip.As4()
		return unix.SizeofSockaddrInet4, true
	}
	b = b[:unix.SizeofSockaddrInet6]
	clear(b)
	binary.NativeEndian.PutUint16(b, unix.AF_INET6)
	binary.BigEndian.PutUint16(b[2:], a.Port())
	*(*[16]byte)(b[8:]) = ip.As16()
	if zone := ip.Zone(); zone != "" {
		binary.NativeEndian.PutUint32(b[24:], z.index(zone))
	}
	return unix.SizeofSockaddrInet6, true
}

// parseAddress reads a socket address; the zero AddrPort if it is none.
func (z *zones) parseAddress(b []byte) netip.AddrPort {
	if len(b) < 2 {
		return netip.AddrPort{}
	}
	switch family := binary.NativeEndian.Uint16(b); {
	case family == unix.AF_INET && len(b) >= unix.SizeofSockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[4:8])), binary.BigEndian.Uint16(b[2:]))
	case family == unix.AF_INET6 && len(b) >= unix.SizeofSockaddrInet6:
		ip := netip.AddrFrom16([16]byte(b[8:24]))
		if index := binary.NativeEndian.Uint32(b[24:]); index != 0 {
			ip = z.with(ip, index)
		}
		return netip.AddrPortFrom(ip, binary.BigEndian.Uint16(b[2:]))
	}
	return netip.AddrPort{}
}

// zones remembers the last zone of a link-local address both ways: a socket
// meets few, and finding one costs system calls. Not safe for concurrent use.
type zones struct {
	lastName, lastZone   string
	lastIndex, zoneIndex uint32
}

func (z *zones) index(name string) uint32 {
	if z.lastName == name {
		return z.lastIndex
	}
	var index uint32
	if ifi, err := net.InterfaceByName(name); err == nil {
		index = uint32(ifi.Index)
	} else if n, err := strconv.ParseUint(name, 10, 32); err == nil {
		index = uint32(n)
	}
	if index != 0 {
		z.lastName, z.lastIndex = name, index
	}
	return index
}

func (z *zones) with(ip netip.Addr, index uint32) netip.Addr {
	if z.zoneIndex != index || z.lastZone == "" {
		z.zoneIndex, z.lastZone = index, strconv.FormatUint(uint64(index), 10)
		if ifi, err := net.InterfaceByIndex(int(index)); err == nil {
			z.lastZone = ifi.Name
		}
	}
	return ip.WithZone(z.lastZone)
}
