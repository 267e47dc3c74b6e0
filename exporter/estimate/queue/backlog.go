package queue

import (
	"math"
	"time"

	"oneway.example/exporter/estimate/orderstat"
)

// evaluation is the result of the load under the assumption that the path's delay without queue is base.
type evaluation struct {
	base time.Duration
	// admitted and refused count the packets that arrived, and those that did not, by the bytes that the queue had
	// to hold with each.
	admitted, refused orderstat.Histogram
	// least is the largest backlog admitted, without the last few; most is the smallest refused, without the first
	// few.
	least, most float64
	// random is the share lost of the packets for which there certainly was space, excess the share of the losses
	// that random loss does not explain.
	random, excess float64
	// enoughPackets: there are enough packets for random, which is at most upTo.
	enoughPackets bool
	upTo          float64
}

// spread is by how much refused packets needed less than admitted ones. For packets of one size the next one that
// would have been admitted is larger by a packet.
func (l *evaluation) spread(packet float64) float64 { return max(l.least-l.most, -packet) }

const (
	// binShare is the width of a bin of counts as a share of a packet, maxBins the largest number of bins.
	binShare = 1. / 16
	maxBins  = 1 << 15
	// tail is the share of the largest admitted backlogs that is left out, head that of the smallest refused:
	// packets delayed in the receiving host appear to have a larger backlog.
	tail = 0.02
	head = 0.05
	// space is the share of the admitted backlog below which a packet would certainly have been admitted; enough
	// packets below it give the share lost at random.
	space      = 0.8
	minPackets = 200
)

// backlogs calls each with the bytes that the queue had to hold with each packet of the load, including it: of the
// bytes sent before, those that arrive later than base after it was sent. Only packets that arrive are counted.
func (r *run) backlogs(base time.Duration, each func(i int, bytes float64)) {
	k, sent, gone := 0, r.ahead, 0.0
	for i := range r.load {
		p := &r.load[i]
		for t := r.elapsed(p.Sent) + base; k < len(r.passed) && r.passed[k].at <= t; k++ {
			gone = r.passed[k].bytes
		}
		own := float64(p.IPBytes)
		each(i, max(sent-gone, 0)+own)
		if p.Arrived != 0 {
			sent += own
		}
	}
}

// evaluate evaluates the backlogs for a base.
func (r *run) evaluate(base time.Duration) (l evaluation) {
	l.base = base
	width := max(binShare*float64(r.bytes), r.most/maxBins)
	n := int(r.most/width) + 1
	l.admitted, l.refused = orderstat.NewHistogram(width, n), orderstat.NewHistogram(width, n)
	r.backlogs(base, func(i int, bytes float64) {
		p := &r.load[i]
		switch {
		case r.inOutages[i]:
		case p.Arrived == 0:
			l.refused.Add(bytes)
		case p.TXUncertainty <= r.txUncertainty:
			l.admitted.Add(bytes)
		}
	})
	l.edges()
	return l
}

// edges finds the backlogs at which packets are refused. Random loss does not depend on the backlog: its share of
// packets with a small backlog is its share of all.
func (l *evaluation) edges() {
	l.least = l.admitted.Quantile(1 - tail)
	lost, of := l.refused.Below(space*l.least), l.admitted.Below(space*l.least)
	if l.enoughPackets = lost+of > minPackets; l.enoughPackets {
		l.random = float64(lost) / float64(lost+of)
		l.upTo = (float64(lost) + 2*math.Sqrt(float64(lost)) + 1) / float64(lost+of)
	}
	odds := l.random / (1 - min(l.random, 0.99))
	excess := max(float64(l.refused.N)-odds*float64(l.admitted.N), 0)
	if l.refused.N == 0 {
		l.most = l.least
		return
	}
	l.excess = excess / float64(l.refused.N)
	above := 0.0
	for i, n := range l.refused.Bins {
		above += float64(n) - odds*float64(l.admitted.Bins[i])
		if n > 0 {
			l.most = float64(i) * l.refused.Width
			if above >= head*excess {
				return
			}
		}
	}
}

// search tries so many steps of the base below the least delay and above.
const (
	stepsBelow = 6
	stepsAbove = 12
)

// search evaluates the run for all possible bases. If the link's rate varies, a wrong base blurs the limit between
// admitted and refused: the bases with the least blur are accepted, and the queue's limits enclose those of all of
// them.
func (r *run) search() (best evaluation, low, high float64) {
	// The smaller the base, the larger the backlog.
	r.backlogs(min(r.base.low, r.base.least), func(_ int, bytes float64) { r.most = max(r.most, bytes) })
	evaluations := make([]evaluation, 0, stepsBelow+stepsAbove)
	for i := range stepsAbove {
		f := math.Pow(float64(i)/(stepsAbove-1), 2.5)
		evaluations = append(evaluations, r.evaluate(r.base.least+duration(f*seconds(r.base.high-r.base.least))))
	}
	for i := range stepsBelow {
		evaluations = append(evaluations, r.evaluate(r.base.least-duration(float64(i+1)/stepsBelow*seconds(r.base.least-r.base.low))))
	}
	packet := float64(r.bytes)
	best = evaluations[0]
	for _, l := range evaluations {
		if l.spread(packet) < best.spread(packet) && l.excess >= best.excess/2 {
			best = l
		}
	}
	low, high, r.acceptedBases = math.Inf(1), 0, [2]time.Duration{best.base, best.base}
	for _, l := range evaluations {
		if l.spread(packet) <= best.spread(packet)+1.5*packet && l.excess >= best.excess/2 {
			low, high = min(low, l.least, l.most), max(high, l.least, l.most)
			r.acceptedBases = [2]time.Duration{min(r.acceptedBases[0], l.base), max(r.acceptedBases[1], l.base)}
		}
	}
	r.waits = make([]float64, len(r.load))
	r.backlogs(best.base, func(i int, bytes float64) { r.waits[i] = bytes })
	return best, low, high
}
