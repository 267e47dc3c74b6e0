package tstamp

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Conn is a UDP socket with time stamps. Send and Receive may run at the same
// time; concurrent Sends are serialised, and so are concurrent Receives.
//
// Locks are taken in the order sendMu or receiveMu, drainMu, pending.mu.
type Conn struct {
	fd    int // guarded by sendMu, receiveMu or drainMu: Close takes them all
	v6    bool
	local netip.AddrPort
	hw    HardwareClock
	setup setup
	// poll is an epoll descriptor that holds only the socket. The runtime's own
	// epoll watches that one instead of the socket for two reasons: the runtime
	// takes an event of nothing but EPOLLERR, which a transmit stamp is while
	// the send buffer is full, for a broken descriptor; and it would be woken
	// for each packet that leaves the send buffer.
	poll *os.File
	raw  syscall.RawConn

	closed atomic.Bool
	alarm  alarm
	wait   time.Duration // StampWait, but in tests

	sendMu     sync.Mutex
	out        mail
	outZones   zones
	manner     Manner // of the last send
	discovery  int    // the system's own IP_MTU_DISCOVER, once the manner has been another
	suspect    bool   // the kernel's count of stamps may not be ours
	drainAbove int    // stamps outstanding at which Send drains the error queue

	receiveMu sync.Mutex
	inZones   zones
	batch     *Batch             // of the Receive that runs
	result    error              // of readBatch
	readBatch func(uintptr) bool // tryReceive; made once, since a method value allocates

	drainMu    sync.Mutex
	queue      mail
	queueZones zones
	errors     ring[PeerError]
	drops      dropCount

	pending *pending
	counts  counts
}

// counts is the part of Stats kept by Send and Receive.
type counts struct {
	sent, sendErrors, received, truncated, drops atomic.Uint64
	rx                                           [Origins]atomic.Uint64
}

const (
	sendBatch = 64
	// stampBytes is what the kernel charges for a queued stamp without payload,
	// rounded up (struct sk_buff and its smallest head).
	stampBytes = 1024
	doneRoom   = 1 << 14
)

// Open makes a socket bound to local, of its address family. An unspecified
// address and port 0 are allowed; an IPv6 socket takes IPv6 only.
func Open(local netip.AddrPort, o Options) (*Conn, error) {
	if !local.Addr().IsValid() {
		return nil, errors.New("tstamp: no local address")
	}
	c := &Conn{v6: local.Addr().Unmap().Is6(), hw: o.Hardware, fd: -1, wait: StampWait}
	if err := c.open(local, o); err != nil {
		if c.fd >= 0 {
			_ = unix.Close(c.fd)
		}
		c.drops.kernel.Close()
		return nil, fmt.Errorf("tstamp: open %v: %w", local, err)
	}
	c.out, c.queue = newMail(sendBatch), newMail(queueBatch)
	c.queue.ready(queueBatch)
	c.errors = newRing[PeerError](64)
	// A slot for every packet that can be in the send buffer or the error queue.
	slots := (c.setup.receiveBytes + c.setup.sendBytes) / stampBytes
	c.drainAbove = max(sendBatch, c.setup.receiveBytes/stampBytes/4)
	c.pending = newPending(min(max(slots, 1024), 1<<16), doneRoom, c.setup.hardware)
	c.readBatch = c.tryReceive
	return c, nil
}

func (c *Conn) open(local netip.AddrPort, o Options) error {
	family := unix.AF_INET
	if c.v6 {
		family = unix.AF_INET6
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.IPPROTO_UDP)
	if err != nil {
		return fmt.Errorf("socket: %w", err)
	}
	c.fd = fd
	if c.setup, err = configure(fd, c.v6, o); err != nil {
		return err
	}
	if err := unix.Bind(fd, sockaddr(local, &c.outZones)); err != nil {
		return fmt.Errorf("bind: %w", err)
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		return fmt.Errorf("getsockname: %w", err)
	}
	switch s := name.(type) {
	case *unix.SockaddrInet4:
		c.local = netip.AddrPortFrom(netip.AddrFrom4(s.Addr), uint16(s.Port))
	case *unix.SockaddrInet6:
		c.local = netip.AddrPortFrom(netip.AddrFrom16(s.Addr).WithZone(local.Addr().Zone()), uint16(s.Port))
	}
	c.drops.begin()
	return c.watch()
}

// watch hands the socket to the runtime's poller, through an epoll of our own.
func (c *Conn) watch() error {
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return fmt.Errorf("epoll_create1: %w", err)
	}
	event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(c.fd)} // errors are always reported
	if err := unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, c.fd, &event); err != nil {
		return errors.Join(fmt.Errorf("epoll_ctl: %w", err), unix.Close(ep))
	}
	if err := unix.SetNonblock(ep, true); err != nil { // or the runtime would not poll it
		return errors.Join(fmt.Errorf("fcntl: %w", err), unix.Close(ep))
	}
	c.poll = os.NewFile(uintptr(ep), "tstamp")
	c.alarm.file = c.poll
	c.raw, err = c.poll.SyscallConn()
	if err != nil {
		return errors.Join(err, c.poll.Close())
	}
	return nil
}

func sockaddr(a netip.AddrPort, z *zones) unix.Sockaddr {
	if ip := a.Addr().Unmap(); ip.Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: ip.As4()}
	}
	s := &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
	if zone := a.Addr().Zone(); zone != "" {
		s.ZoneId = z.index(zone)
	}
	return s
}

// LocalAddr is the address bound to, with the port that the kernel chose.
func (c *Conn) LocalAddr() netip.AddrPort { return c.local }

// Close frees the socket. A Receive under way, and all that follow, return
// net.ErrClosed, as does a second Close.
func (c *Conn) Close() error {
	if c.closed.Swap(true) {
		return net.ErrClosed
	}
	err := c.poll.Close() // sends a waiting Receive away
	c.sendMu.Lock()
	defer c.sendMu.Unlock()
	c.receiveMu.Lock()
	defer c.receiveMu.Unlock()
	c.drainMu.Lock()
	defer c.drainMu.Unlock()
	c.counts.drops.Store(c.drops.read(c.fd, true))
	c.drops.kernel.Close()
	if e := unix.Close(c.fd); err == nil {
		err = e
	}
	c.fd = -1
	if err != nil {
		return fmt.Errorf("tstamp: close: %w", err)
	}
	return nil
}

// Stats returns the counts so far; also after Close.
func (c *Conn) Stats() Stats {
	c.drainMu.Lock()
	if c.fd >= 0 {
		c.counts.drops.Store(c.drops.read(c.fd, false))
	}
	c.drainMu.Unlock()
	s := Stats{
		Sent: c.counts.sent.Load(), SendErrors: c.counts.sendErrors.Load(),
		Received: c.counts.received.Load(), Truncated: c.counts.truncated.Load(),
		Dropped:            c.counts.drops.Load(),
		ReceiveBufferBytes: c.setup.receiveBytes, SendBufferBytes: c.setup.sendBytes,
		ExactIDs: c.setup.exactIDs,
	}
	for i := range s.RxStamps {
		s.RxStamps[i] = c.counts.rx[i].Load()
	}
	p := c.pending
	p.mu.Lock()
	defer p.mu.Unlock()
	s.TxStamps, s.TxMissing, s.TxRejected = p.txStamps, p.missing, p.rejected
	return s
}
