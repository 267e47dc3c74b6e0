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
	var arrivals []instant.Time
	var octets []float64 // that had arrived with each, or would have if the sender had not paused
	var sent, arrived float64
	for i := range r.load {
		p := &r.load[i]
		if !f.holds(r.elapsed(p.Sent)) {
			continue
		}
		f.sent++
		sent += float64(p.IPBytes)
		if p.Arrived == 0 {
			f.lost++
			continue
		}
		arrived += float64(p.IPBytes) + r.unsent(i)
		arrivals, octets = append(arrivals, p.Arrived), append(octets, arrived)
	}
	if f.length() > 0 {
		f.offered = sent / seconds(f.length())
	}
	rates := slopes(arrivals, octets)
	if len(rates) == 0 {
		return
	}
	f.rate = at(rates, 0.5)
	gaps := make([]time.Duration, len(arrivals)-1)
	for i := range gaps {
		gaps[i] = arrivals[i+1].Sub(arrivals[i])
	}
	ordered := sorted(gaps)
	median := at(ordered, 0.5)
	// The ends of the measured time may be off by what shifts an arrival.
	off := seconds(r.jitter()+at(ordered, 0.95)-median) / seconds(arrivals[len(arrivals)-1].Sub(arrivals[0]))
	f.rateBound = f.rate*(max(off, 0)+r.o.Drift) + at(rates, 0.75) - at(rates, 0.25)
	f.drain = f.rate * (1 + r.missing(gaps, median))
}

// slopes are rates from an early arrival to a late one, ascending: of 21 pairs, so that one
// that was held up does not count. The pairs are at least three fifths of the whole apart.
func slopes(arrivals []instant.Time, octets []float64) (rates []float64) {
	n := len(arrivals)
	for k := range 21 {
		i, j := k*n/100, n-1-k*n/100
		if j <= i || arrivals[j] <= arrivals[i] {
			continue
		}
		rates = append(rates, (octets[j]-octets[i])/seconds(arrivals[j].Sub(arrivals[i])))
	}
	slices.Sort(rates)
	return rates
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
		// Beyond a quarter the sender has paused, and the link stood idle, or the receiver has.
		if more := int((sum+median/2)/median) - block; max(more, -more) <= block/4 {
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
	slices.Sort(all)
	high := at(all, 0.9) - r.jitter() - 2*duration(float64(r.bytes)/f.drain)
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
	slices.Sort(gaps)
	return max(float64(r.bytes), 1.25*seconds(at(gaps, 0.95))*f.drain)
}
