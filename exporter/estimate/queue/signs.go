package queue

import (
	"math"
	"slices"
	"sort"
	"time"

	"oneway.example/exporter/estimate/order"
)

// refusedAbove is the share that was lost of the half of the lost packets that needed most and of what
// was admitted that needed more by a margin: next to all where a queue drops at its tail.
func (l *look) refusedAbove(margin float64) float64 {
	edge := l.refused.Quantile(0.5)
	lost, admitted := l.refused.N-l.refused.Below(edge), l.admitted.N-l.admitted.Below(edge+margin)
	return float64(lost) / float64(lost+admitted)
}

// growing tells whether less than a tenth more waited in the middle of the load than nothing, or
// more at its end than in the middle: what keeps a queue at a length is no chance.
func (r *run) growing() bool {
	n := len(r.waits)
	middle := order.Quantile(order.Sorted(r.waits[n*45/100:n*55/100]), 0.5)
	end := order.Quantile(order.Sorted(r.waits[n*9/10:]), 0.5)
	return middle <= (shallow+1)*float64(r.bytes) || end > 1.3*middle
}

// stretch is the n packets between one loss and the next, the last of them, and the most that waited.
type stretch struct {
	n, last int
	most    float64
}

// stretches are those before each loss, and the one behind the last.
func (r *run) stretches() (all []stretch) {
	var s stretch
	for i, v := range r.waits {
		switch {
		case r.refused(i):
			all, s = append(all, s), stretch{}
		case !r.faded[i]:
			s = stretch{s.n + 1, i, max(s.most, v)}
		}
	}
	return append(all, s)
}

// atHead is the most octets that waited with a packet behind the last loss; zero if losses go on to
// the end of the load, or were too few before. A queue that drops at its tail refuses packets to the
// end; one that drops at its head drops all that is offered beyond the rate, and
// then gives all that it holds: what was sent since the last loss waits at the end.
func (r *run) atHead(all []stretch) (most float64) {
	tail := all[len(all)-1]
	first := len(r.load) - tail.n
	if tail.n == 0 || first < 2*few || float64(tail.n*r.bytes) > (1+headShare)*tail.most+sharpPackets*float64(r.bytes) {
		return 0
	}
	from := max(first-tail.n, 0)
	before := part{r.elapsed(r.load[from].Sent), r.elapsed(r.load[first-1].Sent)}
	at, _ := slices.BinarySearch(r.losses, before.from)
	lost := float64(len(r.losses) - at)
	if offered := float64((first-from)*r.bytes) / seconds(before.length()); lost < headLost*(1-r.rateOf(before)/offered)*float64(first-from) {
		return 0
	}
	return tail.most
}

// timed tells whether the longest delays, those right before a loss, are one while what waits is not.
func (r *run) timed(all []stretch) bool {
	var delays, octets []float64
	for _, s := range all[:len(all)-1] {
		if d, ok := r.delay(&r.load[s.last]); ok && s.n > 0 {
			delays, octets = append(delays, seconds(d-r.base.least)), append(octets, r.waits[s.last])
		}
	}
	if len(delays) < few {
		return false
	}
	slices.Sort(delays)
	slices.Sort(octets)
	wide := func(v []float64) float64 {
		return (order.Quantile(v, 0.9) - order.Quantile(v, 0.1)) / max(order.Quantile(v, 0.5), 1e-9)
	}
	return wide(delays) < steadyDelay && wide(octets) > 3*steadyDelay && order.Quantile(octets, 0.5) > fewPackets*float64(r.bytes)
}

// scattered tells whether a queue of a few packets dropped one in twenty where it had room for another
// by half of what it admitted, or admitted as many as a tenth of the dropped where it dropped half of
// them. It takes parts of packets: whole ones cannot tell a queue that drops
// at its tail at five packets from one that drops early at three to six.
func (r *run) scattered(best *look) bool {
	if best.least > fewPackets*float64(r.bytes) {
		return false
	}
	var admitted, refused []float64
	sent := r.ahead
	for i := range r.load {
		p := &r.load[i]
		octets := sent + float64(p.IPBytes) - octetsBy(r.passed, r.elapsed(p.Sent)+best.base)
		if p.Arrived == 0 {
			refused = append(refused, octets)
			continue
		}
		admitted = append(admitted, octets)
		sent += float64(p.IPBytes)
	}
	slices.Sort(admitted)
	slices.Sort(refused)
	packet := float64(r.bytes)
	above, _ := slices.BinarySearch(admitted, order.Quantile(refused, 0.5)+0.3*packet)
	return order.Quantile(refused, 0.05) < order.Quantile(admitted, 0.5)-0.5*packet || len(admitted)-above > len(refused)/10
}

