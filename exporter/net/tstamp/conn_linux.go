package tstamp

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"oneway.example/exporter/net/kernelcounts"
)

// Conn is a UDP socket with timestamps. Send and Receive may run concurrently; concurrent Sends are serialized, and so
// are concurrent Receives.
//
// Locks are taken in the order sendMu or receiveMu, drainMu, pending.mu.
type Conn struct {
	fd    int // guarded by sendMu, receiveMu or drainMu: Close takes them all
	v6    bool
	local netip.AddrPort
	hw    HardwareClock
	setup setup
	poll  poll

	closed atomic.Bool
	alarm  alarm
	wait   time.Duration // StampWait, except in tests
	delay  time.Duration // StampDelay, except in tests

	sendMu      sync.Mutex
	out         messageBatch
	outZones    zones
	sendOptions SendOptions // of the last send
	suspect     bool        // a send failed: see pending.stamping

	receiveMu sync.Mutex
	inZones   zones
	batch     *Batch             // of the running Receive
	result    error              // of readBatch
	readBatch func(uintptr) bool // tryReceive; made once, since a method value allocates
	idle      atomic.Bool        // Receive waits

	drainMu    sync.Mutex
	queue      messageBatch
	queueZones zones
	quotes     [queueBatch]beginning // the packets that ICMP errors quote
	errors     ring[ICMPError]
	drops      dropCount

	pending *pending
	counts  counts
}

// counts is the part of Stats kept by Send and Receive.
type counts struct {
	sent, sendErrors, received, truncated atomic.Uint64
	rx                                    [Origins]atomic.Uint64
}

const (
	sendBatch = 64
	// stampBytes is what the kernel charges for a queued timestamp without payload, rounded up (struct sk_buff and its
	// smallest head).
	stampBytes = 1024
	doneSpace  = 1 << 14
)

