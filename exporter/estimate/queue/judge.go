package queue

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"time"

	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/estimate/orderstat"
)

const (
	// sharpPackets and sharpShare are the largest blur of the limit, in packets and as a share of the queue.
	sharpPackets = 3
	sharpShare   = 0.1
	// refusals is the least share of losses that a queue overflow explains.
	refusals = 0.3
	// pure is the least share refused of the packets that exceed the space.
	pure = 0.6
	// edgeShare is the share of the queue by which cross traffic may shift the limit.
	edgeShare = 0.03
	// shallow is the largest number of packets that wait at a policer.
	shallow = 2
	// policed is the largest backlog, in packets, of 95 % of the packets that pass a policer, by simulation with jitter. A slow link with
	// active queue management (PIE), which admits each packet behind two others, has more.
	policed = shallow + 1.25
	// steadyDelay is the largest variation of the delays of a queue that is limited by time.
	steadyDelay = 0.1
	// headShare is by what share the backlog after the last loss exceeds that at other losses if a queue drops at
	// its head, headLost the least share lost of the load above the rate.
	headShare = 0.2
	headLost  = 0.7
	// strong is the share of the admitted backlog below which half of the losses are due to active queue
	// management, even with cross traffic.
	strong = 0.7
	// lossy is the share lost behind the queue from which on it is uncertain which packets filled it.
	lossy = 0.001
	// minRateTime is the duration of a load too short for the distribution of its rate.
	minRateTime = 5 * time.Second
	// movedShare is the share of the longest queuing delay by which the empty path's delay may change.
	movedShare = 0.25
	// fewPackets is the backlog below which fractions of packets matter.
	fewPackets = 8
	// maxWidth is the largest ratio of the upper to the lower end of a size's interval.
	maxWidth = 3
	// minLosses is the number of losses below which no cause is derived.
	minLosses = 12
	// endOutage is the duration, and endPart the divisor of the load's duration, from which on an outage at the end of the load is an
	// interruption: a radio link may stall when the load ends.
	endOutage = time.Second
	endPart   = 10
)

