package stream

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/ipheader"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/net/sched"
	"oneway.example/exporter/net/tstamp"
)

// fire sends the packets that are due, and returns the time of the next call.
func (x *sending) fire(now monotonic) (next monotonic) {
	if x.consent != nil && !x.consent.Given() {
		return x.skipWithoutConsent(now)
	}
	x.readClock()
	woken := now
	for quota := contextCheckPackets; quota > 0; {
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
		return max(1, now) // at once, after a check of the context
	case x.cursor.done(), x.overrun(now):
		return sched.Stop
	}
	due := x.cursor.due()
	if due <= now {
		return max(1, now)
	}
	return max(due, woken+tick)
}

// overrun returns whether the plan's time, with the grace time, is over.
func (x *sending) overrun(now monotonic) bool {
	return !x.cursor.done() && !x.cursor.unpaced() && now > x.end+x.cursor.shift
}

// readClock reads both clocks with the least time between them.
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

// wallOf converts a time of the monotonic clock to the system clock.
func (x *sending) wallOf(t monotonic) instant.Time { return x.wall.Add(t - x.wallAt) }

// prepare makes a batch of the packets that are due.
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
	// The time of the call is used until the kernel's timestamp arrives.
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

// offer sends prepared packets. It returns how many are settled, and whether the kernel has no space
// for the next.
func (x *sending) offer() (n int, wait bool) {
	sent, err := x.session.endpoint.conn.SendAs(x.sendOptions, x.out[x.from:])
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
	case x.groups[x.from].packets > 1 && cannotSegment(err):
		x.splitGroups()
		return sent, false
	}
	x.refuse(err, now)
	return sent + 1, false
}

// cannotSegment returns whether the kernel could not segment: too long for the link, or no checksum offload
// (udp_send_skb).
func cannotSegment(err error) bool {
	return errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.EMSGSIZE) || errors.Is(err, syscall.EIO)
}

// settle records that n packets of the batch were sent.
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
		x.logRecovered(now)
		x.sentPackets.Add(int64(packets))
		x.sentBytes.Add(int64(bytes))
	}
}

// tooLate returns whether the time of retries for the next packet is over.
func (x *sending) tooLate(now monotonic) bool {
	if x.refused == 0 {
		x.refused = now
	}
	if g := x.groups[x.from]; !g.unpaced {
		return now-g.due > timeout
	}
	return now-x.refused > timeoutUnpaced
}

// recoveryTime is the time without refused packets after which the host counts as sending again.
const recoveryTime = time.Second

// logRecovered logs the first sent packets after refused ones.
func (x *sending) logRecovered(now monotonic) {
	if x.refusedAt != 0 && now-x.refusedAt > recoveryTime {
		x.refusedAt = 0
		x.session.endpoint.log.Info("This host sends the packets of the stream again", "to", x.to.String(), "not_sent", x.result.Refused)
	}
}

// refuse gives up the next packets.
func (x *sending) refuse(err error, now monotonic) {
	g := x.groups[x.from]
	if errors.Is(err, syscall.EMSGSIZE) {
		x.result.TooLarge += g.packets
		x.session.endpoint.log.Debug("A packet of the stream is larger than the MTU", "to", x.to.String(), "err", err)
	} else {
		if x.refusedAt == 0 {
			x.session.endpoint.log.Warn("This host cannot send packets of the stream", "to", x.to.String(), "err", err)
		}
		x.refusedAt = max(now, 1)
	}
	x.result.Refused += g.packets
	x.markUnsent(g)
	x.from++
	x.refused = 0
}

// splitGroups converts groups into single packets, and disables segmentation for the stream.
func (x *sending) splitGroups() {
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

// Consent is the state of consent of the receiver (RFC 7675: consent freshness). Its methods must
// neither block nor call the Endpoint.
type Consent interface {
	// Given returns whether packets may be sent now. The sending goroutine calls it before each
	// batch.
	Given() bool
	// Unreachable handles an ICMP error for a packet of the stream (RFC 1122 section 4.1.3.3), on the
	// receiving goroutine.
	Unreachable(err syscall.Errno)
}

// consentInterval is the interval of calls of Given while there is no consent.
const consentInterval = 10 * time.Millisecond

// skipWithoutConsent skips the packets that are due without consent. The plan's times stay; only packets without
// times, in a segment without intervals or with feedback, wait.
func (x *sending) skipWithoutConsent(now monotonic) (next monotonic) {
	x.readClock()
	for ; x.from < len(x.out); x.from++ {
		x.markUnsent(x.groups[x.from])
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
	return now + consentInterval
}

// markUnsent marks prepared packets as not sent.
func (x *sending) markUnsent(g group) {
	for k := range x.packets[g.first : g.first+g.packets] {
		x.packets[g.first+k].Stamp = sample.Stamp{}
	}
}

// tooLarge records the MTU that a router has reported, and ends a stream whose packets are all larger.
func (x *sending) tooLarge(mtu int) {
	if known := x.pathMTU.Load(); known == 0 || int64(mtu) < known {
		x.pathMTU.Store(int64(mtu))
	}
	smallest := slices.MinFunc(x.plan.Segments, func(a, b Segment) int { return a.PayloadBytes - b.PayloadBytes }).PayloadBytes
	if !x.plan.Fragment && smallest+ipheader.WithIP(x.to.Addr().Unmap().Is6(), ipheader.UDP) > mtu {
		x.cancel()
	}
}

// unreachable passes ICMP errors to their streams and to the sessions that have asked for a reply.
func (e *Endpoint) unreachable(all []tstamp.ICMPError) {
	if len(all) == 0 {
		return
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	for i := range all {
		at := unmapped(all[i].Peer)
		for _, x := range e.sending {
			if unmapped(x.to) != at {
				continue
			}
			if all[i].MTU > 0 {
				x.tooLarge(all[i].MTU)
			}
			if x.consent != nil {
				x.consent.Unreachable(all[i].Err)
			}
		}
		for _, s := range e.sessions {
			if to := s.asking.Load(); to != nil && slices.ContainsFunc(*to, func(one netip.AddrPort) bool { return unmapped(one) == at }) {
				s.rejected.Store(&rejection{all[i], sched.Now()})
			}
		}
	}
}

// unmapped returns an address without the IPv4-in-IPv6 mapping.
func unmapped(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }
