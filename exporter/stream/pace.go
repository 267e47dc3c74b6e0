package stream

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"oneway.example/exporter/instant"
	"oneway.example/exporter/sample"
	"oneway.example/exporter/sched"
	"oneway.example/exporter/tstamp"
)

// fire sends what is due, and returns when to be called again.
func (x *sending) fire(now monotonic) (next monotonic) {
	if x.consent != nil && !x.consent.Given() {
		return x.withhold(now)
	}
	x.readClock()
	woken := now
	for quota := perWake; quota > 0; {
		if x.from == len(x.out) && !x.overrun(now) {
			x.prepare(now)
		}
		if x.from == len(x.out) {
			break
		}
		n, wait := x.offer()
		if x.err != nil {
			return sched.Stop
		}
		x.collect()
		if wait {
			return sched.Now() + retry
		}
		quota -= n
		now = sched.Now()
	}
	switch {
	case x.from < len(x.out):
		return max(1, now) // at once, but the context is looked at
	case x.cursor.done(), x.overrun(now):
		return sched.Stop
	}
	due := x.cursor.due()
	if due <= now {
		return max(1, now)
	}
	return max(due, woken+tick)
}

// overrun: this host does not keep up with the plan, and its time is well over.
func (x *sending) overrun(now monotonic) bool {
	return !x.cursor.done() && !x.cursor.unpaced() && now > x.end+x.cursor.shift
}

// readClock reads both clocks together, as closely as the host lets us.
func (x *sending) readClock() {
	best := time.Duration(1<<63 - 1)
	for range 3 {
		before := sched.Now()
		wall := x.session.endpoint.wall()
		after := sched.Now()
		if after-before < best {
			best = after - before
			x.wall, x.wallAt = wall, before+best/2
		}
		if best < time.Microsecond {
			return
		}
	}
}

// wallOf is the system clock's reading at a time of the monotonic one.
func (x *sending) wallOf(t monotonic) instant.Time { return x.wall.Add(t - x.wallAt) }

// prepare makes a batch of the packets that are due now.
func (x *sending) prepare(now monotonic) {
	x.out, x.groups, x.from = x.out[:0], x.groups[:0], 0
	for len(x.out) < len(x.spaces) && x.isDue(now) {
		g := group{due: x.cursor.due(), unpaced: x.cursor.unpaced(), first: x.prepared}
		if g.unpaced {
			g.due = now
		}
		space, size := x.spaces[len(x.out)], x.cursor.payloadBytes()
		segment, used := x.cursor.segment, 0
		for g.packets < x.most && used+size <= len(space) && x.isDue(now) && x.cursor.segment == segment {
			x.pack(space[used:used+size], now)
			used += size
			g.packets++
		}
		o := tstamp.Out{
			Payload: space[:used], Peer: x.to, Source: x.source, DSCP: x.plan.DSCP,
			Cookie: uint64(x.token)<<32 | uint64(g.first),
		}
		if g.packets > 1 {
			o.Segment = size
		}
		x.out, x.groups = append(x.out, o), append(x.groups, g)
	}
}

func (x *sending) isDue(now monotonic) bool { return !x.cursor.done() && x.cursor.due() <= now }

// pack writes the next packet.
func (x *sending) pack(b []byte, now monotonic) {
	p := &x.packets[x.prepared]
	p.Due = x.wallOf(now)
	// Until the kernel's stamp comes, the clock's reading stands in.
	p.Stamp = sample.Stamp{At: p.Due, Origin: sample.User}
	if !x.cursor.unpaced() {
		p.Due = x.wallOf(x.cursor.due())
	}
	x.header.Seq = uint32(x.prepared)
	if x.adjustRate != nil {
		x.header.Micros = uint32((now - x.begin) / time.Microsecond)
	}
	x.header.Fill(b)
	x.prepared++
	x.cursor.advance(now)
}

// offer gives the kernel what is prepared, and tells how many packets are settled, and
// whether it has no space for the next.
func (x *sending) offer() (n int, wait bool) {
	sent, err := x.session.endpoint.conn.SendAs(x.manner, x.out[x.from:])
	now := sched.Now()
	x.settle(sent, now)
	switch {
	case err == nil:
		return sent, false
	case errors.Is(err, net.ErrClosed):
		x.err = fmt.Errorf("stream: %w", err)
		return sent, false
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.ENOBUFS):
		if !x.tooLate(now) {
			return sent, true
		}
	case x.groups[x.from].packets > 1 && uncut(err):
		x.takeApart()
		return sent, false
	}
	x.refuse(err, now)
	return sent + 1, false
}

// uncut: the packet is too long for the link to be cut, or there is no checksum offload (udp_send_skb).
func uncut(err error) bool {
	return errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.EMSGSIZE) || errors.Is(err, syscall.EIO)
}