// longest is the delay, less the least, that the share q of the load's packets does not exceed.
func (r *run) longest(q float64) time.Duration {
	var all []time.Duration
	for i := range r.load {
		if d, ok := r.delay(&r.load[i]); ok {
			all = append(all, d)
		}
	}
	slices.Sort(all)
	return order.Quantile(all, q) - r.base.least
}

// moved tells whether the empty path's delay has changed by more than the clocks run apart and some
// packets take, and than a part of the longest wait: then nothing is known of what waited.
func (r *run) moved(rate float64) bool {
	by := r.base.moved - r.drift(r.length())
	return seconds(by)*rate > sharpPackets*float64(r.bytes) && float64(by) > movedShare*float64(r.longest(1))
}

// variation is the coefficient of variation of the times between losses, each against the mean of
// its neighbours: 1 where they are independent, less where a rule makes them.
func (r *run) variation() float64 {
	sum, n := 0.0, 0
	for i := 2; i+2 < len(r.losses); i++ {
		if mean := seconds(r.losses[i+2]-r.losses[i-2]) / 4; mean > 0 {
			d := seconds(r.losses[i]-r.losses[i-1])/mean - 1
			sum, n = sum+d*d, n+1
		}
	}
	if n == 0 {
		return 1
	}
	return math.Sqrt(sum / float64(n))
}

// findStops leaves out what would have arrived while nothing did for long: it was held up behind the queue
// and seems to have waited in it; unless that is more than a tenth of the load: then it is the link.
func (r *run) findStops() {
	var stops []part
	sum := time.Duration(0)
	for i := 1; i < len(r.arrived); i++ {
		if p := (part{r.arrived[i-1].at, r.arrived[i].at}); p.length() > r.stood {
			stops, sum = append(stops, p), sum+p.length()
		}
	}
	at := func(i int) time.Duration { return r.elapsed(r.load[i].Sent) + r.base.least }
	for _, p := range stops {
		i := sort.Search(len(r.load), func(i int) bool { return at(i) >= p.from })
		for ; sum <= r.length()/10 && i < len(r.load) && at(i) <= p.to; i++ {
			r.faded[i] = true
		}
	}
	for i := range r.load {
		if r.refused(i) {
			r.losses = append(r.losses, r.elapsed(r.load[i].Sent))
		}
	}
}

// findFades finds stretches, longer than half of what the link is without arrivals, in which all was lost while more
// than three packets left the queue, or longer ones while next to none waited: a queue that has room
// admits, and a policer passes its rate. What filled the queue behind the last packet before it was
// lost, too, and is missing until the first packet after it has arrived.
func (r *run) findFades() {
	base, packet := r.base.least, float64(r.bytes)
	n, until, most := 0, time.Duration(math.MinInt64), 0.0
	flush := func(i int, octets float64) {
		if n == 0 {
			return
		}
		length := r.elapsed(r.load[i-1].Sent) - r.elapsed(r.load[i-n].Sent)
		if length > r.stood/2 && (most-octets > sharpPackets*packet || length > r.stood && octets <= (shallow+1)*packet) {
			r.fades++
			for k := i - n; k < i; k++ {
				r.faded[k] = true
			}
			if i < len(r.load) {
				until = r.load[i].Arrived.Sub(r.begin) - base
			}
		}
		n = 0
	}
	last := 0.0
	r.backlogs(base, func(i int, octets float64) {
		p := &r.load[i]
		switch {
		case p.Arrived != 0:
			flush(i, last)
		case r.elapsed(p.Sent) < until:
			r.faded[i] = true
		default:
			if n++; n == 1 {
				most = octets
			}
			last = octets
		}
	})
	flush(len(r.load), last)
}

// refused tells whether a packet was lost, and in no fade.
func (r *run) refused(i int) bool { return r.load[i].Arrived == 0 && !r.faded[i] }