// Open makes a socket bound to local, of its address family. An unspecified address and port 0 are allowed; an IPv6
// socket accepts IPv6 only.
func Open(local netip.AddrPort, o Options) (*Conn, error) {
	if !local.Addr().IsValid() {
		return nil, errors.New("tstamp: no local address")
	}
	c := &Conn{v6: local.Addr().Unmap().Is6(), hw: o.Hardware, fd: -1, wait: StampWait, delay: StampDelay}
	if err := c.open(local, o); err != nil {
		if c.fd >= 0 {
			_ = unix.Close(c.fd)
		}
		c.drops.kernel.Close()
		return nil, fmt.Errorf("tstamp: open %v: %w", local, err)
	}
	c.out, c.queue = newMessageBatch(sendBatch), newMessageBatch(queueBatch)
	for i := range c.quotes {
		c.queue.setPayload(i, c.quotes[i][:])
	}
	c.queue.ready(queueBatch)
	c.errors = newRing[ICMPError](64)
	// One slot for each packet that the send buffer or the error queue can contain.
	slots := (c.setup.receiveBytes + c.setup.sendBytes) / stampBytes
	c.pending = newPending(min(max(slots, 1024), 1<<16), doneSpace, c.setup.hardware)
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
	if err := c.poll.open(fd); err != nil {
		return err
	}
	c.alarm.file = c.poll.file
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

// Close frees the socket. A running Receive, and all later calls, return net.ErrClosed, as does a second Close.
func (c *Conn) Close() error {
	if c.closed.Swap(true) {
		return net.ErrClosed
	}
	err := c.poll.file.Close() // wakes a waiting Receive
	c.sendMu.Lock()
	defer c.sendMu.Unlock()
	c.receiveMu.Lock()
	defer c.receiveMu.Unlock()
	c.drainMu.Lock()
	defer c.drainMu.Unlock()
	c.drops.read(c.fd, true)
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

// Stats returns the counts so far. It works after Close, too.
func (c *Conn) Stats() Stats {
	c.drainMu.Lock()
	if c.fd >= 0 {
		c.drops.read(c.fd, false)
	}
	dropped := c.drops.total
	c.drainMu.Unlock()
	s := Stats{
		Sent: c.counts.sent.Load(), SendErrors: c.counts.sendErrors.Load(),
		Received: c.counts.received.Load(), Truncated: c.counts.truncated.Load(),
		Dropped:            dropped,
		ReceiveBufferBytes: c.setup.receiveBytes, SendBufferBytes: c.setup.sendBytes,
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

// setup is what the kernel granted a socket.
type setup struct {
	receiveBytes, sendBytes int
	stamps                  int // the flags of SO_TIMESTAMPING; 0: no kernel timestamps
	hardware                bool
	discovery               int // the system's default IP_MTU_DISCOVER
}

// configure sets all options of a new socket.
func configure(fd int, v6 bool, o Options) (s setup, err error) {
	if o.Device != "" {
		if err := unix.BindToDevice(fd, o.Device); err != nil {
			return s, explainDevice(o.Device, err)
		}
	}
	if v6 {
		if err := unix.SetsockoptInt(fd, unix.SOL_IPV6, unix.IPV6_V6ONLY, 1); err != nil {
			return s, fmt.Errorf("IPV6_V6ONLY: %w", err)
		}
	}
	if s.receiveBytes, err = buffer(fd, o.ReceiveBufferBytes, unix.SO_RCVBUFFORCE, unix.SO_RCVBUF); err != nil {
		return s, err
	}
	if s.sendBytes, err = buffer(fd, o.SendBufferBytes, unix.SO_SNDBUFFORCE, unix.SO_SNDBUF); err != nil {
		return s, err
	}
	level, discover := discovery(v6)
	wanted := []int{unix.IP_PKTINFO, unix.IP_RECVTTL, unix.IP_RECVTOS, unix.IP_RECVERR}
	if v6 {
		wanted = []int{unix.IPV6_RECVPKTINFO, unix.IPV6_RECVHOPLIMIT, unix.IPV6_RECVTCLASS, unix.IPV6_RECVERR}
	}
	for _, option := range wanted {
		if err := unix.SetsockoptInt(fd, level, option, 1); err != nil {
			return s, fmt.Errorf("socket option %d of level %d: %w", option, level, err)
		}
	}
	if !o.UserTimestamps {
		s.enableStamps(fd, o.Hardware != nil)
	}
	if s.discovery, err = unix.GetsockoptInt(fd, level, discover); err != nil {
		return s, fmt.Errorf("path MTU discovery: %w", err)
	}
	return s, nil
}

// explainDevice adds the remedy to an error of SO_BINDTODEVICE.
func explainDevice(name string, err error) error {
	advice := ""
	switch {
	case errors.Is(err, unix.ENODEV), errors.Is(err, unix.EINVAL): // EINVAL: the name is too long
		advice = ": want the name of an interface or a VRF of this network namespace, as `ip link` shows it"
	case errors.Is(err, unix.EPERM):
		advice = ": before Linux 5.7 this needs CAP_NET_RAW"
	}
	return fmt.Errorf("bind to device %q: %w%s", name, err, advice)
}

// discovery returns the socket option of path MTU discovery.
func discovery(v6 bool) (level, option int) {
	if v6 {
		return unix.SOL_IPV6, unix.IPV6_MTU_DISCOVER
	}
	return unix.SOL_IP, unix.IP_MTU_DISCOVER
}

// buffer sets a buffer size, beyond the system's limit if the process may (CAP_NET_ADMIN), and reads back what the
// kernel granted: the kernel clips silently at the limit.
func buffer(fd, bytes, force, option int) (granted int, err error) {
	bytes = cmp.Or(bytes, DefaultBufferBytes)
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, force, bytes) != nil {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, option, bytes); err != nil {
			return 0, fmt.Errorf("buffer of %d bytes: %w", bytes, err)
		}
	}
	if granted, err = unix.GetsockoptInt(fd, unix.SOL_SOCKET, option); err != nil {
		return 0, fmt.Errorf("buffer size: %w", err)
	}
	return granted, nil
}

// The flags of SO_TIMESTAMPING. OPT_TSONLY keeps the packet itself off the error queue: less memory, and no privilege
// required.
const (
	softwareFlags = unix.SOF_TIMESTAMPING_TX_SOFTWARE | unix.SOF_TIMESTAMPING_RX_SOFTWARE |
		unix.SOF_TIMESTAMPING_SOFTWARE | unix.SOF_TIMESTAMPING_OPT_ID | unix.SOF_TIMESTAMPING_OPT_TSONLY
	hardwareFlags = softwareFlags | unix.SOF_TIMESTAMPING_TX_HARDWARE | unix.SOF_TIMESTAMPING_RX_HARDWARE |
		unix.SOF_TIMESTAMPING_RAW_HARDWARE | unix.SOF_TIMESTAMPING_OPT_TX_SWHW
	// markFlags are the flags of a marked packet in addition to the socket's.
	markFlags = unix.SOF_TIMESTAMPING_TX_SCHED
	// packetFlags can be set for each packet (Linux 4.6).
	packetFlags = unix.SOF_TIMESTAMPING_TX_SOFTWARE | unix.SOF_TIMESTAMPING_TX_HARDWARE
)

// enableStamps enables the timestamps that the kernel offers (SO_TIMESTAMPING_NEW, Linux 5.1).
func (s *setup) enableStamps(fd int, hardware bool) {
	for _, flags := range []int{hardwareFlags, softwareFlags} {
		if (hardware || flags == softwareFlags) && unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPING_NEW, flags) == nil {
			s.stamps, s.hardware = flags, flags == hardwareFlags
			return
		}
	}
}

// dropCount counts packets that the kernel dropped at a socket because its buffer was full.
//
// The socket's own counter includes packets with a wrong UDP checksum (udp_queue_rcv_one_skb of Linux's
// net/ipv4/udp.c), which the path damaged. So dropCount is limited to the number that the whole host dropped for lack
// of buffer in the same time.
type dropCount struct {
	kernel kernelcounts.Files
	// before is the host's count when it was last read, at time at.
	before uint64
	known  bool
	at     time.Time
	raw    uint32 // the socket's count at that time
	total  uint64
}

// dropsEvery is the shortest interval between readings of the host's counts while a socket drops packets: a reading
// takes some 0.1 ms.
const dropsEvery = 20 * time.Millisecond

// begin must run in the socket's network namespace.
func (d *dropCount) begin() {
	d.kernel = kernelcounts.Open()
	now := d.kernel.Read()
	d.before, d.known = now.NoBuffer, now.Known
}

// read updates total, which may lag by dropsEvery unless last is set.
func (d *dropCount) read(fd int, last bool) {
	raw, err := drops(fd)
	if err != nil || raw == d.raw {
		return
	}
	at := time.Now()
	if at.Sub(d.at) < dropsEvery && !last {
		return
	}
	n := uint64(raw - d.raw)
	if now := d.kernel.Read(); d.known && now.Known {
		n = min(n, kernelcounts.Since(now.NoBuffer, d.before))
		d.before = now.NoBuffer
	}
	d.raw, d.at = raw, at
	d.total += n
}

// drops reads how many packets the kernel dropped at the socket: the counter that SO_RXQ_OVFL attaches to packets, but
// current even if no more packets arrive (SO_MEMINFO, Linux 4.12).
func drops(fd int) (uint32, error) {
	const dropped = 8 // SK_MEMINFO_DROPS (linux/sock_diag.h)
	var info [dropped + 1]uint32
	length := uint32(unsafe.Sizeof(info))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_MEMINFO,
		uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&length)), 0)
	if errno != 0 {
		return 0, errno
	}
	return info[dropped], nil
}
