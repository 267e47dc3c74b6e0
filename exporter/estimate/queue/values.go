package queue

import (
	"fmt"
	"math"
	"slices"
	"time"

	"oneway.example/exporter/estimate/orderstat"
)

// fill sets the values of the state.
func (r *run) fill(res *Result, best *evaluation, low, high, others float64) {
	if r.base.n > 0 {
		// With the largest base the backlog is smallest; packets delayed by a host are left out.
		top := r.evaluate(min(r.base.high, best.base+r.base.high-r.base.least))
		most := top.admitted.Quantile(0.9)
		if res.State != NotFilled {
			most = min(most, low)
		}
		res.AtLeast = max(most-float64(r.bytes), 0)
	}
	packet := float64(r.bytes)
	edge := min(best.least, best.most) - packet/2
	full := orderstat.Sorted(r.full(best.base, edge))
	if len(full) == 0 || res.State != Filled && res.State != TimeLimited {
		return
	}
	// If it is uncertain which packets filled the queue, so is the smallest of their delays.
	if sharp := high-low <= 1.5*packet; sharp {
		res.Full = Duration{Value: full[0], Bound: r.o.StampError + r.txUncertainty, OK: true}
	}
	if r.base.n == 0 {
		res.Evidence += "; without packets before or after the load the delay of the empty path is unknown"
		return
	}
	bound := 2*r.o.StampError + max(r.txUncertainty, r.idleUncertainty) + r.base.early + r.base.moved.Abs() + r.drift(r.length())
	margin := 0.0
	if res.Varies || r.outages > 0 || high-low > 1.5*packet {
		margin = 2*packet + 2*best.random*best.least
	}
	sets := r.otherSets(best, low, high, margin)
	for i, q := range [...]float64{0.05, 0.5, 0.95} {
		d, blur := orderstat.Quantile(full, q), time.Duration(0)
		for _, set := range sets {
			blur = max(blur, (d - orderstat.Quantile(set, q)).Abs())
		}
		// A fifth of the link may be cross traffic.
		if high-low > 2*sharpPackets*packet || res.Varies && (!best.enoughPackets || best.random > lossy || r.outages > 0 || r.window().length() < minRateTime) {
			blur = max(blur, orderstat.Quantile(full, q+0.2)-orderstat.Quantile(full, max(q-0.2, 0)))
		}
		res.Delay[i] = Duration{Value: d - r.base.least, Bound: bound + blur, OK: bound+blur < d-r.base.least}
	}
	if res.State == Filled {
		likely := [2]float64{min(max(best.least, low), max(best.most, low), high), max(min(best.least, high), min(best.most, high), low) + packet}
		// A packet that left the queue within the uncertainty of the base may be counted or not.
		doubt := min(packet/2, res.Rate.Value*seconds(r.base.high-r.base.low+r.o.StampError))
		low, high = low-doubt, max(high, low+packet)+doubt
		// Packets lost behind the queue filled it too and are not counted. If their share is unknown, all missing
		// ones may be of them.
		behind := others
		if best.enoughPackets {
			behind = best.upTo
		}
		if behind*best.least > packet/10 {
			high = max(high, best.least+packet+doubt)
		}
		high /= 1 - min(behind, 0.5)
		if high > maxWidth*low {
			res.Evidence += fmt.Sprintf("; its size is unknown, between %.0f and %.0f bytes", low, high)
			return
		}
		res.Size = Amount{Value: (low + high) / 2, Bound: (high - low) / 2, OK: true}
		margin := max(sharpPackets*packet, sharpShare*likely[1])
		res.Size.OneSided = res.Size.Value < likely[0]-margin || res.Size.Value > likely[1]+margin
	}
}

// otherSets are other sets of packets that may have filled the queue, within the uncertainty of its limit and of
// the base.
func (r *run) otherSets(best *evaluation, low, high, margin float64) (sets [][]time.Duration) {
	packet := float64(r.bytes)
	add := func(base time.Duration, edge float64) {
		full := r.full(base, edge)
		sets = append(sets, orderstat.Sample(len(full), func(i int) time.Duration { return full[i] }))
	}
	if add(best.base, low-packet/2-margin); margin == 0 {
		return sets
	}
	add(best.base, min(high-1.5*packet+margin, best.least-packet/2))
	for _, base := range r.acceptedBases {
		l := r.evaluate(base)
		add(base, l.least-packet/2)
		add(base, min(l.least, l.most)-packet/2-margin)
	}
	return sets
}

// full are the delays of the packets with that backlog.
func (r *run) full(base time.Duration, edge float64) (delays []time.Duration) {
	r.backlogs(base, func(i int, bytes float64) {
		if d, ok := r.delay(&r.load[i]); ok && bytes >= edge {
			delays = append(delays, d)
		}
	})
	return delays
}

// loaded is the time in which the link always had a packet of the load, by the losses: from the first to the last,
// or the window if there are few.
func (r *run) loaded() part {
	w := r.window()
	if len(r.losses) < minLosses {
		return w
	}
	p := part{max(r.losses[0], w.from), min(r.losses[len(r.losses)-1], w.to)}
	if p.length() < time.Second {
		return w
	}
	return p
}

// A link of constant rate has about equal gaps in blocks of so many arrivals: the quantile of the given share is
// the same in all but for a ratio.
const (
	block      = 50
	blockShare = 0.45
	oneRate    = 0.03
	// minOthers is the least reported share.
	minOthers = 0.03
	// shortest is the shortest time that has a rate.
	shortest = 100 * time.Millisecond
)

