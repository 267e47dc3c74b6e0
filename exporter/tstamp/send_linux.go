package tstamp

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"

	"oneway.example/exporter/instant"
	"oneway.example/exporter/sample"
)

// pendingErrorRetries bounds how often a packet is tried again after what may
// have been another packet's error.
const pendingErrorRetries = 3

// Send hands packets to the kernel, in order, and sets their At. It never
// blocks. If err is not nil, sent packets were taken and out[sent] was refused
// for the reason that err wraps, a syscall.Errno (EAGAIN and ENOBUFS: no room
// now); the ones after it were not tried. After Close err is net.ErrClosed.
// A packet taken may still be dropped on this host.
func (c *Conn) Send(out []Out) (sent int, err error) { return c.SendAs(Manner{}, out) }

// SendAs is Send in a manner of its own. The manner is the socket's until the next call:
// callers whose manners differ cost each other a system call or two each time.
func (c *Conn) SendAs(m Manner, out []Out) (sent int, err error) {
	c.sendMu.Lock()
	defer c.sendMu.Unlock()
	if m != c.manner && !c.closed.Load() {
		if err := c.adopt(m); err != nil {
			return 0, err
		}
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
		// An ICMP error for an earlier packet, to whichever peer, is kept with
		// the socket and reported by the next call, once. A refusal that is
		// this packet's own comes again.
		if mayBeAnothers(errno) && retries < pendingErrorRetries {
			retries++
			continue
		}
		c.counts.sendErrors.Add(1)
		return sent, fmt.Errorf("tstamp: send to %v: %w", out[sent].Peer, errno)
	}
	return sent, nil
}

// mayBeAnothers: the errors that ICMP messages turn into (icmp_err_convert).
func mayBeAnothers(e unix.Errno) bool {
	return e == unix.ECONNREFUSED || e == unix.EHOSTUNREACH || e == unix.ENETUNREACH || e == unix.ENOPROTOOPT ||
		e == unix.EHOSTDOWN || e == unix.ENONET || e == unix.EMSGSIZE || e == unix.EOPNOTSUPP ||
		e == unix.EPROTO || e == unix.EACCES
}

// sendSome is one sendmmsg.
func (c *Conn) sendSome(out []Out) (sent int, errno unix.Errno) {
	if c.manner.Unstamped {
		return c.sendUnstamped(out)
	}
	if c.suspect {
		c.recount()
	}
	n, errno := c.address(out)
	if n == 0 {
		return 0, errno
	}
	first := c.remember(out[:n])
	sent, errno = sendmmsg(c.fd, c.out.messages[:n])
	gone := instant.Now()
	c.counts.sent.Add(uint64(sent))
	if first == 0 {
		c.standIn(out[:sent])
		return sent, errno
	}
	c.conclude(first, sent, n, gone)
	return sent, errno
}

// address writes names and control messages, but for the stamp's number. It
// stops at a packet that cannot be.
func (c *Conn) address(out []Out) (n int, errno unix.Errno) {
	for i := range out {
		o := &out[i]
		h, e := &c.out.messages[i].header, &c.out.envelopes[i]
		var ok bool
		if h.Namelen, ok = c.outZones.putAddress(e.name[:], o.Peer, c.v6); !ok {
			return i, unix.EAFNOSUPPORT
		}
		control := e.controlSlice()[:0]
		switch {
		case c.manner.Unstamped:
			control = c.unstamped(control, o)
		case o.Segment > 0:
			return i, unix.EINVAL
		case c.setup.exactIDs: // the number itself is filled in by remember
			control = appendCmsgUint32(control, unix.SOL_SOCKET, unix.SCM_TS_OPT_ID, 0)
		}
		if control, ok = c.header(control, o); !ok {
			return i, unix.EAFNOSUPPORT
		}
		h.SetControllen(len(control))
		c.out.setPayload(i, o.Payload)
	}
	return len(out), 0
}

// header appends what the packet wants of the IP header.
func (c *Conn) header(b []byte, o *Out) (_ []byte, ok bool) {
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
	if !o.Source.IsValid() {
		return b, true
	}
	return c.source(b, o.Source.Unmap())
}

func (c *Conn) source(b []byte, a netip.Addr) (_ []byte, ok bool) {
	if a.Is6() != c.v6 {
		return b, false
	}
	var data []byte
	if !c.v6 { // struct in_pktinfo: interface, source address, unused
		b, data = appendCmsg(b, unix.SOL_IP, unix.IP_PKTINFO, unix.SizeofInet4Pktinfo)
		clear(data)
		*(*[4]byte)(data[4:]) = a.As4()
		return b, true
	}
	b, data = appendCmsg(b, unix.SOL_IPV6, unix.IPV6_PKTINFO, unix.SizeofInet6Pktinfo)
	clear(data)
	*(*[16]byte)(data) = a.As16()
	if zone := a.Zone(); zone != "" {
		binary.NativeEndian.PutUint32(data[16:], c.outZones.index(zone))
	}
	return b, true
}

// remember reads the clock and notes the packets of the call that follows; it
// returns the serial of the first, or 0 if no stamps can be had for them.
func (c *Conn) remember(out []Out) (first uint64) {
	p := c.pending
	p.mu.Lock()
	defer p.mu.Unlock()
	at := instant.Now()
	for i := range out {
		out[i].At = at
		if c.setup.stamps == 0 || c.suspect {
			continue
		}
		serial := p.add(out[i].Cookie, at)
		if i == 0 {
			first = serial
		}
		if c.setup.exactIDs {
			binary.NativeEndian.PutUint32(c.out.envelopes[i].controlSlice()[cmsgHeader:], number(serial))
		}
	}
	return first
}

// conclude settles the accounts after a call that has returned at gone: n packets
// offered, sent taken.
func (c *Conn) conclude(first uint64, sent, n int, gone instant.Time) {
	p := c.pending
	p.mu.Lock()
	wake := p.returned(first, sent, gone) && p.parked
	if sent < n {
		p.drop(first + uint64(sent))
		c.suspect = !c.setup.exactIDs
	}
	waiting := p.waiting
	p.mu.Unlock()
	if wake {
		c.alarm.ring()
	}
	if waiting == 0 {
		return
	}
	c.alarm.armIfIdle(c.wait)
	if waiting > c.drainAbove && c.drainMu.TryLock() { // else Receive is at it
		c.drain()
		c.drainMu.Unlock()
	}
}

// recount makes the kernel's number of the next stamp known again. Before Linux
// 6.8 (488b6d91b071) a send that failed had used up a number or not, by where it
// failed; since then most failures give it back, but not those behind the
// socket (a full queue, a firewall). So the count is started anew. The error
// queue is emptied first: what is on it belongs to the old count.
func (c *Conn) recount() {
	c.drainMu.Lock()
	defer c.drainMu.Unlock()
	c.drain()
	if !c.pending.restartLocking(instant.Now()) || c.setup.restartCount(c.fd) != nil {
		return // still suspect: tried again with the next packets
	}
	c.suspect = false
}

// standIn reports the user's stamps where the kernel's cannot be had.
func (c *Conn) standIn(out []Out) {
	if len(out) == 0 {
		return
	}
	p := c.pending
	p.mu.Lock()
	for i := range out {
		p.deliver(&slot{cookie: out[i].Cookie, at: out[i].At}, sample.Stamp{At: out[i].At, Origin: sample.User})
	}
	p.mu.Unlock()
	c.alarm.ring()
}
