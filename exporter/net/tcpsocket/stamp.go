package tcpsocket

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"oneway.example/exporter/core/instant"
)

// StampKind is what happened to a byte of the stream at the time of a stamp. The values are those of linux/errqueue.h.
type StampKind uint8

// The kinds. A segment that is sent again has a further Scheduled and Left stamp each time, with its offset. Stamps arrive in
// the order of their times.
const (
	Left      StampKind = unix.SCM_TSTAMP_SND
	Scheduled StampKind = unix.SCM_TSTAMP_SCHED
	Acked     StampKind = unix.SCM_TSTAMP_ACK
)

// Want is a set of stamps.
type Want uint32

// The stamps that a write can ask for.
const (
	WantLeft      Want = unix.SOF_TIMESTAMPING_TX_SOFTWARE
	WantScheduled Want = unix.SOF_TIMESTAMPING_TX_SCHED
	WantAcked     Want = unix.SOF_TIMESTAMPING_TX_ACK
)

// Stamp is the time of an event of one byte of the stream.
type Stamp struct {
	Kind StampKind
	// Offset is the number of bytes since EnableStamps up to the byte, itself included.
	Offset int64
	At     instant.Time
	// Early of an Acked stamp is how much earlier the acknowledgment may have arrived: it waited in the socket's backlog
	// while a system call held the socket.
	Early time.Duration
	// Through, of an Acked stamp, is the number of bytes of the connection that were acknowledged then, if Known (Linux
	// 5.10). All stamps of one acknowledgment have the same; the kernel takes their times one after another, 2 us apart.
	Through int64
	Known   bool
}

// stamper is the state of a connection with stamps, of the goroutine that writes, except busy.
type stamper struct {
	take func(Stamp)

	// Of WriteStamped and Finish.
	rest   []byte
	waited bool
	err    error
	want   Want
	flags  int
	send   func(fd uintptr) bool
	finish func(fd uintptr) bool
	out    packet

	written     int64 // bytes
	asked, told int64 // the last offset that was to be stamped, and the highest that was Acked
	closed      bool  // for sending
	last        call
	put         int64 // bytes that the socket took in last
	excess      int64 // of controls.through
	queue       packet
	drain       func(fd uintptr)
	busy        busy
}

// call is the time of a system call that held the socket.
type call struct{ begin, end instant.Time }

// busy is the time of the last call of another goroutine that held the socket: that of Info.
type busy struct{ begin, end atomic.Int64 }

func (b *busy) start() { b.begin.Store(int64(instant.Now())) }
func (b *busy) stop()  { b.end.Store(int64(instant.Now())) }

// early returns how long before at the call began; 0 if at is not within the call.
func (b *busy) early(at instant.Time) time.Duration {
	begin, end := instant.Time(b.begin.Load()), instant.Time(b.end.Load())
	if end < begin { // it has not returned
		end = at
	}
	return call{begin, end}.early(at)
}

func (c call) early(at instant.Time) time.Duration {
	if at < c.begin || at > c.end {
		return 0
	}
	return at.Sub(c.begin)
}

const (
	// socketFlags of SO_TIMESTAMPING. OPT_TSONLY keeps payload off the error queue; OPT_STATS, which needs it, gives
	// what an acknowledgment covers.
	socketFlags = unix.SOF_TIMESTAMPING_SOFTWARE | unix.SOF_TIMESTAMPING_RX_SOFTWARE | unix.SOF_TIMESTAMPING_OPT_ID |
		unix.SOF_TIMESTAMPING_OPT_TSONLY | unix.SOF_TIMESTAMPING_OPT_STATS
	// optIDTCP (Linux 6.2) starts the keys at the next byte that is written. Without it they start at the first
	// unacknowledged one, which is the same as long as nothing was written.
	optIDTCP = unix.SOF_TIMESTAMPING_OPT_ID_TCP
)

