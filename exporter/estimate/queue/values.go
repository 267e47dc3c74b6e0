package queue

import (
	"fmt"
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
		res.Full = Duration{Value: full[0], Bound: r.o.StampError + r.held, OK: true}
	}
	if r.base.n == 0 {
		res.Evidence += "; without packets before the load or after it nothing is known of the empty path"
		return
	}
	bound := 2*r.o.StampError + r.held + r.base.early + r.base.moved + r.drift(r.length())
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
			res.Evidence += fmt.Sprintf("; its size is not told: it may be anything from %.0f to %.0f octets", low, high)
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

// full are the delays of the packets that the queue held that many octets with.
func (r *run) full(base time.Duration, edge float64) (delays []time.Duration) {
	r.backlogs(base, func(i int, octets float64) {
		if d, ok := r.delay(&r.load[i]); ok && octets >= edge {
			delays = append(delays, d)
		}
	})
	return delays
}
