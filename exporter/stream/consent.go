package stream

import (
	"net/netip"
	"syscall"
	"time"

	"oneway.example/exporter/sample"
	"oneway.example/exporter/sched"
	"oneway.example/exporter/tstamp"
)

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
	if x.steer != nil && !c.done() {
		c.base = max(c.base, now)
		if c.base >= c.end {
			c.segment++
		}
	}
	for x.steer == nil && x.isDue(now) && !c.unpaced() {
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
func (e *Endpoint) unreachable(all []tstamp.PeerError) {
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
