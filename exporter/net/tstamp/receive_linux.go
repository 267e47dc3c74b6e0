package tstamp

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
)

// Batch is the result of a Receive, with all the memory it needs.
type Batch struct {
	// In are the packets, Tx the transmit timestamps and Errors the ICMP errors. They are valid until the Batch's next
	// use. The transmit timestamp of a packet is returned no later than the reply to it, unless the Send that sent it
	// has not returned yet: read Tx before In.
	In     []In
	Tx     []TxStamp
	Errors []ICMPError

	messageBatch messageBatch
	bytes        []byte
	each         int
	used         int // number of messages to prepare again
}

// NewBatch makes space for a number of packets of at most bytesEach bytes.
func NewBatch(packets, bytesEach int) *Batch {
	b := &Batch{
		In: make([]In, 0, packets), Tx: make([]TxStamp, 0, 4*packets), Errors: make([]ICMPError, 0, 16),
		messageBatch: newMessageBatch(packets), bytes: make([]byte, packets*bytesEach), each: bytesEach, used: packets,
	}
	for i := range packets {
		b.messageBatch.setPayload(i, b.payload(i))
	}
	return b
}

func (b *Batch) payload(i int) []byte { return b.bytes[i*b.each : (i+1)*b.each : (i+1)*b.each] }

// Receive waits for packets, transmit timestamps or errors and fills b with at
// least one of them. After Close it returns net.ErrClosed.
func (c *Conn) Receive(b *Batch) error {
	c.receiveMu.Lock()
	defer c.receiveMu.Unlock()
	c.batch, c.result = b, nil
	for {
		p := c.poll
		err := p.raw.Read(c.readBatch)
		switch {
		case c.closed.Load():
			return net.ErrClosed
		case errors.Is(err, os.ErrDeadlineExceeded):
			c.overdue()
		case err != nil && c.replaced(p, b): // at the new socket
		case err != nil:
			return fmt.Errorf("tstamp: receive: %w", err)
		default:
			return c.result
		}
	}
}

// replaced lets a running Renew finish, and reports whether it has replaced the socket of p. The caller holds receiveMu.
func (c *Conn) replaced(p *poll, b *Batch) bool {
	c.receiveMu.Unlock()
	c.renewMu.Lock()
	c.renewMu.Unlock() //nolint:staticcheck // it was held until the socket was replaced
	c.receiveMu.Lock()
	c.batch, c.result = b, nil
	return c.poll != p
}

// overdue gives up on timestamps that exceeded StampWait.
func (c *Conn) overdue() {
	c.alarm.stop()
	p := c.pending
	p.mu.Lock()
	oldest := p.expire(instant.Now().Add(-c.wait))
	p.mu.Unlock()
	if oldest != 0 {
		c.alarm.within(c.wait)
	}
}

// tryReceive is called by the runtime's poller; false makes the poller wait.
func (c *Conn) tryReceive(uintptr) (done bool) {
	c.idle.Store(false)
	b := c.batch
	b.In, b.Tx, b.Errors = b.In[:0], b.Tx[:0], b.Errors[:0]
	if c.closed.Load() {
		c.result = net.ErrClosed
		return true
	}
	if errno := c.readPackets(b); errno != 0 {
		c.result = fmt.Errorf("tstamp: receive: %w", errno)
		return true
	}
	// The error queue is read second: it has the timestamp of each packet whose reply has just been read.
	c.drainMu.Lock()
	c.drain()
	b.Errors = c.errors.popInto(b.Errors)
	c.drainMu.Unlock()
	c.pending.mu.Lock()
	b.Tx = c.pending.done.popInto(b.Tx)
	done = len(b.In)+len(b.Tx)+len(b.Errors) > 0
	c.pending.parked = !done
	c.pending.mu.Unlock()
	c.idle.Store(!done)
	return done
}

// Idle reports whether Receive waits and no packet does: Receive has returned all that arrived before this call.
func (c *Conn) Idle() bool {
	if !c.idle.Load() {
		return false
	}
	c.drainMu.Lock()
	defer c.drainMu.Unlock()
	if c.fd < 0 {
		return false
	}
	socket := [1]unix.PollFd{{Fd: int32(c.fd), Events: unix.POLLIN}} // SIOCINQ is 0 if the next packet is empty
	n, err := unix.Poll(socket[:], 0)
	return err == nil && (n == 0 || socket[0].Revents&unix.POLLIN == 0) && c.idle.Load()
}

// readPackets is one recvmmsg, repeated if it returned only the error of an earlier packet, which the error queue has
// in full.
func (c *Conn) readPackets(b *Batch) unix.Errno {
	b.messageBatch.ready(b.used)
	b.used = 0
	for range pendingErrorRetries {
		n, errno := recvmmsg(c.fd, b.messageBatch.messages, 0)
		switch {
		case errno == 0:
			b.used = n
			c.unpack(b, n)
			return 0
		case errno == unix.EAGAIN:
			return 0
		case errno != unix.EINTR && !mayBeAnothers(errno) && errno != unix.ENOMEM:
			return errno
		}
	}
	return 0
}

func (c *Conn) unpack(b *Batch, n int) {
	at := instant.Now()
	var stamps [Origins]uint64
	for i := range n {
		m := &b.messageBatch.messages[i]
		r := parseControls(b.messageBatch.control(i))
		in := In{
			Payload: b.payload(i)[:min(int(m.length), b.each)],
			Peer:    c.inZones.parseAddress(&c.socket, b.messageBatch.name(i)),
			Local:   r.local, At: at,
			Stamp: c.best(r.software, r.hardware, at),
			TTL:   r.ttl, DSCP: r.tos >> 2, ECN: r.tos & 3,
			Truncated: m.header.Flags&unix.MSG_TRUNC != 0,
		}
		if r.index != 0 { // without it the kernel refuses a reply to another than a link-local address
			in.Local = r.local.WithZone(c.inZones.name(&c.socket, r.index))
		}
		if in.Truncated {
			c.counts.truncated.Add(1)
		}
		before := len(b.In)
		b.add(in, r.segment)
		stamps[in.Stamp.Origin] += uint64(len(b.In) - before)
	}
	c.counts.received.Add(uint64(len(b.In)))
	for origin, count := range stamps {
		c.counts.rx[origin].Add(count)
	}
}

// add adds the packets of one message: one packet, or several coalesced ones, all but the last of segment bytes.
func (b *Batch) add(in In, segment int) {
	rest := in.Payload
	for segment > 0 && len(rest) > segment {
		in.Payload = rest[:segment:segment]
		b.In = append(b.In, in)
		rest = rest[segment:]
	}
	in.Payload = rest
	b.In = append(b.In, in)
}

// best returns the card's timestamp, else the kernel's, else the user-space one.
func (c *Conn) best(software, hardware, user instant.Time) sample.Stamp {
	if hardware != 0 && c.options.Hardware != nil {
		if at, ok := c.options.Hardware.System(hardware); ok {
			return sample.Stamp{At: at, Origin: sample.Hardware}
		}
	}
	if software != 0 {
		return sample.Stamp{At: software, Origin: sample.Kernel}
	}
	return sample.Stamp{At: user, Origin: sample.User}
}

// drain reads the error queue while there is space, and reports whether it is empty. The caller holds drainMu: later
// readers of the queues find everything that it read.
func (c *Conn) drain() (empty bool) {
	for c.pending.hasSpace() {
		n, errno := recvmmsg(c.fd, c.queue.messages, unix.MSG_ERRQUEUE)
		if errno == unix.EINTR {
			continue
		}
		if errno != 0 {
			return errno == unix.EAGAIN // ENOMEM: the messages stay on the queue
		}
		c.pending.mu.Lock()
		for i := range n {
			c.sort(i)
		}
		if n < queueBatch {
			c.pending.report()
		}
		c.pending.mu.Unlock()
		c.queue.ready(n)
		if n < queueBatch {
			return true
		}
	}
	return false
}

// Stamps appends the transmit timestamps available now, up to into's capacity, without waiting: Receive does not return
// them again.
func (c *Conn) Stamps(into []TxStamp) []TxStamp {
	c.drainMu.Lock()
	if c.fd >= 0 {
		c.drain()
	}
	c.drainMu.Unlock()
	c.pending.mu.Lock()
	defer c.pending.mu.Unlock()
	return c.pending.done.popInto(into)
}

// sort handles message i of the error queue.
func (c *Conn) sort(i int) {
	q := parseControls(c.queue.control(i))
	switch q.Origin {
	case unix.SO_EE_ORIGIN_TIMESTAMPING:
		switch stamp := c.best(q.software, q.hardware, 0); {
		case q.Info == unix.SCM_TSTAMP_SCHED:
			c.pending.setMarkedNumber(q.Data)
		case q.Info == unix.SCM_TSTAMP_SND && stamp.At != 0:
			c.pending.match(q.Data, stamp)
		}
	case unix.SO_EE_ORIGIN_ICMP, unix.SO_EE_ORIGIN_ICMP6:
		// Send reported the rest, SO_EE_ORIGIN_LOCAL.
		c.errors.push(c.icmpError(i, &q))
	}
}

// beginning is the first bytes of a payload, padded with zeros.
type beginning [16]byte

// recent contains the first bytes of the last packets: an ICMP message quotes its packet, and the kernel returns the
// payload's part of the quotation, without a number of the packet.
type recent struct {
	packets [1 << 12]struct {
		begins beginning
		cookie uint64
	}
	next uint
}

func (r *recent) add(payload []byte, cookie uint64) {
	at := &r.packets[r.next%uint(len(r.packets))]
	at.begins, at.cookie = beginning{}, cookie
	copy(at.begins[:], payload)
	r.next++
}

// find returns the cookie of the packets that begin with the quote, if all have the same one.
func (r *recent) find(quote []byte) (cookie uint64, found bool) {
	if len(quote) == 0 {
		return 0, false
	}
	var wanted beginning
	copy(wanted[:], quote)
	for i := range min(r.next, uint(len(r.packets))) {
		p := &r.packets[i]
		switch {
		case p.begins != wanted:
		case found && p.cookie != cookie:
			return 0, false
		default:
			cookie, found = p.cookie, true
		}
	}
	return cookie, found
}

// icmpError decodes message i of the error queue.
func (c *Conn) icmpError(i int, q *controls) ICMPError {
	e := ICMPError{
		Peer: c.queueZones.parseAddress(&c.socket, c.queue.name(i)), Offender: c.queueZones.parseAddress(&c.socket, q.offender).Addr(),
		Type: q.Type, Code: q.Code, Err: syscall.Errno(q.Errno),
	}
	if e.Err == unix.EMSGSIZE {
		e.MTU = int(q.Info)
	}
	quote := c.quotes[i][:min(int(c.queue.messages[i].length), len(c.quotes[i]))]
	e.Cookie, e.Matched = c.pending.recent.find(quote)
	return e
}