// EnableStamps enables timestamps for WriteStamped and ReadStamped. It must be called before any byte is written; bytes of
// Write and WriteMessage count too. take gets the stamps, in calls of WriteStamped, Drain and Finish; a connection that only
// reads needs none. After an error its calls work as before.
func (c *Conn) EnableStamps(take func(Stamp)) error {
	return c.control(func(fd int) error {
		err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPING_NEW, socketFlags|optIDTCP)
		if err == unix.EINVAL {
			err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPING_NEW, socketFlags)
		}
		if err != nil {
			return fmt.Errorf("set SO_TIMESTAMPING_NEW: %w", err)
		}
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_INQ, 1); err != nil {
			return fmt.Errorf("set TCP_INQ: %w", err)
		}
		if take != nil {
			_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, queueBytes) // as much of it as the host permits
		}
		c.stamps = newStamper(take)
		c.reads = newReader()
		return nil
	})
}

// queueBytes is space for stamps that wait: the kernel charges them to the receive buffer, some 1 kB each, and drops them
// without a count when that is full. With that of a new connection (net.ipv4.tcp_rmem) these are some 130, which a burst of
// segments has while the process does not run.
const queueBytes = 1 << 20

func newStamper(take func(Stamp)) *stamper {
	s := &stamper{take: take}
	s.out.init()
	s.queue.init()
	s.send = s.tryPut
	s.finish = s.tryFinish
	s.drain = s.drainAll
	return s
}

// WriteStamped is WriteMessage that asks for stamps of the last byte of b: those of want and, if there are any, Acked. record
// keeps the bytes that follow out of its segment (MSG_EOR). Stamps of earlier writes are taken meanwhile, and EnableStamps' take
// gets those of an acknowledgment that came during a write right after it.
//
// A write that the socket takes in parts has stamps of the last byte of each part too; they are true of their offset. A
// byte may have no stamps: a segment, of up to 64 kB before it is split, has one key, that of the last write that
// asked.
func (c *Conn) WriteStamped(b []byte, want Want, record bool) (n int, waited bool, err error) {
	s := c.stamps
	s.rest, s.waited, s.err, s.want = b, false, nil, want
	s.flags = unix.MSG_DONTWAIT | unix.MSG_NOSIGNAL
	if record {
		s.flags |= unix.MSG_EOR
	}
	err = c.raw.Write(s.send)
	if err == nil && s.err != nil {
		err = fmt.Errorf("tcpsocket: write: %w", s.err)
	}
	return len(b) - len(s.rest), s.waited, err
}

func (s *stamper) tryPut(fd uintptr) bool {
	if s.waited { // a stamp wakes too
		if s.drainAll(fd); !writable(fd) {
			return false
		}
	}
	for len(s.rest) > 0 {
		s.out.request(s.rest, s.want)
		s.last.begin = instant.Now()
		n, errno := s.out.send(fd, s.flags)
		s.last.end = instant.Now()
		s.put = int64(n)
		if errno == 0 {
			s.rest = s.rest[n:]
			s.written += int64(n)
			if s.want != 0 {
				s.asked = s.written
			}
		}
		if s.asked > s.told {
			s.drainAll(fd)
		}
		switch errno {
		case 0, unix.EINTR:
		case unix.EAGAIN:
			s.waited = true
			return false
		default:
			s.err = errno
			return true
		}
	}
	return true
}

// writable reports whether a write is due: a third of the send buffer is free, or the connection has ended. A write takes less
// free space, so one at each stamp would fill the buffer otherwise than a connection without stamps does.
func writable(fd uintptr) bool {
	p := [...]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
	_, err := unix.Poll(p[:], 0)
	return err != nil || p[0].Revents&^unix.POLLERR != 0
}

// Finish closes the sending direction and waits until the peer, which has then read all, has closed its own. It takes
// stamps meanwhile.
//
// It waits as a writer: a stamp alone wakes a waiting reader with an error of the poller (internal/poll
// ErrNotPollable), but each event of a socket that is closed for sending says that it is writable.
func (c *Conn) Finish() error {
	s := c.stamps
	s.err = nil
	err := c.control(func(fd int) error {
		s.drainAll(uintptr(fd))
		s.closed, s.put = true, 0
		s.last.begin = instant.Now()
		err := unix.Shutdown(fd, unix.SHUT_WR)
		s.last.end = instant.Now()
		return err
	})
	if err == nil {
		err = c.raw.Write(s.finish)
	}
	if err == nil && s.err != nil {
		err = fmt.Errorf("tcpsocket: wait for the end: %w", s.err)
	}
	return err
}

