package tstamp

import (
	"encoding/binary"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"

	"oneway.example/exporter/core/instant"
)

// message is struct mmsghdr (sendmmsg(2)).
type message struct {
	header unix.Msghdr
	length uint32
}

// controlBytes is space for all control messages sent or requested: timestamps 64, extended error with address 48,
// packet info 40, TTL 24, TOS 24.
const controlBytes = 256

// envelope is what a message points to in addition to its payload. It must not move once the pointers are set.
type envelope struct {
	control [controlBytes / 8]uint64 // aligned as cmsghdr requires
	name    [unix.SizeofSockaddrInet6]byte
	vector  unix.Iovec
}

func (e *envelope) controlSlice() []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(&e.control[0])), controlBytes)
}

// messageBatch is an array of messages with their envelopes.
type messageBatch struct {
	messages  []message
	envelopes []envelope
}

func newMessageBatch(n int) messageBatch {
	m := messageBatch{make([]message, n), make([]envelope, n)}
	for i := range m.messages {
		h, e := &m.messages[i].header, &m.envelopes[i]
		h.Name = &e.name[0]
		h.Iov = &e.vector
		h.SetIovlen(1)
		h.Control = (*byte)(unsafe.Pointer(&e.control[0]))
	}
	return m
}

// setPayload makes b the buffer of message i.
func (m *messageBatch) setPayload(i int, b []byte) {
	v := &m.envelopes[i].vector
	v.Base = unsafe.SliceData(b)
	v.SetLen(len(b))
}

// ready prepares the first n messages for a receive.
func (m *messageBatch) ready(n int) {
	for i := range m.messages[:n] {
		h := &m.messages[i].header
		h.Namelen = unix.SizeofSockaddrInet6
		h.SetControllen(controlBytes)
		h.Flags = 0
	}
}

func (m *messageBatch) control(i int) []byte {
	return m.envelopes[i].controlSlice()[:min(int(m.messages[i].header.Controllen), controlBytes)]
}

func (m *messageBatch) name(i int) []byte {
	return m.envelopes[i].name[:min(m.messages[i].header.Namelen, unix.SizeofSockaddrInet6)]
}

// sendmmsg does not notify Go's scheduler of the call: it does not block, and a thread that the scheduler considers
// blocked (after 20 us, runtime/proc.go) waits to be rescheduled before it can read the clock, which would add to the
// TX uncertainty of its packets.
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

// appendCmsg appends the header of a control message (cmsg(3)) and n bytes of data, which are not zeroed: the caller
// sets them all. b must have the capacity.
func appendCmsg(b []byte, level, kind int32, n int) (all, data []byte) {
	start := len(b)
	b = b[:start+unix.CmsgSpace(n)]
	h := (*unix.Cmsghdr)(unsafe.Pointer(&b[start]))
	h.Level, h.Type = level, kind
	h.SetLen(unix.CmsgLen(n))
	data = b[start+unix.CmsgLen(0):]
	return b, data[:n]
}

func appendCmsgUint32(b []byte, level, kind int32, v uint32) []byte {
	b, data := appendCmsg(b, level, kind, 4)
	binary.NativeEndian.PutUint32(data, v)
	return b
}

// parseTimestamping reads struct scm_timestamping64: three times of 64-bit seconds and nanoseconds: the software
// timestamp, an unused one, and the raw hardware timestamp.
func parseTimestamping(data []byte) (software, hardware instant.Time) {
	if len(data) < 48 {
		return 0, 0
	}
	at := func(d []byte) instant.Time {
		return instant.FromUnix(int64(binary.NativeEndian.Uint64(d)), int64(binary.NativeEndian.Uint64(d[8:])))
	}
	return at(data), at(data[32:])
}

// controls are the control messages of a received packet or of a message of the error queue: the extended error and the
// offender's address.
type controls struct {
	software, hardware instant.Time
	local              netip.Addr
	index              uint32 // the number of local's interface if it is link-local
	ttl, tos           uint8
	segment            int // the packet size of a coalesced message, in bytes; 0: it is one packet
	unix.SockExtendedErr
	offender []byte // a socket address (SO_EE_OFFENDER)
}

func parseControls(b []byte) (c controls) {
	for len(b) >= unix.SizeofCmsghdr {
		h, data, rest, err := unix.ParseOneSocketControlMessage(b)
		if err != nil {
			return c // a length beyond the buffer ends the parsing
		}
		b = rest
		switch h.Level {
		case unix.SOL_SOCKET:
			if h.Type == unix.SO_TIMESTAMPING_NEW {
				c.software, c.hardware = parseTimestamping(data)
			}
		case unix.SOL_IP, unix.SOL_IPV6:
			c.parseIP(h.Level == unix.SOL_IPV6, h.Type, data)
		case unix.SOL_UDP:
			if h.Type == unix.UDP_GRO && len(data) >= 4 {
				c.segment = int(int32(binary.NativeEndian.Uint32(data)))
			}
		}
	}
	return c
}

func (c *controls) parseIP(v6 bool, kind int32, data []byte) {
	switch {
	case v6 && kind == unix.IPV6_HOPLIMIT && len(data) >= 4, !v6 && kind == unix.IP_TTL && len(data) >= 4:
		c.ttl = uint8(binary.NativeEndian.Uint32(data))
	case v6 && kind == unix.IPV6_TCLASS && len(data) >= 4:
		c.tos = uint8(binary.NativeEndian.Uint32(data))
	case !v6 && kind == unix.IP_TOS && len(data) >= 1:
		c.tos = data[0]
	case v6 && kind == unix.IPV6_PKTINFO && len(data) >= unix.SizeofInet6Pktinfo:
		if c.local = netip.AddrFrom16([16]byte(data[:16])); c.local.IsLinkLocalUnicast() {
			c.index = binary.NativeEndian.Uint32(data[16:])
		}
	case !v6 && kind == unix.IP_PKTINFO && len(data) >= unix.SizeofInet4Pktinfo:
		// Interface index, local address, the header's destination: the local address is a valid source of a reply,
		// even after a broadcast.
		c.local = netip.AddrFrom4([4]byte(data[4:8]))
	case kind == unix.IPV6_RECVERR && v6 || kind == unix.IP_RECVERR && !v6:
		if len(data) >= sizeofExtendedErr {
			c.SockExtendedErr = *(*unix.SockExtendedErr)(unsafe.Pointer(&data[0]))
			c.offender = data[sizeofExtendedErr:]
		}
	}
}

const sizeofExtendedErr = int(unsafe.Sizeof(unix.SockExtendedErr{}))