// judge sets the state of the link and the values that this state has.
func (r *run) judge(res *Result) {
	loaded := r.loaded()
	r.rate(res, loaded)
	if !res.Rate.OK {
		res.Evidence = "all packets arrived at once: the rate is unknown"
		return
	}
	best, low, high := r.search()
	packet, lost := float64(r.bytes), len(r.losses)
	share := 1 - float64(res.Received)/float64(res.Sent)
	others, _ := r.others(loaded, best.random)
	// Active queue management leaves no gaps: dropped packets take no time of the link.
	gaps, known := r.others(loaded, 0)
	alone := known && gaps < minOthers/3
	apart := res.Rate.Value * seconds(r.drift(r.length()))
	stretches := r.stretches()
	last := r.atHead(stretches)
	// The backlog lacks the packets lost behind the queue, whose number varies.
	behind := min(best.random, gaps) * best.least
	missing := behind + 2*packet*math.Sqrt(behind/packet)
	blur := max(sharpPackets*packet, sharpShare*best.least) + apart + missing
	bucket, random := r.cause()
	passed := seconds(r.longest(0.95)) * res.Rate.Value // the largest backlog of most packets that passed
	conclude := func(state State, format string, values ...any) {
		res.State, res.Evidence = state, fmt.Sprintf(format, values...)
	}
	switch {
	case lost > 0 && lost < minLosses && best.least > fewPackets*packet && !r.growing():
		conclude(Unknown, "undetermined: %d of %d packets were lost, too few for a cause, and the backlog was up to %s", lost, len(r.load), unit.Bytes.Format(best.least))
	case lost < minLosses && r.outages > 0 && !r.growing():
		conclude(Unknown, "undetermined: all but %d of the losses do not depend on the backlog, which was up to %s", lost, unit.Bytes.Format(best.least))
	case lost < minLosses:
		conclude(NotFilled, "%d of %d packets were lost: the link carried %s, or its queue grew to the end", lost, len(r.load)-r.outagePackets, unit.BytesPerSecond.Format(res.Rate.Value))
	case r.moved(res.Rate.Value):
		conclude(Unknown, "undetermined: the delay of idle packets after the load differs by %s from that before it: %s", unit.Duration(r.base.moved.Abs()), r.base.causes())
	case best.refused.Quantile(0.5) <= (shallow+1)*packet && passed > policed*packet && passed <= 2*(shallow+1)*packet && bucket:
		conclude(Unknown, "undetermined: %s were lost, half of them with a backlog of at most %.0f packets, and others were delayed by more: a policer behind other delays, or active queue management of a slow link", unit.Ratio.Format(share), best.refused.Quantile(0.5)/packet-1)
	case best.refused.Quantile(0.5) <= (shallow+1)*packet && passed <= policed*packet && bucket:
		conclude(Policer, "%s were lost, half of them with a backlog of at most %.0f packets: load above a rate is dropped without queuing", unit.Ratio.Format(share), best.refused.Quantile(0.5)/packet-1)
	case r.timed(stretches):
		conclude(TimeLimited, "packets were dropped after a constant time, whatever the backlog: a timer discards them")
	case last > (1+headShare)*best.refused.Quantile(0.95)+sharpPackets*packet:
		low, high = last, last
		best.random, best.upTo, best.enoughPackets = 0, 0, true
		conclude(Filled, "the backlog after the last loss was %s, more than admitted before: packets are dropped at the queue's head", unit.Bytes.Format(last))
	case random && (best.excess < refusals+2/math.Sqrt(float64(lost)) || lost < 3*minLosses/2) && r.growing():
		conclude(NotFilled, "%s were lost at random, whatever the backlog: the queue dropped nothing", unit.Ratio.Format(share))
	case lost < 3*minLosses/2 && r.growing():
		conclude(Unknown, "undetermined: %d of %d packets were lost, too few to tell random losses from a policer's", lost, len(r.load))
	case best.least <= (shallow+1)*packet && random:
		conclude(NotFilled, "%s were lost at random, with almost no backlog: the link carried %s", unit.Ratio.Format(share), unit.BytesPerSecond.Format(res.Rate.Value))
	case best.least <= (shallow+1)*packet && !bucket:
		conclude(Unknown, "undetermined: %s were lost with almost no backlog, neither at random nor as a policer drops", unit.Ratio.Format(share))
	case best.excess >= refusals && best.spread(packet) <= blur && best.refusedAbove(max(1.5*packet, edgeShare*best.least)+apart+missing) > pure && !r.scattered(&best):
		conclude(Filled, "the queue drops packets above a backlog of %s", spanText(low, high))
	case best.excess >= refusals && others > minOthers:
		conclude(Filled, "packets were dropped at a backlog of this test of %s", spanText(low, high))
	case !alone && best.refused.Quantile(0.5) > strong*best.least:
		conclude(Unknown, "undetermined: half of the lost packets had a backlog above %s, and others were admitted at %s: the cause may be active queue management, cross traffic, a varying rate or losses behind the queue", unit.Bytes.Format(best.refused.Quantile(0.5)), unit.Bytes.Format(best.least))
	default:
		conclude(AQM, "packets were dropped at a backlog of %s, and others admitted at %s", unit.Bytes.Format(best.refused.Quantile(0.1)), unit.Bytes.Format(best.least))
	}
	if others > minOthers && res.State == Filled {
		whose := "others have"
		if !best.enoughPackets {
			whose = "others, or losses behind the queue, have"
		}
		res.Evidence += fmt.Sprintf("; %s about %s of the link", whose, unit.Ratio.Format(others))
	}
	if r.outages > 0 {
		res.Evidence += fmt.Sprintf("; without %s lost in %s, whatever the backlog", unit.Counted(res.Sent-res.Received-lost, "packet", "packets"), unit.Counted(r.outages, "outage", "outages"))
	}
	r.fill(res, &best, low, high, others)
}