func (s *stamper) tryFinish(fd uintptr) bool {
	s.drainAll(fd)
	var b byte
	s.last.begin = instant.Now()
	n, _, errno := unix.Syscall6(unix.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(&b)), 1, unix.MSG_DONTWAIT, 0, 0)
	s.last.end = instant.Now()
	s.drainAll(fd)
	switch {
	case errno == unix.EAGAIN, errno == unix.EINTR:
		return false
	case errno != 0:
		s.err = errno
	case n > 0:
		s.err = syscall.EPROTO // the peer sends in the wrong direction
	}
	return true
}

// Drain takes the stamps that are there. It does not wait.
func (c *Conn) Drain() error { return c.raw.Control(c.stamps.drain) }

func (s *stamper) drainAll(fd uintptr) {
	for {
		_, control, errno := s.queue.receive(fd, nil, unix.MSG_ERRQUEUE|unix.MSG_DONTWAIT)
		if errno == unix.EINTR {
			continue
		}
		if errno != 0 {
			return
		}
		m := parseControls(control)
		if m.origin != unix.SO_EE_ORIGIN_TIMESTAMPING || m.at == 0 || m.kind > uint32(Acked) || s.take == nil {
			continue
		}
		t := Stamp{Kind: StampKind(m.kind), Offset: unwrap(s.written, m.key) + 1, At: m.at}
		if t.Kind == Acked {
			t.Early = max(s.last.early(t.At), s.busy.early(t.At))
			t.Through, t.Known = s.through(&m, &t)
			s.told = max(s.told, t.Offset)
		}
		s.take(t)
	}
}

// through returns Stamp.Through. The kernel counts a segment twice, and not as sent again, that the packet scheduler of this host
// has refused (NET_XMIT_DROP) and that is then sent: its counts have an excess, which grows. They are needed during a call only:
// before and after, the number of bytes written is known, and with it the excess.
func (s *stamper) through(m *controls, t *Stamp) (n int64, known bool) {
	n, queue, known := m.through(s.closed)
	least, most := s.written-s.put-queue, s.written-queue
	if s.closed && queue > 0 { // the FIN is in the queue
		least, most = least+1, most+1
	}
	switch {
	case t.At < s.last.begin:
		s.excess = n - least
	case t.At > s.last.end:
		s.excess = n - most
	}
	return max(t.Offset, min(max(n-s.excess, least), most)), known
}

// unwrap returns the number next to near that has the low 32 bits.
func unwrap(near int64, low uint32) int64 { return near + int64(int32(low-uint32(near))) }

// packet is the argument of sendmsg and recvmsg. It must not move after init.
type packet struct {
	header  unix.Msghdr
	vector  unix.Iovec
	control [controlBytes / 8]uint64 // aligned as cmsghdr requires
}

// controlBytes is space for a timestamp 64, an extended error with an address of IPv6 64, OPT_STATS 16 and 12 to 16 for
// each of its about 27 attributes.
const controlBytes = 1024

func (p *packet) init() {
	p.header.Iov = &p.vector
	p.header.SetIovlen(1)
	p.header.Control = (*byte)(unsafe.Pointer(&p.control[0]))
}

func (p *packet) bytes() []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(&p.control[0])), controlBytes)
}

// request prepares a send of b. SO_TIMESTAMPING is the name of the old format: kernels did not know the new one in this
// place before 6.8, and it has no times.
func (p *packet) request(b []byte, want Want) {
	p.vector.Base = unsafe.SliceData(b)
	p.vector.SetLen(len(b))
	p.header.SetControllen(0)
	if want == 0 {
		return
	}
	h := (*unix.Cmsghdr)(unsafe.Pointer(&p.control[0]))
	h.Level, h.Type = unix.SOL_SOCKET, unix.SO_TIMESTAMPING
	h.SetLen(unix.CmsgLen(4))
	binary.NativeEndian.PutUint32(p.bytes()[unix.CmsgLen(0):], uint32(want|WantAcked))
	p.header.SetControllen(unix.CmsgSpace(4))
}

func (p *packet) send(fd uintptr, flags int) (int, unix.Errno) {
	n, _, errno := unix.Syscall(unix.SYS_SENDMSG, fd, uintptr(unsafe.Pointer(&p.header)), uintptr(flags))
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}
