package queue

import (
	"cmp"
	"math"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/estimate/orderstat"
)

// missProbability is the probability that base.early is too small, minIdlePackets the least number of usable idle
// packets.
const (
	missProbability = 1e-3
	minIdlePackets  = 2
)

// findBase evaluates the idle packets before and after the load. If they differ, the path or a clock has changed in
// between, and the base is between both.
func (r *run) findBase(before, after []Packet) {
	a, b := r.empty(before), r.empty(after)
	switch {
	case a.n >= minIdlePackets && b.n >= minIdlePackets:
		r.base = base{n: a.n + b.n, least: min(a.least, b.least), early: max(a.early, b.early), moved: b.least - a.least, low: min(a.low, b.low), high: max(a.high, b.high)}
	case a.n >= minIdlePackets:
		r.base = a
	case b.n >= minIdlePackets:
		r.base = b
	default:
		r.base = base{least: r.shift, low: r.shift, high: r.shift}
		return
	}
	// The clocks drift between the idle packets and the load's.
	span := r.length()
	if a.n >= minIdlePackets && b.n >= minIdlePackets {
		span /= 2
	}
	apart := r.o.StampError + r.drift(span)
	// No packet was faster than the path without queue.
	least := min(r.base.least, r.shift)
	r.base.early += r.base.least - least
	r.base.least = least
	r.base.low = min(r.base.low, least) - apart
	r.base.high += apart + r.idleUncertainty
}

// causes are the possible causes of moved.
func (b *base) causes() string {
	if b.moved > 0 {
		return "the queue had not drained, or the path or a clock has changed"
	}
	return "the path or a clock has changed"
}

// empty evaluates idle packets.
//
// The smallest of n delays is above the smallest possible one. If delays are uniformly dense there, the k smallest
// limit the difference: it exceeds c times their width with a probability of (1+c)^-(k-1), the gaps between them
// being exponential. Nine of ten delays are below the upper end, since one in ten may have been delayed by the
// host.
//
// A packet that was sent before the previous one can have arrived is left out: it queued behind that one. The path may
// have become longer, so the smallest delay of these packets decides when that is; but if the last of them still
// queued, the smallest delay of all does, and there may be no packet that met an empty queue.
func (r *run) empty(packets []Packet) (b base) {
	var delays []time.Duration
	least := r.smallest(packets)
	if r.queued(packets) {
		least = r.shift
	}
	until := instant.Time(0)
	for i := range r.load { // those after the load queue behind it
		if len(packets) > 0 && packets[0].Sent > r.begin {
			until = max(until, r.load[i].Arrived.Add(-least))
		}
	}
	for i := range packets {
		p := &packets[i]
		d, ok := r.delay(p)
		if ok && p.Sent >= until {
			delays = append(delays, d)
		}
		if ok {
			until = max(until, p.Arrived.Add(-least))
		}
	}
	if b.n = len(delays); b.n < minIdlePackets {
		return b
	}
	delays = orderstat.Sorted(delays)
	b.least = delays[0]
	k := min(max(3, b.n/5), b.n)
	// For fewer than 25 packets that limit would be too large to be useful: 5 usually suffices.
	c := min(math.Pow(missProbability, -1/float64(k-1))-1, 5)
	b.early = duration(c * seconds(delays[k-1]-delays[0]))
	b.low, b.high = b.least-b.early, orderstat.Quantile(delays, 0.9)
	return b
}

// A queue still held the last idle packets if the times between their arrivals vary less than this share of the
// variation of their delays, or if at least this many more of their pairs than of ten agree that delays fall.
const (
	queuedVariance = 0.5
	queuedFall     = 0.5
	// minQueued is the least number of packets that show it, usualQueued the number below which a third is too few.
	minQueued, usualQueued = 4, 8
)

// queued reports whether a queue held the last third of idle packets. It sends one packet after the other at the link's
// rate, whenever they were sent: the times between the arrivals vary less than the delays do. On a path without queue
// the delays vary less. On a link of changing rate both vary, but the delays fall while the queue drains.
func (r *run) queued(packets []Packet) bool {
	var last []*Packet
	for i := range packets {
		if _, ok := r.delay(&packets[i]); ok {
			last = append(last, &packets[i])
		}
	}
	if last = last[len(last)-min(max(len(last)/3, usualQueued), len(last)):]; len(last) < minQueued {
		return false
	}
	n := float64(len(last) - 1)
	apart := seconds(last[len(last)-1].Arrived.Sub(last[0].Arrived)) / n
	arrivals, delays, falling, pairs := 0.0, 0.0, 0, 0
	for i := range last[1:] {
		a, b := last[i], last[i+1]
		gap, change := seconds(b.Arrived.Sub(a.Arrived)), seconds(b.Arrived.Sub(a.Arrived)-b.Sent.Sub(a.Sent))
		arrivals, delays = arrivals+(gap-apart)*(gap-apart), delays+change*change
		for _, c := range last[i+1:] {
			falling += cmp.Compare(a.Arrived.Sub(a.Sent), c.Arrived.Sub(c.Sent))
			pairs++
		}
	}
	return arrivals < queuedVariance*delays || float64(falling) >= queuedFall*float64(pairs)
}