// refusedAbove is the share lost of the half of the lost packets with the largest backlog and of the admitted ones
// that exceeded it by a margin: almost all at a tail-drop queue.
func (l *evaluation) refusedAbove(margin float64) float64 {
	edge := l.refused.Quantile(0.5)
	lost, admitted := l.refused.N-l.refused.Below(edge), l.admitted.N-l.admitted.Below(edge+margin)
	return float64(lost) / float64(lost+admitted)
}

// growing reports whether the backlog in the middle of the load was almost zero, or that at its end well above that
// in the middle, nine of ten packets of each: a queue that keeps its length is limited, and with active queue management (PIE) its
// length varies.
func (r *run) growing() bool {
	n := len(r.waits)
	middle, end := orderstat.Sorted(r.waits[n*45/100:n*55/100]), orderstat.Sorted(r.waits[n*9/10:])
	half := orderstat.Quantile(middle, 0.5)
	return half <= (shallow+1)*float64(r.bytes) ||
		orderstat.Quantile(end, 0.5) > 1.3*half && orderstat.Quantile(end, 0.1) > orderstat.Quantile(middle, 0.9)
}

// stretch is the n packets between two losses, the last of them, and the largest backlog.
type stretch struct {
	n, last int
	most    float64
}

// stretches are those before each loss, and the one after the last.
func (r *run) stretches() (all []stretch) {
	var s stretch
	for i, v := range r.waits {
		switch {
		case r.refused(i):
			all, s = append(all, s), stretch{}
		case !r.inOutages[i]:
			s = stretch{s.n + 1, i, max(s.most, v)}
		}
	}
	return append(all, s)
}

// atHead returns the largest backlog after the last loss; zero if losses continue to the end of the load, or were
// too few before. A tail-drop queue refuses packets to the end; a head-drop queue drops all load above the rate,
// and then delivers what it holds: the packets since the last loss are queued at the end.
func (r *run) atHead(all []stretch) (most float64) {
	tail := all[len(all)-1]
	first := len(r.load) - tail.n
	if tail.n == 0 || first < 2*minLosses || float64(tail.n)*float64(r.bytes) > (1+headShare)*tail.most+sharpPackets*float64(r.bytes) {
		return 0
	}
	from := max(first-tail.n, 0)
	before := part{r.elapsed(r.load[from].Sent), r.elapsed(r.load[first-1].Sent)}
	at, _ := slices.BinarySearch(r.losses, before.from)
	lost := float64(len(r.losses) - at)
	if offered := float64(first-from) * float64(r.bytes) / seconds(before.length()); lost < headLost*(1-r.rateOf(before)/offered)*float64(first-from) {
		return 0
	}
	return tail.most
}

// timed reports whether the longest delays, those right before a loss, are constant while the backlog is not.
func (r *run) timed(all []stretch) bool {
	var delays, bytes []float64
	for _, s := range all[:len(all)-1] {
		if d, ok := r.delay(&r.load[s.last]); ok && s.n > 0 {
			delays, bytes = append(delays, seconds(d-r.base.least)), append(bytes, r.waits[s.last])
		}
	}
	if len(delays) < minLosses {
		return false
	}
	slices.Sort(delays)
	slices.Sort(bytes)
	wide := func(v []float64) float64 {
		return (orderstat.Quantile(v, 0.9) - orderstat.Quantile(v, 0.1)) / max(orderstat.Quantile(v, 0.5), 1e-9)
	}
	return wide(delays) < steadyDelay && wide(bytes) > 3*steadyDelay && orderstat.Quantile(bytes, 0.5) > fewPackets*float64(r.bytes)
}

// scattered reports whether a queue of a few packets dropped one in twenty although it had space for another by
// half of what it admitted, or admitted as many as a tenth of the dropped at the backlog at which it dropped half
// of them. It uses fractions of packets: whole packets do not distinguish tail drop at five packets from early drop
// at three to six.
func (r *run) scattered(best *evaluation) bool {
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
	above, _ := slices.BinarySearch(admitted, orderstat.Quantile(refused, 0.5)+0.3*packet)
	return orderstat.Quantile(refused, 0.05) < orderstat.Quantile(admitted, 0.5)-0.5*packet || len(admitted)-above > len(refused)/10
}

// longest is the delay above the smallest that the share q of the load's packets does not exceed.
func (r *run) longest(q float64) time.Duration {
	return orderstat.Quantile(orderstat.Sorted(r.delays(r.load)), q) - r.base.least
}

// moved reports whether the empty path's delay changed by more than clock drift, some packets' time, and a part of
// the longest queuing delay: then the backlog is unknown.
func (r *run) moved(rate float64) bool {
	by := r.base.moved.Abs() - r.drift(r.length())
	return seconds(by)*rate > sharpPackets*float64(r.bytes) && float64(by) > movedShare*float64(r.longest(1))
}

// findStops leaves out packets that would have arrived during a long time without arrivals: they were delayed
// behind the queue and appear to have queued in it. If these are more than a tenth of the load, the cause is the
// link.
func (r *run) findStops() {
	var stops []part
	sum := time.Duration(0)
	for i := 1; i < len(r.arrived); i++ {
		if p := (part{r.arrived[i-1].at, r.arrived[i].at}); p.length() > r.pauseLimit {
			stops, sum = append(stops, p), sum+p.length()
		}
	}
	at := func(i int) time.Duration { return r.elapsed(r.load[i].Sent) + r.base.least }
	for _, p := range stops {
		i := sort.Search(len(r.load), func(i int) bool { return at(i) >= p.from })
		for ; sum <= r.length()/10 && i < len(r.load) && at(i) <= p.to; i++ {
			r.inOutages[i] = true
		}
	}
	for i := range r.load {
		if r.refused(i) {
			r.losses = append(r.losses, r.elapsed(r.load[i].Sent))
		}
	}
}

// findOutages finds stretches, longer than half of the link's time without arrivals, in which all packets were lost
// while more than three packets left the queue, or longer ones with almost no backlog: a queue with space admits
// packets, and a policer passes its rate. Packets that filled the queue behind the last one before it were lost
// too, and are missing until the first packet after it has arrived.
func (r *run) findOutages() {
	base, packet := r.base.least, float64(r.bytes)
	n, until, most := 0, time.Duration(math.MinInt64), 0.0
	flush := func(i int, bytes float64) {
		if n == 0 {
			return
		}
		length := r.elapsed(r.load[i-1].Sent) - r.elapsed(r.load[i-n].Sent)
		if length > r.pauseLimit/2 && (most-bytes > sharpPackets*packet || length > r.pauseLimit && bytes <= (shallow+1)*packet) {
			r.outages++
			for k := i - n; k < i; k++ {
				r.inOutages[k] = true
			}
			if i == len(r.load) {
				r.endOutage = length
			} else {
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
			r.inOutages[i] = true
		default:
			if n++; n == 1 {
				most = bytes
			}
			last = bytes
		}
	})
	flush(len(r.load), last)
	for _, in := range r.inOutages {
		if in {
			r.outagePackets++
		}
	}
}

// mostlyOut reports whether more than half of the packets were lost in outages.
func (r *run) mostlyOut() bool { return 2*r.outagePackets > len(r.load) }

// interruption describes an interruption of the path that leaves a link unknown that was not full before: an outage that lasted to
// the end of the load, or outages with most of its packets. Empty: there is none.
func (r *run) interruption() string {
	switch {
	case r.endOutage >= max(endOutage, r.length()/endPart):
		return fmt.Sprintf("no packet of the load arrived from second %.0f on", seconds(r.length()-r.endOutage))
	case r.mostlyOut():
		return fmt.Sprintf("%s of %d were lost in %s, in which no packet arrived", unit.Counted(r.outagePackets, "packet", "packets"), len(r.load), unit.Counted(r.outages, "outage", "outages"))
	}
	return ""
}

// refused reports whether a packet was lost outside of such a stretch.
func (r *run) refused(i int) bool { return r.load[i].Arrived == 0 && !r.inOutages[i] }

// spanText is an interval of bytes in words; one value if both ends have the same text.
func spanText(low, high float64) string {
	from, to := unit.Bytes.Format(low), unit.Bytes.Format(high)
	if from == to {
		return "about " + from
	}
	return from + " to " + to
}
