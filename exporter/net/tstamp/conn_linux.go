package tstamp

import (
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
// Locks are taken in the order renewMu, sendMu or receiveMu, drainMu, pending.mu.
type Conn struct {
	v6      bool
	options Options
	asked   netip.AddrPort // the address of Open
	// renewMu is held while Close or Renew replaces what follows, which needs sendMu, receiveMu and drainMu, too. To read
	// it, one of them suffices.
	renewMu sync.Mutex
	socket

	closed atomic.Bool
	alarm  alarm
	wait   time.Duration // StampWait, except in tests
	delay  time.Duration // StampDelay, except in tests

	sendMu      sync.Mutex
	out         messageBatch
	outZones    zones
	coalescing  bool
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
	c := &Conn{v6: local.Addr().Unmap().Is6(), options: o, asked: local, wait: StampWait, delay: StampDelay}
	var err error
	if c.socket, err = openSocket(local, o); err != nil {
		return nil, err
	}
	c.alarm.file = c.poll.file
	c.drops.begin()
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

// LocalAddr is the address bound to, with the port that the kernel chose.
func (c *Conn) LocalAddr() netip.AddrPort {
	c.drainMu.Lock()
	defer c.drainMu.Unlock()
	return c.local
}

// Close frees the socket. A running Receive, and all later calls, return net.ErrClosed, as does a second Close.
func (c *Conn) Close() error {
	if c.closed.Swap(true) {
		return net.ErrClosed
	}
	c.renewMu.Lock()
	defer c.renewMu.Unlock()
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
	dropped, granted := c.drops.total, c.setup
	c.drainMu.Unlock()
	s := Stats{
		Sent: c.counts.sent.Load(), SendErrors: c.counts.sendErrors.Load(),
		Received: c.counts.received.Load(), Truncated: c.counts.truncated.Load(),
		Dropped:            dropped,
		ReceiveBufferBytes: granted.receiveBytes, SendBufferBytes: granted.sendBytes,
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
		// The host's count may include what the socket has dropped since its own was read: the next reading counts it.
		if later, err := drops(fd); err == nil {
			d.before -= min(d.before, uint64(later-raw))
		}
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