// settle notes that n of the batch have been taken.
func (x *sending) settle(n int, now monotonic) {
	packets, bytes := 0, 0
	for i := x.from; i < x.from+n; i++ {
		g := &x.groups[i]
		packets += g.packets
		bytes += len(x.out[i].Payload)
		if g.unpaced && i == x.from && x.refused != 0 || !g.unpaced && now-g.due > LateAfter {
			x.result.Late += g.packets
		}
		if x.plan.Unstamped {
			for k := range x.packets[g.first : g.first+g.packets] {
				x.packets[g.first+k].Stamp.At = x.out[i].At
			}
		}
	}
	if n > 0 {
		x.from += n
		x.refused = 0
		x.taken(now)
		x.sentPackets.Add(int64(packets))
		x.sentBytes.Add(int64(bytes))
	}
}

// tooLate: the next has been refused for want of space for long enough.
func (x *sending) tooLate(now monotonic) bool {
	if x.refused == 0 {
		x.refused = now
	}
	if g := x.groups[x.from]; !g.unpaced {
		return now-g.due > timeout
	}
	return now-x.refused > timeoutUnpaced
}

// calm is after which time without a packet given up a host is taken to send again.
const calm = time.Second

// taken tells when this host sends again what it has refused.
func (x *sending) taken(now monotonic) {
	if x.gaveUp != 0 && now-x.gaveUp > calm {
		x.gaveUp = 0
		x.session.endpoint.log.Info("This host sends the stream's packets again", "to", x.to.String(), "refused", x.result.Refused)
	}
}

// refuse gives the next up: it never left.
func (x *sending) refuse(err error, now monotonic) {
	if x.gaveUp == 0 {
		x.session.endpoint.log.Warn("This host refuses to send a stream's packets", "to", x.to.String(), "err", err)
	}
	x.gaveUp = max(now, 1)
	g := x.groups[x.from]
	x.result.Refused += g.packets
	x.forgo(g)
	x.from++
	x.refused = 0
}

// takeApart makes packets of what the kernel was to cut and does not, and cuts no more.
func (x *sending) takeApart() {
	x.most = 1
	var out []tstamp.Out
	var groups []group
	for i := x.from; i < len(x.out); i++ {
		o, g := x.out[i], x.groups[i]
		size := len(o.Payload) / g.packets
		for k := range g.packets {
			one, alone := o, g
			one.Payload, one.Segment = o.Payload[k*size:(k+1)*size], 0
			alone.first, alone.packets = g.first+k, 1
			out, groups = append(out, one), append(groups, alone)
		}
	}
	x.out, x.groups, x.from = out, groups, 0
}

// Consent is what a sender knows of whether its receiver is still there and wants the stream
// (RFC 7675 calls this consent, and its age freshness). Its methods must not block, nor call the
// Endpoint.
type Consent interface {
	// Given tells whether packets may be sent now. It is asked by the goroutine that sends, each time
	// before it does.
	Given() bool
	// Unreachable hears of an ICMP error that came back for a packet of the stream (RFC 1122 section
	// 4.1.3.3), on the receiving goroutine.
	Unreachable(err syscall.Errno)
}

// askAgain is how often a sender that may not send asks again.
const askAgain = 10 * time.Millisecond

// withhold lets pass what is due while there is no consent: it is never sent. The plan goes on at
// its times; only what has none, in a segment without intervals, waits.
func (x *sending) withhold(now monotonic) (next monotonic) {
	x.readClock()
	for ; x.from < len(x.out); x.from++ {
		x.forgo(x.groups[x.from])
	}
	x.refused = 0
	c := &x.cursor
	if x.adjustRate != nil && !c.done() {
		c.base = max(c.base, now)
		if c.base >= c.end {
			c.segment++
		}
	}
	for x.adjustRate == nil && x.isDue(now) && !c.unpaced() {
		x.packets[x.prepared].Due = x.wallOf(c.due())
		x.prepared++
		c.advance(now)
	}
	if c.done() {
		return sched.Stop
	}
	return now + askAgain
}

// forgo marks packets that were prepared and never left.
func (x *sending) forgo(g group) {
	for k := range x.packets[g.first : g.first+g.packets] {
		x.packets[g.first+k].Stamp = sample.Stamp{}
	}
}

// unreachable hands ICMP errors to the streams that they are for.
func (e *Endpoint) unreachable(all []tstamp.ICMPError) {
	if len(all) == 0 {
		return
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	for i := range all {
		at := plain(all[i].Peer)
		for _, x := range e.sending {
			if x.consent != nil && plain(x.to) == at {
				x.consent.Unreachable(all[i].Err)
			}
		}
	}
}

// plain is an address without the mapping of IPv4 in IPv6.
func plain(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }
