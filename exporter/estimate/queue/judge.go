package queue

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"time"

	"oneway.example/exporter/estimate/order"
)

const (
	// sharp is by how many packets, or by what share of the queue, the limit may be blurred.
	sharpPackets = 3
	sharpShare   = 0.1
	// refusals are what a queue that overflows makes of its losses at least.
	refusals = 0.3
	// regular is the variation of the times between losses below which they are no chance.
	regular = 0.55
	// pure is the share that is refused of what needs more than there is space for.
	pure = 0.6
	// edgeShare is by what share of the queue others' packets may move the edge of what is admitted.
	edgeShare = 0.03
	// shallow is how many packets wait at a policer at the most.
	shallow = 2
	// steadyDelay is by what share the delays vary of a queue that is limited by time.
	steadyDelay = 0.1
	// headShare is by what share more than at other losses waits behind the last one at a queue that
	// drops at its head, headLost the share of what exceeds the rate that it loses, at the least.
	headShare = 0.2
	headLost  = 0.7
	// strong is the share of what is admitted below which half of the losses are a queue
	// management's, whoever else is there.
	strong = 0.7
	// lossy is the share lost behind the queue from which on it is in doubt which packets filled it.
	lossy = 0.001
	// brief is a load of so few seconds that its rate's distribution is not known.
	brief = 5 * time.Second
	// movedShare is the share of the longest wait by which the empty path's delay may change.
	movedShare = 0.25
	// fewPackets are told by parts of packets.
	fewPackets = 8
	// mostWide is how many times the lower end of a size's interval the upper one may be.
	mostWide = 3
	// few losses tell nothing.
	few = 12
)

// judge says what the load met, and gives the values that this has.
func (r *run) judge(res *Result) {
	loaded := r.loaded()
	r.rate(res, loaded)
	if !res.Rate.OK {
		res.Evidence = "what arrived came all at once: nothing is known of the rate"
		return
	}
	best, low, high := r.search()
	packet, lost := float64(r.bytes), len(r.losses)
	share := 1 - float64(res.Received)/float64(res.Sent)
	others, _ := r.others(loaded, best.random)
	// A queue management leaves no gaps: what it drops takes no time of the link.
	gaps, known := r.others(loaded, 0)
	alone := known && gaps < leastOthers/3
	apart := res.Rate.Value * seconds(r.drift(r.length()))
	stretches := r.stretches()
	last := r.atHead(stretches)
	// What is lost behind the queue is missing in what is counted, more at one time than at another.
	behind := min(best.random, gaps) * best.least
	missing := behind + 2*packet*math.Sqrt(behind/packet)
	blur := max(sharpPackets*packet, sharpShare*best.least) + apart + missing
	say := func(state State, format string, values ...any) {
		res.State, res.Evidence = state, fmt.Sprintf(format, values...)
	}
	switch {
	case lost > 0 && lost < few && best.least > fewPackets*packet && !r.growing():
		say(Unknown, "cannot tell: %d of %d packets were lost, too few to say why, and up to %.0f bytes waited", lost, len(r.load), best.least)
	case lost < few && r.fades > 0 && !r.growing():
		say(Unknown, "cannot tell: all but %d of the lost packets were lost whatever waited, and up to %.0f bytes waited", lost, best.least)
	case lost < few:
		say(NotFilled, "%d of %d packets were lost: the link carried %.4g Mb/s, or its queue was growing to the end", lost, len(r.load), 8e-6*res.Offered)
	case r.moved(res.Rate.Value):
		say(Unknown, "cannot tell: idle packets behind the load took %v more or less than those before it: the path or a clock has changed", r.base.moved.Round(time.Microsecond))
	case best.refused.Quantile(0.5) <= (shallow+1)*packet && seconds(r.longest(0.95))*res.Rate.Value <= 2*(shallow+1)*packet && r.variation() < regular:
		say(Policer, "%.1f %% were lost, half of them with no more than %.0f packets waiting: what is beyond a rate is dropped and does not wait", 100*share, best.refused.Quantile(0.5)/packet-1)
	case r.timed(stretches):
		say(TimeLimited, "packets were dropped after one time, whatever waited: they are discarded by a timer")
	case last > (1+headShare)*best.refused.Quantile(0.95)+sharpPackets*packet:
		low, high = last, last
		best.random, best.upTo, best.tells = 0, 0, true
		say(Filled, "behind the last loss %.0f bytes waited, more than were admitted before: packets are dropped at the queue's head", last)
	case (best.excess < refusals+2/math.Sqrt(float64(lost)) && r.variation() > regular || lost < 3*few/2) && r.growing():
		say(NotFilled, "%.2f %% were lost at random, whether much waited or little: the queue refused nothing", 100*share)
	case best.least <= (shallow+1)*packet && r.variation() > regular:
		say(NotFilled, "%.2f %% were lost at random, and next to nothing waited: the link carried %.4g Mb/s", 100*share, 8e-6*res.Offered)
	case best.excess >= refusals && best.spread(packet) <= blur && best.refusedAbove(max(1.5*packet, edgeShare*best.least)+apart+missing) > pure && !r.scattered(&best):
		say(Filled, "packets were refused where the queue had to hold more than %.0f to %.0f bytes, and admitted below", low, high)
	case best.excess >= refusals && others > leastOthers:
		say(Filled, "packets were refused where this test's took %.0f to %.0f bytes of the queue", low, high)
	case !alone && best.refused.Quantile(0.5) > strong*best.least:
		say(Unknown, "cannot tell: half of the packets that were lost needed more than %.0f bytes of the queue, and others were admitted with %.0f: a queue management may have dropped them, or others' packets, a link whose rate moves or losses behind the queue make it look so", best.refused.Quantile(0.5), best.least)
	default:
		say(AQM, "packets were dropped where the queue had to hold %.0f bytes, and others admitted at %.0f", best.refused.Quantile(0.1), best.least)
	}
	if others > leastOthers && res.State == Filled {
		whose := "others have"
		if !best.tells {
			whose = "others, or losses behind the queue, have"
		}
		res.Evidence += fmt.Sprintf("; %s about %.0f %% of the link", whose, 100*others)
	}
	if r.fades > 0 {
		res.Evidence += fmt.Sprintf("; left out are %d packets that were lost in %d stretches, whatever waited", res.Sent-res.Received-lost, r.fades)
	}
	r.fill(res, &best, low, high, others)
}

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

// atHead is the most bytes that waited with a packet behind the last loss; zero if losses go on to
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
	var delays, bytes []float64
	for _, s := range all[:len(all)-1] {
		if d, ok := r.delay(&r.load[s.last]); ok && s.n > 0 {
			delays, bytes = append(delays, seconds(d-r.base.least)), append(bytes, r.waits[s.last])
		}
	}
	if len(delays) < few {
		return false
	}
	slices.Sort(delays)
	slices.Sort(bytes)
	wide := func(v []float64) float64 {
		return (order.Quantile(v, 0.9) - order.Quantile(v, 0.1)) / max(order.Quantile(v, 0.5), 1e-9)
	}
	return wide(delays) < steadyDelay && wide(bytes) > 3*steadyDelay && order.Quantile(bytes, 0.5) > fewPackets*float64(r.bytes)
}

// scattered tells whether a queue of a few packets dropped one in twenty where it had space for another
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
		bytes := sent + float64(p.IPBytes) - bytesBy(r.passed, r.elapsed(p.Sent)+best.base)
		if p.Arrived == 0 {
			refused = append(refused, bytes)
			continue
		}
		admitted = append(admitted, bytes)
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
	return order.Quantile(order.Sorted(r.delays(r.load)), q) - r.base.least
}

// moved tells whether the empty path's delay has changed by more than the clocks run apart and some
// packets take, and than a part of the longest wait: then nothing is known of what waited.
func (r *run) moved(rate float64) bool {
	by := r.base.moved - r.drift(r.length())
	return seconds(by)*rate > sharpPackets*float64(r.bytes) && float64(by) > movedShare*float64(r.longest(1))
}

// variation is the coefficient of variation of the times between losses, each against the mean of
// its neighbors: 1 where they are independent, less where a rule makes them.
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
	flush := func(i int, bytes float64) {
		if n == 0 {
			return
		}
		length := r.elapsed(r.load[i-1].Sent) - r.elapsed(r.load[i-n].Sent)
		if length > r.stood/2 && (most-bytes > sharpPackets*packet || length > r.stood && bytes <= (shallow+1)*packet) {
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
	r.backlogs(base, func(i int, bytes float64) {
		p := &r.load[i]
		switch {
		case p.Arrived != 0:
			flush(i, last)
		case r.elapsed(p.Sent) < until:
			r.faded[i] = true
		default:
			if n++; n == 1 {
				most = bytes
			}
			last = bytes
		}
	})
	flush(len(r.load), last)
}

// refused tells whether a packet was lost, and in no fade.
func (r *run) refused(i int) bool { return r.load[i].Arrived == 0 && !r.faded[i] }
