package queue

import (
	"math"
	"time"

	"oneway.example/exporter/instant"
)

// run is what is known of all packets before anything is judged.
type run struct {
	o    Options
	load []Packet
	// begin is when the load began; shift is the smallest delay, by which arrivals are
	// moved back to the sender's clock.
	begin instant.Time
	shift time.Duration
	// ahead is how long before it the first idle packet left.
	ahead time.Duration
	// held is the largest Held of a packet whose delay is used; those above it are few, and
	// their delays are not looked at.
	held time.Duration
	idle idle
	// bytes is the size of the load's packets, the largest if they differ.
	bytes int
	// paused is by packet of the load; see pauses.
	paused []float64
}

// idle is the empty path.
type idle struct {
	n   int
	min time.Duration
	// spread is the path's jitter: how far nine of ten delays are above the smallest, and
	// a fifth more. One in ten may have been held up by the host.
	spread time.Duration
	// early is how much smaller than min the true minimum may be, as there were only n
	// packets to find it with.
	early time.Duration
}

func newRun(packets []Packet, o Options) run {
	o.Skip = orElse(o.Skip, DefaultSkip)
	o.First = orElse(o.First, DefaultFirst)
	if o.MaxBins <= 0 {
		o.MaxBins = DefaultBins
	}
	split := 0
	for split < len(packets) && packets[split].Segment < o.Load {
		split++
	}
	r := run{o: o, load: packets[split:]}
	r.held = heldLimit(packets)
	if len(r.load) > 0 {
		r.begin = r.load[0].Sent
		r.ahead = r.begin.Sub(packets[0].Sent)
	}
	for _, p := range r.load {
		r.bytes = max(r.bytes, p.IPBytes)
	}
	r.idle = r.empty(packets[:split])
	r.shift = r.smallest(packets)
	r.paused = r.pauses()
	return r
}

// orElse is the default for zero, and zero for what is below it.
func orElse(d, otherwise time.Duration) time.Duration {
	if d == 0 {
		return otherwise
	}
	return max(d, 0)
}

// heldLimit is twice the Held that three quarters of the packets keep below, and the
// largest Held up to there.
func heldLimit(packets []Packet) (held time.Duration) {
	all := make([]time.Duration, len(packets))
	for i, p := range packets {
		all[i] = p.Held
	}
	limit := 2*at(sorted(all), 0.75) + 20*time.Microsecond
	for _, h := range all {
		if h <= limit {
			held = max(held, h)
		}
	}
	return held
}

// delay is the difference of the packet's stamps; false if it has none that can be used.
func (r *run) delay(p *Packet) (time.Duration, bool) {
	return p.Arrived.Sub(p.Sent), p.Arrived != 0 && p.Held <= r.held
}

// smallest is the smallest delay, of any packet.
func (r *run) smallest(packets []Packet) (least time.Duration) {
	found := false
	for i := range packets {
		if d, ok := r.delay(&packets[i]); ok && (!found || d < least) {
			least, found = d, true
		}
	}
	return least
}

// surprise is the probability that idle.early is too little.
const surprise = 1e-3

// empty is what the idle packets say.
//
// The least of n delays is above the least possible one. Where delays are evenly dense down
// there, the k smallest tell by how much at the most: more than c times their width with a
// probability of (1+c)^-(k-1), the gaps between them being exponential.
//
// A packet that left when the one before it should still have been on its way, had it
// not been delayed, is not looked at: on a link slower than the idle packets it met those.
func (r *run) empty(packets []Packet) (e idle) {
	var delays []time.Duration
	least := r.smallest(packets)
	var until instant.Time
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
	if e.n = len(delays); e.n == 0 {
		return e
	}
	delays = sorted(delays)
	e.min, e.spread = delays[0], 6*(at(delays, 0.9)-delays[0])/5
	if k := min(max(3, e.n/5), e.n); k > 1 {
		// Of fewer than 25 packets that would be no bound worth having: 5 is often enough.
		c := min(math.Pow(surprise, -1/float64(k-1))-1, 5)
		e.early = duration(c * seconds(delays[k-1]-delays[0]))
	}
	return e
}

// elapsed is the sender's time of t since the load's begin.
func (r *run) elapsed(t instant.Time) time.Duration { return t.Sub(r.begin) }

// arrived is when a packet arrived, since the load's begin, the smallest delay taken off.
func (r *run) arrived(p *Packet) time.Duration { return p.Arrived.Sub(r.begin) - r.shift }

// jitter is the path's own, and what the stamps add to it.
func (r *run) jitter() time.Duration { return r.idle.spread + 2*r.o.StampError + r.held }

// drift is how far the clocks may run apart in d.
func (r *run) drift(d time.Duration) time.Duration { return duration(r.o.Drift * seconds(d)) }
