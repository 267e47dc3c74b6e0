package queue

import (
	"math"
	"time"

	"oneway.example/exporter/estimate/order"
)

// look is what the load met if the path's delay without queue is base.
type look struct {
	base time.Duration
	// admitted and refused count the packets that arrived, and those that did not, by the bytes
	// that the queue had to hold with each.
	admitted, refused order.Counts
	// least is the largest that was admitted, but for the last few; most the smallest that was
	// refused, but for the first few.
	least, most float64
	// random is the share lost of the packets for which there surely was room, excess the share
	// of the losses that those do not explain.
	random, excess float64
	// tells: there are enough packets to know random, which is upTo at the most.
	tells bool
	upTo  float64
}

// spread is by how much packets were refused that needed less than others that were admitted. Of
// packets of one size the next one that would have been admitted is a packet larger.
func (l *look) spread(packet float64) float64 { return max(l.least-l.most, -packet) }

const (
	// bin is the width of a bin of counts as a share of a packet, most is how many bins there are.
	binShare = 1. / 16
	mostBins = 1 << 15
	// tail is the share of the admitted that is left out at the top, head that of the refused at
	// the bottom: what was held up in the receiving host looks as if it had met more.
	tail = 0.02
	head = 0.05
	// space is the share of what was admitted, of which a packet that needs no more would have been
	// admitted surely; enough packets there tell the share that is lost at random.
	space  = 0.8
	enough = 200
)

// backlogs calls each with what the queue had to hold with each packet of the load, itself counted: of
// the bytes sent before, those that arrive later than base after it left. Only packets that
// arrive are counted.
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

// look counts the backlogs.
func (r *run) look(base time.Duration) (l look) {
	l.base = base
	width := max(binShare*float64(r.bytes), r.most/mostBins)
	n := int(r.most/width) + 1
	l.admitted, l.refused = order.NewCounts(width, n), order.NewCounts(width, n)
	r.backlogs(base, func(i int, bytes float64) {
		p := &r.load[i]
		switch {
		case r.faded[i]:
		case p.Arrived == 0:
			l.refused.Add(bytes)
		case p.TXUncertainty <= r.txUncertainty:
			l.admitted.Add(bytes)
		}
	})
	l.edges()
	return l
}

// edges finds where packets are refused. What is lost at random is lost whatever waits: its share
// among the packets that need little is its share of all.
func (l *look) edges() {
	l.least = l.admitted.Quantile(1 - tail)
	lost, of := l.refused.Below(space*l.least), l.admitted.Below(space*l.least)
	if l.tells = lost+of > enough; l.tells {
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

// Where the base may be, it is looked for in so many steps below the least delay and above.
const (
	stepsBelow = 6
	stepsAbove = 12
)

// search looks at the run from every base that it may have. Where the link's rate moves, a wrong
// base blurs what was admitted and what was refused: the bases that blur it least are believed, and
// the queue's limits are what any of them says.
func (r *run) search() (best look, low, high float64) {
	// The smaller the base, the more seems to wait.
	r.backlogs(min(r.base.low, r.base.least), func(_ int, bytes float64) { r.most = max(r.most, bytes) })
	looks := make([]look, 0, stepsBelow+stepsAbove)
	for i := range stepsAbove {
		f := math.Pow(float64(i)/(stepsAbove-1), 2.5)
		looks = append(looks, r.look(r.base.least+duration(f*seconds(r.base.high-r.base.least))))
	}
	for i := range stepsBelow {
		looks = append(looks, r.look(r.base.least-duration(float64(i+1)/stepsBelow*seconds(r.base.least-r.base.low))))
	}
	packet := float64(r.bytes)
	best = looks[0]
	for _, l := range looks {
		if l.spread(packet) < best.spread(packet) && l.excess >= best.excess/2 {
			best = l
		}
	}
	low, high, r.believed = math.Inf(1), 0, [2]time.Duration{best.base, best.base}
	for _, l := range looks {
		if l.spread(packet) <= best.spread(packet)+1.5*packet && l.excess >= best.excess/2 {
			low, high = min(low, l.least, l.most), max(high, l.least, l.most)
			r.believed = [2]time.Duration{min(r.believed[0], l.base), max(r.believed[1], l.base)}
		}
	}
	r.waits = make([]float64, len(r.load))
	r.backlogs(best.base, func(i int, bytes float64) { r.waits[i] = bytes })
	return best, low, high
}
