package queue

import (
	"slices"
	"time"

	"oneway.example/exporter/instant"
)

// facts is what a part of the load says, before it is judged.
type facts struct {
	part
	sent, lost int
	// offered and rate are IP octets a second, sent and arrived; drain is the rate at which
	// the queue emptied: what was lost after it has used the link as well.
	offered, rate, drain float64
	// rateBound is how far rate may be off.
	rateBound float64
	// full is when the queue had become full, at the latest.
	full time.Duration
	// excess are the delays above the empty path's, ascending, of packets sent while
	// the queue was full; min is the smallest such delay.
	excess []time.Duration
	min    time.Duration
	// refused is what the queue would have held, in octets, with each packet that was
	// dropped, ascending.
	refused []float64
	// slack is by how many octets the queue may be less than full before such a packet.
	slack float64
}

// base is the empty path's delay, or the smallest there is.
func (r *run) base() time.Duration {
	if r.idle.n > 0 {
		return r.idle.min
	}
	return r.shift
}

// look gathers the facts of a part.
func (r *run) look(w part) facts {
	f := facts{part: w}
	r.count(&f)
	if f.rate <= 0 {
		return f
	}
	r.fullFrom(&f)
	r.backlog(&f)
	return f
}

// count finds the rates.
func (r *run) count(f *facts) {
	var first, last instant.Time
	var bytes, arrived, firstBytes float64
	var gaps []time.Duration
	var before instant.Time
	for i := range r.load {
		p := &r.load[i]
		if !f.holds(r.elapsed(p.Sent)) {
			continue
		}
		f.sent++
		bytes += float64(p.IPBytes)
		if p.Arrived == 0 {
			f.lost++
			continue
		}
		if before != 0 {
			gaps = append(gaps, p.Arrived.Sub(before))
		}
		before = p.Arrived
		arrived += float64(p.IPBytes)
		if first == 0 || p.Arrived < first {
			first, firstBytes = p.Arrived, float64(p.IPBytes)
		}
		last = max(last, p.Arrived)
	}
	if f.length() > 0 {
		f.offered = bytes / seconds(f.length())
	}
	if last <= first {
		return
	}
	f.rate = (arrived - firstBytes) / seconds(last.Sub(first))
	ordered := sorted(gaps)
	median := at(ordered, 0.5)
	// The ends of the measured time may be off by what shifts an arrival.
	off := seconds(r.jitter()+at(ordered, 0.95)-median) / seconds(last.Sub(first))
	f.rateBound = f.rate * (off + r.o.Drift)
	f.drain = f.rate * (1 + r.missing(gaps, median))
}

// block is how many gaps are looked at together, so that packets that were held up and
// then came together count as if they had not been.
const block = 32

// missing is the share of packets that used the link and did not arrive: the time between
// arrivals is longer by as much. Where the path's jitter is as large as that, nothing is known.
func (r *run) missing(gaps []time.Duration, median time.Duration) float64 {
	if median <= 0 || r.jitter() > median/4 {
		return 0
	}
	missing, of := 0, 0
	for i := 0; i+block <= len(gaps); i += block {
		var sum time.Duration
		for _, g := range gaps[i : i+block] {
			sum += g
		}
		// Beyond a quarter it is the sender that paused, and the link stood idle.
		if more := int((sum+median/2)/median) - block; more <= block/4 {
			missing += more
			of += block
		}
	}
	if of == 0 {
		return 0
	}
	return max(float64(missing)/float64(of), 0)
}

// fullFrom finds when the queue had become full: with the first loss after delays had come
// to where most of them were.
func (r *run) fullFrom(f *facts) {
	var all []time.Duration
	for i := range r.load {
		p := &r.load[i]
		if d, ok := r.delay(p); ok && f.holds(r.elapsed(p.Sent)) {
			all = append(all, d)
		}
	}
	high := at(sorted(all), 0.9) - r.jitter() - 2*duration(float64(r.bytes)/f.drain)
	reached := false
	f.full = f.from
	for i := range r.load {
		p := &r.load[i]
		d, ok := r.delay(p)
		reached = reached || ok && d >= high
		if t := r.elapsed(p.Sent); reached && p.Arrived == 0 {
			if t < f.to-f.length()/4 {
				f.full = max(f.from, t)
			}
			return
		}
	}
}

// backlog finds what was admitted, and what was refused, once the queue was full.
func (r *run) backlog(f *facts) {
	f.slack = r.slack(f)
	deficit, known := 0.0, false
	var before instant.Time
	var held float64 // octets in the queue after the last packet that was admitted
	var since instant.Time
	for i := range r.load {
		p := &r.load[i]
		t := r.elapsed(p.Sent)
		if t > f.to {
			break
		}
		if t >= f.full && before != 0 {
			deficit += seconds(p.Sent.Sub(before)) * f.drain
		}
		d, usable := r.delay(p)
		switch {
		case usable:
			queued := seconds(d-r.base()) * f.drain
			held, since, known = queued+float64(p.IPBytes), p.Sent, true
			if t >= f.full && deficit <= f.slack {
				if len(f.excess) == 0 || d < f.min {
					f.min = d
				}
				f.excess = append(f.excess, d-r.base())
			}
		case p.Arrived != 0:
			held += float64(p.IPBytes)
		case known && t >= f.full:
			f.refused = append(f.refused, max(held-seconds(p.Sent.Sub(since))*f.drain, 0))
		}
		if t >= f.full {
			deficit = max(deficit-float64(p.IPBytes), 0)
		}
		before = p.Sent
	}
	slices.Sort(f.excess)
	slices.Sort(f.refused)
}

// slack is by how much the sender's usual pace, nineteen of twenty gaps, lets a full queue
// drain before the next packet comes; beyond that the sender has paused. A packet may
// always be missing.
func (r *run) slack(f *facts) float64 {
	var gaps []time.Duration
	var before instant.Time
	for i := range r.load {
		p := &r.load[i]
		if !f.holds(r.elapsed(p.Sent)) {
			continue
		}
		if before != 0 {
			gaps = append(gaps, p.Sent.Sub(before))
		}
		before = p.Sent
	}
	return max(float64(r.bytes), 1.25*seconds(at(sorted(gaps), 0.95))*f.drain)
}
