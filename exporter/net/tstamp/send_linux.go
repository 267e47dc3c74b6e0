package tstamp

import (
	"encoding/binary"
	"fmt"
	"net"

	"golang.org/x/sys/unix"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
)

// pendingErrorRetries limits how often a packet is sent again after what may have been another packet's error.
const pendingErrorRetries = 3

// Send passes packets to the kernel, in order, and sets their At. It never blocks. If err is not nil, the kernel
// accepted the first sent packets and refused out[sent]; err wraps the reason, a syscall.Errno (EAGAIN and ENOBUFS: the
// send buffer is full). The packets after it were not tried. After Close err is net.ErrClosed. This host may still drop
// an accepted packet.
func (c *Conn) Send(out []Out) (sent int, err error) { return c.SendAs(SendOptions{}, out) }

// SendAs is Send with options of its own. The options stay set on the socket until the next call: callers with
// different options cost each other a system call or two each time.
func (c *Conn) SendAs(m SendOptions, out []Out) (sent int, err error) {
	c.sendMu.Lock()
	defer c.sendMu.Unlock()
	if m != c.sendOptions && !c.closed.Load() {
		if err := c.adopt(m); err != nil {
			return 0, err
		}
	}
	if c.setup.stamps != 0 && !m.Unstamped {
		c.poll.watch(false)
		defer c.poll.watch(true)
	}
	retries := 0
	for sent < len(out) {
		if c.closed.Load() {
			return sent, net.ErrClosed
		}
		n, errno := c.sendSome(out[sent:min(len(out), sent+sendBatch)])
		sent += n
		if n > 0 {
			retries = 0
		}
		if errno == 0 || errno == unix.EINTR {
			continue
		}
		// An ICMP error for an earlier packet, to any peer, is stored with the socket and reported by the next call,
		// once. An error of this packet itself is repeated.
		if mayBeAnothers(errno) && retries < pendingErrorRetries {
			retries++
			continue
		}
		c.counts.sendErrors.Add(1)
		c.outZones.forget()
		return sent, fmt.Errorf("tstamp: send to %v: %w", out[sent].Peer, errno)
	}
	return sent, nil
}

// mayBeAnothers reports whether e is an error that ICMP messages are mapped to (icmp_err_convert).
func mayBeAnothers(e unix.Errno) bool {
	return e == unix.ECONNREFUSED || e == unix.EHOSTUNREACH || e == unix.ENETUNREACH || e == unix.ENOPROTOOPT ||
		e == unix.EHOSTDOWN || e == unix.ENONET || e == unix.EMSGSIZE || e == unix.EOPNOTSUPP ||
		e == unix.EPROTO || e == unix.EACCES
}

// adopt sets m on the socket. The caller holds sendMu.
func (c *Conn) adopt(m SendOptions) error {
	if m.Fragmentation != c.sendOptions.Fragmentation {
		value := [...]int{ // the same for both families
			SystemFragmentation: c.setup.discovery, NoFragmentation: unix.IP_PMTUDISC_PROBE, Fragmented: unix.IP_PMTUDISC_DONT,
		}[m.Fragmentation]
		level, option := discovery(c.v6)
		if err := unix.SetsockoptInt(c.fd, level, option, value); err != nil {
			return fmt.Errorf("tstamp: path MTU discovery: %w", err)
		}
		c.sendOptions.Fragmentation = m.Fragmentation
	}
	if m.NoChecksum != c.sendOptions.NoChecksum {
		if err := setBool(c.fd, unix.SOL_SOCKET, unix.SO_NO_CHECK, m.NoChecksum); err != nil {
			return fmt.Errorf("tstamp: SO_NO_CHECK: %w", err)
		}
	}
	c.sendOptions = m
	return nil
}

// sendSome is one sendmmsg.
func (c *Conn) sendSome(out []Out) (sent int, errno unix.Errno) {
	how := c.stamping()
	if how == marked {
		out = out[:1]
	}
	n, errno := c.address(out, how)
	if n == 0 {
		return 0, errno
	}
	c.remember(out[:n], how)
	sent, errno = sendmmsg(c.fd, c.out.messages[:n])
	gone := instant.Now()
	c.counts.sent.Add(packetsOf(out[:sent]))
	switch how {
	case withheld:
		c.standIn(out[:sent])
	case stamped, marked:
		c.conclude(sent, n, gone)
	case unstamped:
	}
	return sent, errno
}

// stamping returns how the next packets are timestamped.
func (c *Conn) stamping() stamping {
	switch {
	case c.sendOptions.Unstamped:
		return unstamped
	case c.setup.stamps == 0:
		return withheld
	case !c.suspect:
		return stamped
	}
	// Messages on the error queue belong to packets before a marked one.
	c.drainMu.Lock()
	empty := c.drain()
	c.drainMu.Unlock()
	how := c.pending.stamping(instant.Now())
	if how == marked && !empty {
		return withheld
	}
	c.suspect = how != stamped
	return how
}

// packetsOf counts the packets that the kernel makes of out.
func packetsOf(out []Out) (n uint64) {
	for i := range out {
		n++
		if s := out[i].Segment; s > 0 {
			n += uint64(max(0, (len(out[i].Payload)+s-1)/s-1))
		}
	}
	return n
}

