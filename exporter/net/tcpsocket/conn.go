package tcpsocket

import (
	"fmt"
	"io"
	"net"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"oneway.example/exporter/core/unit"
)

// Conn is a TCP connection whose state can be read. One goroutine may call Discard, ReadStamped and Reception, and one
// WriteMessage, WriteStamped, Drain and Finish; the other methods are safe for concurrent use.
type Conn struct {
	*net.TCPConn
	raw syscall.RawConn

	// Of Discard.
	into  []byte
	taken int
	errno syscall.Errno
	take  func(fd uintptr) bool

	// Of WriteMessage.
	rest     []byte
	waited   bool
	writeErr error
	put      func(fd uintptr) bool

	// Of EnableStamps; nil: it was not called.
	stamps *stamper
	reads  *reader

	// Of Dial; zero: this end accepted the connection.
	dialing, dialed time.Time
}

func wrap(nc *net.TCPConn) (*Conn, error) {
	raw, err := nc.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("tcpsocket: %w", err)
	}
	c := &Conn{TCPConn: nc, raw: raw}
	c.take = func(fd uintptr) bool {
		// Recvfrom of package unix would allocate an address.
		n, _, errno := unix.Syscall6(unix.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(unsafe.SliceData(c.into))), uintptr(len(c.into)), unix.MSG_TRUNC, 0, 0)
		c.taken, c.errno = int(n), errno
		return errno != unix.EAGAIN && errno != unix.EINTR
	}
	c.put = func(fd uintptr) bool {
		for len(c.rest) > 0 {
			n, err := unix.Write(int(fd), c.rest)
			switch {
			case err == unix.EINTR:
			case err == unix.EAGAIN:
				c.waited = true
				return false
			case err != nil:
				c.writeErr = err
				return true
			default:
				c.rest = c.rest[n:]
			}
		}
		return true
	}
	return c, nil
}

// network is "tcp6" for a socket of IPv6.
func (c *Conn) network() string {
	if c.LocalAddr().(*net.TCPAddr).IP.To4() == nil {
		return "tcp6"
	}
	return "tcp4"
}

// IPv6 reports whether the packets are of IPv6.
func (c *Conn) IPv6() bool { return c.network() == "tcp6" }

// control calls f with the file descriptor.
func (c *Conn) control(f func(fd int) error) error {
	var err error
	if e := c.raw.Control(func(fd uintptr) { err = f(int(fd)) }); e != nil {
		err = e
	}
	if err != nil {
		return fmt.Errorf("tcpsocket: %w", err)
	}
	return nil
}

// Discard waits for data and removes at most as many bytes as buf has from the receive buffer, without
// copying them (MSG_TRUNC, tcp(7)). At the end of the stream it returns io.EOF.
func (c *Conn) Discard(buf []byte) (int, error) {
	c.into = buf
	if err := c.raw.Read(c.take); err != nil {
		return 0, err
	}
	switch {
	case c.errno != 0:
		return 0, fmt.Errorf("tcpsocket: discard: %w", c.errno)
	case c.taken == 0:
		return 0, io.EOF
	}
	return c.taken, nil
}

// Write is that of net.Conn.
func (c *Conn) Write(b []byte) (int, error) {
	n, err := c.TCPConn.Write(b)
	c.wrote(n)
	return n, err
}

func (c *Conn) wrote(n int) {
	if c.stamps != nil {
		c.stamps.written += int64(n)
	}
}

// WriteMessage is Write, and reports whether the socket had no room and the write waited for it. The process can be slow
// without that.
func (c *Conn) WriteMessage(b []byte) (n int, waited bool, err error) {
	c.rest, c.waited, c.writeErr = b, false, nil
	err = c.raw.Write(c.put)
	if err == nil && c.writeErr != nil {
		err = fmt.Errorf("tcpsocket: write: %w", c.writeErr)
	}
	n = len(b) - len(c.rest)
	c.wrote(n)
	return n, c.waited, err
}

// Buffer is the size of a send or receive buffer, in bytes.
type Buffer struct {
	// Asked is the nominal size of Options; 0: auto-tuning.
	Asked int `json:"asked_bytes"`
	// Effective is the size that the kernel uses now, its overhead included: twice the nominal size; absent: unknown.
	Effective int `json:"effective_bytes,omitempty"`
	// Clipped: the kernel's limit (net.core.wmem_max, rmem_max) is below Asked.
	Clipped bool `json:"clipped,omitempty"`
}

// String is the nominal size and the effective one, such as "128 KiB (256 KiB)", "auto (2.5 MiB)" or "4 MiB (416 KiB, limited)".
func (b Buffer) String() string {
	nominal, mark := "auto", ""
	if b.Asked > 0 {
		nominal = unit.BufferBytes.Format(float64(b.Asked))
	}
	if b.Effective == 0 {
		return nominal
	}
	if b.Clipped {
		mark = ", limited"
	}
	return nominal + " (" + unit.BufferBytes.Format(float64(b.Effective)) + mark + ")"
}

// Buffers returns both buffers of a socket with the options.
func (c *Conn) Buffers(o Options) (send, receive Buffer, err error) {
	send.Asked, receive.Asked = o.SendBuffer, o.ReceiveBuffer
	err = c.control(func(fd int) (err error) {
		if send.Effective, err = unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF); err == nil {
			receive.Effective, err = unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
		}
		return err
	})
	for _, b := range []*Buffer{&send, &receive} {
		b.Clipped = b.Effective < 2*b.Asked
	}
	return send, receive, err
}

// CongestionControl returns the name of the algorithm in use.
func (c *Conn) CongestionControl() (name string, err error) {
	err = c.control(func(fd int) (err error) {
		name, err = unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
		return err
	})
	return name, err
}

// Memory is the use of the socket's buffers, in bytes of kernel memory (SO_MEMINFO).
type Memory struct {
	// Receive and Send are in use, of ReceiveBuffer and SendBuffer.
	Receive, ReceiveBuffer, Send, SendBuffer int
}

// Memory returns the use of both buffers.
func (c *Conn) Memory() (m Memory, err error) {
	var v [9]uint32 // SK_MEMINFO_VARS; older kernels fill fewer
	err = c.control(func(fd int) error {
		return getsockopt(fd, unix.SOL_SOCKET, unix.SO_MEMINFO, unsafe.Pointer(&v), new(uint32(unsafe.Sizeof(v))))
	})
	return Memory{Receive: int(v[0]), ReceiveBuffer: int(v[1]), Send: int(v[5]), SendBuffer: int(v[3])}, err // SK_MEMINFO_RMEM_ALLOC, RCVBUF, WMEM_QUEUED, SNDBUF
}

// getsockopt reads an option of a size that the kernel chooses.
func getsockopt(fd, level, opt int, into unsafe.Pointer, size *uint32) error {
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), uintptr(level), uintptr(opt), uintptr(into), uintptr(unsafe.Pointer(size)), 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// Abort closes the connection with a reset (RST) and drops unsent data.
func (c *Conn) Abort() {
	_ = c.SetLinger(0) // it may be closed already
	_ = c.Close()
}
