package tcpsocket

import (
	"encoding/binary"
	"fmt"
	"io"
	"unsafe"

	"golang.org/x/sys/unix"

	"oneway.example/exporter/core/instant"
)

// Arrival is a read of received bytes.
type Arrival struct {
	// N is the number of bytes.
	N int
	// At is when the segment arrived whose data was joined last with the last byte of the read; zero: no stamp. Data that
	// arrived out of order may be joined with data that arrived later, and then has the earlier time. The kernel takes
	// the time after it has merged segments (GRO). It begins to do so some time after EnableStamps, if no other socket
	// of the host has asked before.
	At instant.Time
	// Left is the number of bytes that stay in the receive buffer, at least 1 at the end of the stream; -1: unknown.
	Left int
	// Begin is when the system call began, Empty when the last one before it began that found or left the receive buffer
	// empty; zero: none did.
	Begin, Empty instant.Time
}

// reader is the state of a connection whose reads have stamps, of the goroutine that reads.
type reader struct {
	in      packet
	buf     []byte
	flags   int
	last    Arrival
	errno   unix.Errno
	take    func(fd uintptr) bool
	empty   instant.Time
	state   raw
	length  uint32
	getInfo func(fd uintptr)
}

func newReader() *reader {
	r := &reader{}
	r.in.init()
	r.take = r.tryTake
	r.getInfo = func(fd uintptr) {
		r.length = uint32(unsafe.Sizeof(r.state))
		_, _, r.errno = unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.IPPROTO_TCP, unix.TCP_INFO, uintptr(unsafe.Pointer(&r.state)), uintptr(unsafe.Pointer(&r.length)), 0)
	}
	return r
}

// ReadStamped waits for data and reads it, or removes at most as many bytes as buf has without copying them. At the end of
// the stream it returns io.EOF.
func (c *Conn) ReadStamped(buf []byte, discard bool) (Arrival, error) {
	r := c.reads
	r.buf, r.flags = buf, unix.MSG_DONTWAIT
	if discard {
		r.flags |= unix.MSG_TRUNC
	}
	if err := c.raw.Read(r.take); err != nil {
		return Arrival{}, err
	}
	switch {
	case r.errno != 0:
		return Arrival{}, fmt.Errorf("tcpsocket: read: %w", r.errno)
	case r.last.N == 0:
		return r.last, io.EOF
	}
	return r.last, nil
}

func (r *reader) tryTake(fd uintptr) bool {
	begin := instant.Now()
	n, control, errno := r.in.receive(fd, r.buf, r.flags)
	r.errno = errno
	switch errno {
	case 0:
	case unix.EAGAIN:
		r.empty = begin
		return false
	case unix.EINTR: // a call that does not wait is not interrupted
		return false
	default:
		return true
	}
	m := parseControls(control)
	r.last = Arrival{N: n, At: m.at, Left: m.left, Begin: begin, Empty: r.empty}
	if m.left == 0 {
		r.empty = begin
	}
	return true
}

// Reception is how segments arrive.
type Reception struct {
	// OutOfOrder counts segments that arrived before data that precedes them, if Known (Linux 5.4).
	OutOfOrder uint32
	Known      bool
}

// Reception returns the present state. It is for the goroutine that calls ReadStamped.
func (c *Conn) Reception() (Reception, error) {
	r := c.reads
	if err := c.raw.Control(r.getInfo); err != nil {
		return Reception{}, err
	}
	if r.errno != 0 {
		return Reception{}, fmt.Errorf("tcpsocket: TCP_INFO: %w", r.errno)
	}
	known := uintptr(r.length) >= unsafe.Offsetof(r.state.Rcv_ooopack)+4
	return Reception{OutOfOrder: r.state.Rcv_ooopack, Known: known}, nil
}

// receive reads a message into b, which may be empty, and returns its control messages.
func (p *packet) receive(fd uintptr, b []byte, flags int) (int, []byte, unix.Errno) {
	p.vector.Base = unsafe.SliceData(b)
	p.vector.SetLen(len(b))
	p.header.SetControllen(controlBytes)
	n, _, errno := unix.Syscall(unix.SYS_RECVMSG, fd, uintptr(unsafe.Pointer(&p.header)), uintptr(flags))
	if errno != 0 {
		return 0, nil, errno
	}
	return int(n), p.bytes()[:min(int(p.header.Controllen), controlBytes)], 0
}

// controls are the control messages of a read or of a stamp.
type controls struct {
	at        instant.Time // of the software
	left      int          // TCP_CM_INQ; -1: none
	origin    uint8        // of the extended error, with its info and data
	kind, key uint32
	stats     []byte // attributes of netlink (SCM_TIMESTAMPING_OPT_STATS)
}

func parseControls(b []byte) controls {
	c := controls{left: -1}
	for len(b) >= unix.SizeofCmsghdr {
		h, data, rest, err := unix.ParseOneSocketControlMessage(b)
		if err != nil {
			return c // a length beyond the buffer ends the parsing
		}
		b = rest
		switch {
		case h.Level == unix.SOL_SOCKET && h.Type == unix.SO_TIMESTAMPING_NEW && len(data) >= 16:
			c.at = instant.FromUnix(int64(binary.NativeEndian.Uint64(data)), int64(binary.NativeEndian.Uint64(data[8:])))
		case h.Level == unix.SOL_SOCKET && h.Type == unix.SCM_TIMESTAMPING_OPT_STATS:
			c.stats = data
		case h.Level == unix.SOL_TCP && h.Type == unix.TCP_CM_INQ && len(data) >= 4:
			c.left = int(int32(binary.NativeEndian.Uint32(data)))
		case h.Level == unix.SOL_IP && h.Type == unix.IP_RECVERR, h.Level == unix.SOL_IPV6 && h.Type == unix.IPV6_RECVERR:
			if len(data) >= 16 { // struct sock_extended_err
				c.origin, c.kind, c.key = data[4], binary.NativeEndian.Uint32(data[8:]), binary.NativeEndian.Uint32(data[12:])
			}
		}
	}
	return c
}

// Attributes of OPT_STATS (linux/tcp.h).
const (
	nlaSendQueue     = 13 // TCP_NLA_SNDQ_SIZE: written and not acknowledged
	nlaBytesSent     = 18 // TCP_NLA_BYTES_SENT, with retransmissions
	nlaRetransmitted = 19 // TCP_NLA_BYTES_RETRANS
	nlaNotSent       = 24 // TCP_NLA_BYTES_NOTSENT (Linux 5.10)
)

// through returns the number of bytes of the connection that are acknowledged: those written, of which the kernel gives
// no count, are those sent once and those not sent. Once the FIN is written, it counts as a byte in the queues and not as one
// sent. queue are those written and not acknowledged.
func (c *controls) through(fin bool) (n, queue int64, known bool) {
	const all = 1<<nlaSendQueue | 1<<nlaBytesSent | 1<<nlaRetransmitted | 1<<nlaNotSent
	var sent, again, unsent int64
	seen := 0
	for b := c.stats; len(b) >= unix.SizeofNlAttr; {
		size, kind := int(binary.NativeEndian.Uint16(b)), binary.NativeEndian.Uint16(b[2:])
		if size < unix.SizeofNlAttr || size > len(b) {
			break
		}
		data := b[unix.SizeofNlAttr:size]
		b = b[min((size+3)&^3, len(b)):]
		switch {
		case kind == nlaSendQueue && len(data) == 4:
			queue = int64(binary.NativeEndian.Uint32(data))
		case kind == nlaBytesSent && len(data) == 8:
			sent = int64(binary.NativeEndian.Uint64(data))
		case kind == nlaRetransmitted && len(data) == 8:
			again = int64(binary.NativeEndian.Uint64(data))
		case kind == nlaNotSent && len(data) == 4:
			unsent = int64(binary.NativeEndian.Uint32(data))
		default:
			continue
		}
		seen |= 1 << kind
	}
	n = sent - again + unsent - queue
	if fin && queue > 0 && unsent == 0 { // it was sent and not acknowledged
		n++
	}
	return n, queue, seen == all
}
