package queue

import (
	"fmt"
	"math"
	"slices"
	"time"

	"oneway.example/exporter/estimate/order"
)

// fill sets the values that the state has.
func (r *run) fill(res *Result, best *look, low, high, others float64) {
	if r.base.n > 0 {
		// With the largest base less seems to have waited; what was held up is left out.
		top := r.look(min(r.base.high, best.base+r.base.high-r.base.least))
		most := top.admitted.Quantile(0.9)
		if res.State != NotFilled {
			most = min(most, low)
		}
		res.AtLeast = max(most-float64(r.bytes), 0)
	}
	packet := float64(r.bytes)
	edge := min(best.least, best.most) - packet/2
	full := order.Sorted(r.full(best.base, edge))
	if len(full) == 0 || res.State != Filled && res.State != TimeLimited {
		return
	}
	// Where it is in doubt which packets filled it, the smallest of their delays is, too.
	if sharp := high-low <= 1.5*packet; sharp {
		res.Full = Duration{Value: full[0], Bound: r.o.StampError + r.txUncertainty, OK: true}
	}
	if r.base.n == 0 {
		res.Evidence += "; without packets before the load or after it nothing is known of the empty path"
		return
	}
	bound := 2*r.o.StampError + r.txUncertainty + r.base.early + r.base.moved + r.drift(r.length())
	margin := 0.0
	if res.Varies || r.fades > 0 || high-low > 1.5*packet {
		margin = 2*packet + 2*best.random*best.least
	}
	sets := r.otherSets(best, low, high, margin)
	for i, q := range [...]float64{0.05, 0.5, 0.95} {
		d, blur := order.Quantile(full, q), time.Duration(0)
		for _, set := range sets {
			blur = max(blur, (d - order.Quantile(set, q)).Abs())
		}
		// A fifth of them may be others.
		if high-low > 2*sharpPackets*packet || res.Varies && (!best.tells || best.random > lossy || r.fades > 0 || r.window().length() < brief) {
			blur = max(blur, order.Quantile(full, q+0.2)-order.Quantile(full, max(q-0.2, 0)))
		}
		res.Delay[i] = Duration{Value: d - r.base.least, Bound: bound + blur, OK: bound+blur < d-r.base.least}
	}
	if res.Full.OK {
		res.PaperBytes = seconds(full[0]-r.base.least) * res.Rate.Value
	}
	if res.State == Filled {
		// A packet that left the queue while the base is in doubt may be counted or not.
		doubt := min(packet/2, res.Rate.Value*seconds(r.base.high-r.base.low+r.o.StampError))
		low, high = low-doubt, max(high, low+packet)+doubt
		// What is lost behind the queue filled it, too, and is not counted. Where its share is not
		// known, all that is missing may be it.
		behind := others
		if best.tells {
			behind = best.upTo
		}
		if behind*best.least > packet/10 {
			high = max(high, best.least+packet+doubt)
		}
		high /= 1 - min(behind, 0.5)
		if high > mostWide*low {
			res.Evidence += fmt.Sprintf("; its size is not told: it may be anything from %.0f to %.0f bytes", low, high)
			return
		}
		res.Size = Amount{Value: (low + high) / 2, Bound: (high - low) / 2, OK: true}
	}
}

// otherSets are other packets that may have filled the queue: which they were is as uncertain as its limit,
// and as the base.
func (r *run) otherSets(best *look, low, high, margin float64) (sets [][]time.Duration) {
	packet := float64(r.bytes)
	add := func(base time.Duration, edge float64) {
		full := r.full(base, edge)
		sets = append(sets, order.Sample(len(full), func(i int) time.Duration { return full[i] }))
	}
	if add(best.base, low-packet/2-margin); margin == 0 {
		return sets
	}
	add(best.base, min(high-1.5*packet+margin, best.least-packet/2))
	for _, base := range r.believed {
		l := r.look(base)
		add(base, l.least-packet/2)
		add(base, min(l.least, l.most)-packet/2-margin)
	}
	return sets
}

// full are the delays of the packets that the queue held that many bytes with.
func (r *run) full(base time.Duration, edge float64) (delays []time.Duration) {
	r.backlogs(base, func(i int, bytes float64) {
		if d, ok := r.delay(&r.load[i]); ok && bytes >= edge {
			delays = append(delays, d)
		}
	})
	return delays
}

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
		arrived, span = arrived+b.bytes-a.bytes, span+seconds(b.at-a.at)
		if gaps = append(gaps, seconds(b.at-a.at)/(b.bytes-a.bytes)); len(gaps) == block {
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

// rate is at what rate bytes arrived in a part, by the second.
func (r *run) rate(res *Result, w part) {
	n := max(int(w.length()/time.Second), 1)
	if w.length() < shortest || r.arrived[len(r.arrived)-1].at-r.arrived[0].at < shortest {
		return
	}
	width := w.length() / time.Duration(n)
	bins := r.rates(w.from, width, n)
	slices.Sort(bins)
	// A second's ends are off by what shifts an arrival, and by a packet.
	off := order.Quantile(bins, 0.5)*seconds(2*r.o.StampError+r.txUncertainty)/seconds(width) + float64(r.bytes)/seconds(width)/float64(n)
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

// rates are at which bytes arrived in each of n parts, a packet counted evenly over the time since
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
	first := (w.from + time.Second - 1).Truncate(time.Second)
	return order.Median(order.Sorted(r.rates(first, time.Second, int((w.to-first)/time.Second))))
}

// series are the load in bins of whole seconds, and its first seconds in finer ones.
func (r *run) series() (perSecond, first []Bin) {
	load := r.length() + 1
	width := (load + MaxBins*time.Second - 1) / (MaxBins * time.Second) * time.Second
	fine := max(min(First, load)/MaxBins, time.Millisecond)
	return r.bins(width, int((load+width-1)/width)), r.bins(fine, min(MaxBins, int((load+fine-1)/fine)))
}

// bins is the load from its begin in n bins.
func (r *run) bins(width time.Duration, n int) []Bin {
	bins := make([]Bin, n)
	delays := make([][]time.Duration, n)
	for i := range r.load {
		p := &r.load[i]
		if p.Arrived != 0 {
			if k := int(max(r.arrivedAt(p), 0) / width); k < n {
				bins[k].Received += float64(p.IPBytes)
			}
		}
		k := int(max(r.elapsed(p.Sent), 0) / width)
		if k >= n {
			continue
		}
		b := &bins[k]
		b.Sent += float64(p.IPBytes)
		b.Packets++
		if p.Arrived == 0 {
			b.Lost++
		} else if d, ok := r.delay(p); ok {
			delays[k] = append(delays[k], d)
		}
	}
	for k := range bins {
		b, delays := &bins[k], order.Sorted(delays[k])
		b.Elapsed, b.Count = time.Duration(k+1)*width, len(delays)
		b.Sent /= seconds(width)
		b.Received /= seconds(width)
		b.Min, b.Median, b.Max = order.Quantile(delays, 0), order.Quantile(delays, 0.5), order.Quantile(delays, 1)
	}
	return bins
}
