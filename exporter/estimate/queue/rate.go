package queue

import (
	"math"
	"slices"
	"time"

	"oneway.example/exporter/estimate/order"
)

// loaded is the time in which the link was never without a packet of the load, as far as losses
// tell: from the first to the last of them, or the window where there are few.
func (r *run) loaded() part {
	w := r.window()
	if len(r.losses) < few {
		return w
	}
	p := part{max(r.losses[0], w.from), min(r.losses[len(r.losses)-1], w.to)}
	if p.length() < time.Second {
		return w
	}
	return p
}

// A link of one rate shows in blocks of so many arrivals: the gaps that the given share of them keeps
// below are the same in all of them but for a ratio.
const (
	block      = 50
	blockShare = 0.45
	oneRate    = 0.03
	// leastOthers is the share from which on it is worth a word.
	leastOthers = 0.03
	// shortest is the shortest time that has a rate.
	shortest = 100 * time.Millisecond
)

// others is the share of a link of one rate that others' packets had in a part, of the test's
// packets a share being lost behind the queue; where the link's rate moves it is not known.
// Two of the test's packets that left one after the other arrive as far apart as the link's rate has
// it, and farther where another's was between them.
func (r *run) others(w part, lost float64) (share float64, known bool) {
	var gaps, least []float64
	arrived, span := 0.0, 0.0
	for i := 1; i < len(r.arrived); i++ {
		a, b := r.arrived[i-1], r.arrived[i]
		if !w.holds(b.at-r.shift) || b.at-a.at > r.stood {
			continue
		}
		arrived, span = arrived+b.octets-a.octets, span+seconds(b.at-a.at)
		if gaps = append(gaps, seconds(b.at-a.at)/(b.octets-a.octets)); len(gaps) == block {
			slices.Sort(gaps)
			least = append(least, order.Quantile(gaps, blockShare))
			gaps = gaps[:0]
		}
	}
	slices.Sort(least)
	usual := order.Quantile(least, 0.5)
	if len(least) < 5 || usual <= 0 || order.Quantile(least, 0.98)-order.Quantile(least, 0.02) > oneRate*usual {
		return 0, false
	}
	// So many packets are too few to tell.
	chance := 3 / float64(block*len(least))
	return max(1-arrived/(1-min(lost, 0.5))/span*usual-chance, 0), true
}

// rate is at what rate octets arrived in a part, by the second.
func (r *run) rate(res *Result, w part) {
	n := max(int(w.length()/time.Second), 1)
	if w.length() < shortest || r.arrived[len(r.arrived)-1].at-r.arrived[0].at < shortest {
		return
	}
	width := w.length() / time.Duration(n)
	bins := r.rates(w.from, width, n)
	slices.Sort(bins)
	// A second's ends are off by what shifts an arrival, and by a packet.
	off := order.Quantile(bins, 0.5)*seconds(2*r.o.StampError+r.held)/seconds(width) + float64(r.bytes)/seconds(width)/float64(n)
	for i, q := range [...]float64{0.05, 0.5, 0.95} {
		res.Rates[i] = order.Quantile(bins, q)
	}
	res.Rate = Amount{Value: res.Rates[1], Bound: off, OK: true}
	// Of a few seconds parts tell it, too.
	if few := 5; n < few {
		width = w.length() / time.Duration(few)
		bins = order.Sorted(r.rates(w.from, width, few))
	}
	res.Varies = order.Quantile(bins, 0.95)-order.Quantile(bins, 0.05) > max(0.1*res.Rate.Value, 4*float64(r.bytes)/seconds(width))
}

// rates are at which octets arrived in each of n parts, a packet counted evenly over the time since
// the one before it: so a part is not off by a packet. Parts in which the sender paused are left out, unless
// all are: what came through in them says nothing of the link. What waited before a pause arrives in it.
func (r *run) rates(begin, width time.Duration, n int) []float64 {
	all := make([]float64, max(n, 0))
	for k := range all {
		from := begin + time.Duration(k)*width
		all[k] = r.rateOf(part{from, from + width})
	}
	some := slices.Clone(all)
	for i := 1; i < len(r.load); i++ {
		from, to := r.elapsed(r.load[i-1].Sent), r.elapsed(r.load[i].Sent)
		for k := max(int((from-begin)/width), 0); to-from > r.stood && k <= int((to-begin+width/4)/width) && k < n; k++ {
			some[k] = math.NaN()
		}
	}
	if some = slices.DeleteFunc(some, math.IsNaN); len(some) > 0 {
		return some
	}
	return all
}

// throughput is the median of the whole seconds in a part in which the sender did not pause.
func (r *run) throughput(w part) float64 {
	first := w.from.Truncate(time.Second)
	if first < w.from {
		first += time.Second
	}
	return order.Median(order.Sorted(r.rates(first, time.Second, int((w.to-first)/time.Second))))
}