// others is the share of cross traffic of a link of constant rate in a part, with a share lost of the test's
// packets behind the queue; it is unknown if the rate varies. Two consecutive packets of the test arrive at the
// interval given by the link's rate, or at a larger one with another packet in between.
func (r *run) others(w part, lost float64) (share float64, known bool) {
	var gaps, least []float64
	arrived, span := 0.0, 0.0
	for i := 1; i < len(r.arrived); i++ {
		a, b := r.arrived[i-1], r.arrived[i]
		if !w.holds(b.at-r.shift) || b.at-a.at > r.pauseLimit {
			continue
		}
		arrived, span = arrived+b.bytes-a.bytes, span+seconds(b.at-a.at)
		if gaps = append(gaps, seconds(b.at-a.at)/(b.bytes-a.bytes)); len(gaps) == block {
			slices.Sort(gaps)
			least = append(least, orderstat.Quantile(gaps, blockShare))
			gaps = gaps[:0]
		}
	}
	slices.Sort(least)
	usual := orderstat.Quantile(least, 0.5)
	if len(least) < 5 || usual <= 0 || orderstat.Quantile(least, 0.98)-orderstat.Quantile(least, 0.02) > oneRate*usual {
		return 0, false
	}
	// This number of packets could occur by chance.
	chance := 3 / float64(block*len(least))
	return max(1-arrived/(1-min(lost, 0.5))/span*usual-chance, 0), true
}

// rate sets the receive rate of a part, by the second.
func (r *run) rate(res *Result, w part) {
	n := max(int(w.length()/time.Second), 1)
	if w.length() < shortest || r.arrived[len(r.arrived)-1].at-r.arrived[0].at < shortest {
		return
	}
	width := w.length() / time.Duration(n)
	bins := r.rates(w.from, width, n)
	slices.Sort(bins)
	// The error of a second's bytes is that of its ends, from errors of an arrival time, and a packet.
	off := orderstat.Quantile(bins, 0.5)*seconds(2*r.o.StampError+r.txUncertainty)/seconds(width) + float64(r.bytes)/seconds(width)/float64(n)
	for i, q := range [...]float64{0.05, 0.5, 0.95} {
		res.Rates[i] = orderstat.Quantile(bins, q)
	}
	res.Rate = Amount{Value: res.Rates[1], Bound: off, OK: true}
	// What arrives while the sender pauses shows the least that the link carries. For a few seconds, parts of them give the variation.
	fastest := orderstat.Quantile(orderstat.Sorted(r.everyRate(w.from, width, n)), 0.95)
	if few := 5; n < few {
		width = w.length() / time.Duration(few)
		bins = orderstat.Sorted(r.rates(w.from, width, few))
	}
	res.Varies = max(orderstat.Quantile(bins, 0.95), fastest)-orderstat.Quantile(bins, 0.05) > max(0.1*res.Rate.Value, 4*float64(r.bytes)/seconds(width))
}

// rates are the receive rates in each of n parts, a packet being spread evenly over the time since the previous
// one, so that the error is less than a packet. Parts in which the sender paused are left out, unless all are: they
// do not show the link's rate. Packets queued before a pause arrive in it.
func (r *run) rates(begin, width time.Duration, n int) []float64 {
	all := r.everyRate(begin, width, n)
	some := slices.Clone(all)
	for i := 1; i < len(r.load); i++ {
		from, to := r.elapsed(r.load[i-1].Sent), r.elapsed(r.load[i].Sent)
		for k := max((from-begin)/width, 0); to-from > r.pauseLimit && k <= (to-begin+width/4)/width && k < time.Duration(n); k++ {
			some[k] = math.NaN()
		}
	}
	if some = slices.DeleteFunc(some, math.IsNaN); len(some) > 0 {
		return some
	}
	return all
}

// everyRate are the receive rates in each of n parts.
func (r *run) everyRate(begin, width time.Duration, n int) []float64 {
	all := make([]float64, max(n, 0))
	for k := range all {
		from := begin + time.Duration(k)*width
		all[k] = r.rateOf(part{from, from + width})
	}
	return all
}

// throughput is the median of the whole seconds in a part in which the sender did not pause.
func (r *run) throughput(w part) float64 {
	first := (w.from + time.Second - 1).Truncate(time.Second)
	return orderstat.Median(orderstat.Sorted(r.rates(first, time.Second, int((w.to-first)/time.Second))))
}

// series are the load in bins of whole seconds, and its first seconds in finer ones.
func (r *run) series() (perSecond, first []Bin) {
	load := r.length() + 1
	width := (load + MaxBins*time.Second - 1) / (MaxBins * time.Second) * time.Second
	// Whole milliseconds: loads of one plan have the same bins, though their lengths differ by what the host was late.
	fine := max((min(First, load) / MaxBins).Round(time.Millisecond), time.Millisecond)
	return r.bins(width, int((load+width-1)/width)), r.bins(fine, min(MaxBins, int((load+fine-1)/fine)))
}

// bins divides the load from its begin into n bins.
func (r *run) bins(width time.Duration, n int) []Bin {
	bins := make([]Bin, n)
	delays := make([][]time.Duration, n)
	for i := range r.load {
		p := &r.load[i]
		if p.Arrived != 0 {
			if k := max(r.arrivedAt(p), 0) / width; k < time.Duration(n) {
				bins[k].Received += float64(p.IPBytes)
			}
		}
		k := max(r.elapsed(p.Sent), 0) / width
		if k >= time.Duration(n) {
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
		b, delays := &bins[k], orderstat.Sorted(delays[k])
		b.Elapsed, b.Count = time.Duration(k+1)*width, len(delays)
		b.Sent /= seconds(width)
		b.Received /= seconds(width)
		b.Min, b.Median, b.Max = orderstat.Quantile(delays, 0), orderstat.Quantile(delays, 0.5), orderstat.Quantile(delays, 1)
	}
	return bins
}