// address writes names and control messages. It stops at a packet with an invalid address or option.
func (c *Conn) address(out []Out, how stamping) (n int, errno unix.Errno) {
	for i := range out {
		o := &out[i]
		h, e := &c.out.messages[i].header, &c.out.envelopes[i]
		if h.Namelen, errno = c.outZones.putAddress(&c.socket, e.name[:], o.Peer, c.v6); errno != 0 {
			return i, errno
		}
		if o.Segment > 0 && how != unstamped {
			return i, unix.EINVAL
		}
		control := e.controlSlice()[:0]
		if c.setup.stamps != 0 && how != stamped {
			flags := 0
			if how == marked {
				flags = c.setup.stamps&packetFlags | markFlags
			}
			control = appendCmsgUint32(control, unix.SOL_SOCKET, unix.SO_TIMESTAMPING_NEW, uint32(flags))
		}
		if o.Segment > 0 && o.Segment < len(o.Payload) { // the kernel cuts it
			var data []byte
			control, data = appendCmsg(control, unix.SOL_UDP, unix.UDP_SEGMENT, 2)
			binary.NativeEndian.PutUint16(data, uint16(min(o.Segment, 1<<16-1)))
		}
		if control, errno = c.header(control, o); errno != 0 {
			return i, errno
		}
		h.SetControllen(len(control))
		c.out.setPayload(i, o.Payload)
	}
	return len(out), 0
}

// header appends the options of the IP header.
func (c *Conn) header(b []byte, o *Out) (_ []byte, errno unix.Errno) {
	level, tos, ttl := int32(unix.SOL_IP), int32(unix.IP_TOS), int32(unix.IP_TTL)
	if c.v6 {
		level, tos, ttl = unix.SOL_IPV6, unix.IPV6_TCLASS, unix.IPV6_HOPLIMIT
	}
	if o.DSCP != 0 {
		b = appendCmsgUint32(b, level, tos, uint32(o.DSCP&63)<<2)
	}
	if o.TTL != 0 {
		b = appendCmsgUint32(b, level, ttl, uint32(o.TTL))
	}
	a := o.Source.Unmap()
	switch {
	case !a.IsValid():
		return b, 0
	case a.Is6() != c.v6:
		return b, unix.EAFNOSUPPORT
	}
	var data []byte
	if !c.v6 { // struct in_pktinfo: interface, source address, unused
		b, data = appendCmsg(b, unix.SOL_IP, unix.IP_PKTINFO, unix.SizeofInet4Pktinfo)
		clear(data)
		*(*[4]byte)(data[4:]) = a.As4()
		return b, 0
	}
	b, data = appendCmsg(b, unix.SOL_IPV6, unix.IPV6_PKTINFO, unix.SizeofInet6Pktinfo)
	clear(data)
	*(*[16]byte)(data) = a.As16()
	if zone := a.Zone(); zone != "" {
		index, errno := c.outZones.index(&c.socket, zone)
		binary.NativeEndian.PutUint32(data[16:], index)
		return b, errno
	}
	return b, 0
}

// remember reads the clock and registers the packets of the call that follows.
func (c *Conn) remember(out []Out, how stamping) {
	p := c.pending
	p.mu.Lock()
	defer p.mu.Unlock()
	at := instant.Now()
	for i := range out {
		o := &out[i]
		o.At = at
		if how == unstamped {
			continue
		}
		p.recent.add(o.Payload, o.Cookie)
		if how != withheld {
			p.add(o.Cookie, at)
		}
	}
	if how == marked {
		p.mark(at)
	}
}

// conclude updates the accounts after a call that returned at gone and accepted sent of n packets. Most timestamps are
// on the error queue by now, and are read together.
func (c *Conn) conclude(sent, n int, gone instant.Time) {
	p := c.pending
	p.mu.Lock()
	if sent < n {
		p.drop(n - sent)
		c.suspect = true
	}
	p.returned(sent, gone)
	p.mu.Unlock()
	if c.drainMu.TryLock() { // otherwise Receive drains it
		c.drain()
		c.drainMu.Unlock()
	}
	c.announce()
}

// standIn reports user-space timestamps where the kernel's are not available.
func (c *Conn) standIn(out []Out) {
	p := c.pending
	p.mu.Lock()
	for i := range out {
		p.deliver(&slot{cookie: out[i].Cookie, at: out[i].At}, sample.Stamp{At: out[i].At, Origin: sample.User})
	}
	p.mu.Unlock()
	c.announce()
}

// announce sets the alarm for timestamps that nothing else wakes Receive for.
func (c *Conn) announce() {
	p := c.pending
	p.mu.Lock()
	ready, waiting := 0, p.waiting > 0
	if p.parked {
		ready = p.done.size
	}
	p.mu.Unlock()
	switch {
	case ready >= stampsAtOnce:
		c.alarm.within(0)
	case ready > 0:
		c.alarm.within(c.delay)
	case waiting:
		c.alarm.within(c.wait)
	}
}

// Coalesce enables or disables that the kernel merges packets of one sender and size that arrived back to back
// (UDP_GRO, Linux 5.0). Receive separates them again; all have the timestamp of the first. It requires a Batch with
// space for 65,535 bytes a packet, or packets are truncated.
func (c *Conn) Coalesce(on bool) error {
	c.sendMu.Lock()
	defer c.sendMu.Unlock()
	if c.closed.Load() {
		return nil
	}
	if err := setBool(c.fd, unix.SOL_UDP, unix.UDP_GRO, on); err != nil {
		return fmt.Errorf("tstamp: UDP_GRO: %w", err)
	}
	c.coalescing = on
	return nil
}

func setBool(fd, level, option int, on bool) error {
	value := 0
	if on {
		value = 1
	}
	return unix.SetsockoptInt(fd, level, option, value)
}
