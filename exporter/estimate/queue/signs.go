package queue

import (
	"math"
	"slices"
	"time"

	"oneway.example/exporter/estimate/order"
)

// refusedAbove compares the half of the lost packets that needed most with those admitted that needed
// more than these by a margin: its share of both. A queue that drops at its tail admits next to
// none of these.
func (l *look) refusedAbove(margin float64) float64 {
	edge := l.refused.at(0.5)
	lost, admitted := l.refused.n-l.refused.below(edge), l.admitted.n-l.admitted.below(edge+margin)
	return float64(lost) / float64(lost+admitted)
}

// growing tells whether less than a tenth more waited in the middle of the load than nothing, or
// more at its end than in the middle: what keeps a queue at a length is no chance.
func (r *run) growing(best *look) bool {
	var middle, end []float64
	n := len(r.load)
	r.backlogs(best.base, func(i int, octets float64) {
		switch {
		case i > n*45/100 && i < n*55/100:
			middle = append(middle, octets)
		case i > n*9/10:
			end = append(end, octets)
		}
	})
	slices.Sort(middle)
	slices.Sort(end)
	return order.Quantile(middle, 0.5) <= (shallow+1)*float64(r.bytes) || order.Quantile(end, 0.5) > 1.3*order.Quantile(middle, 0.5)
}

// last is the most octets that waited with a packet sent after the last loss, zero if losses go on to
// the end of the load. A queue that drops at its tail refuses packets to the end; one that drops at
// its head gives all that it holds then, what it would have dropped with them.
func (r *run) last(best *look) (most float64) {
	var runs []float64
	n := 0.0
	r.backlogs(best.base, func(i int, octets float64) {
		if r.load[i].Arrived == 0 {
			runs, n, most = append(runs, n), 0, 0
			return
		}
		n, most = n+1, max(most, octets)
	})
	slices.Sort(runs)
	if n <= headRuns*order.Quantile(runs, 0.95) {
		return 0
	}
	return most
}

// staysFull tells whether what waits between one loss and the next stays near the limit, half of the
// times: where packets are dropped early the queue drains after it.
func (r *run) staysFull(best *look) bool {
	var least []float64
	low, some := math.Inf(1), false
	r.backlogs(best.base, func(i int, octets float64) {
		if r.load[i].Arrived != 0 {
			low = min(low, octets)
			return
		}
		if some && !math.IsInf(low, 1) {
			least = append(least, low)
		}
		low, some = math.Inf(1), true
	})
	slices.Sort(least)
	limit := min(best.least, best.most)
	return limit <= (shallow+1)*float64(r.bytes) || order.Quantile(least, 0.5) > stays*limit
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
	k, sent := 0, r.ahead
	for i := range r.load {
		p := &r.load[i]
		octets := float64(p.IPBytes)
		var gone float64
		k, gone = r.drained(k, r.elapsed(p.Sent)+best.base)
		if p.Arrived == 0 {
			refused = append(refused, sent-gone+octets)
			continue
		}
		admitted = append(admitted, sent-gone+octets)
		sent += octets
	}
	slices.Sort(admitted)
	slices.Sort(refused)
	packet := float64(r.bytes)
	above, _ := slices.BinarySearch(admitted, order.Quantile(refused, 0.5)+0.3*packet)
	return order.Quantile(refused, 0.05) < order.Quantile(admitted, 0.5)-0.5*packet || len(admitted)-above > len(refused)/10
}

// drained is how many octets had arrived at t, the next arrival after it, numbered from k on, in
// part.
func (r *run) drained(k int, t time.Duration) (next int, octets float64) {
	for k < len(r.passed) && r.passed[k].at <= t {
		k++
	}
	switch k {
	case 0:
		return 0, 0
	case len(r.passed):
		return k, r.passed[k-1].octets
	}
	a, b := r.passed[k-1], r.passed[k]
	return k, a.octets + (b.octets-a.octets)*float64(t-a.at)/float64(b.at-a.at)
}

// anywhere tells whether packets that need little are lost as often as others, as far as there are
// enough of them.
func (l *look) anywhere() bool {
	little := 0.3 * l.least
	lost, of := l.refused.below(little), l.admitted.below(little)
	expected := l.random * float64(lost+of)
	return expected < 8 || float64(lost) > expected/3
}

// variation is the coefficient of variation of the times between losses, each against the mean of
// its neighbours: 1 where they are independent, less where a rule makes them.
func (r *run) variation() float64 {
	var times []float64
	for i := range r.load {
		if p := &r.load[i]; p.Arrived == 0 {
			times = append(times, seconds(r.elapsed(p.Sent)))
		}
	}
	sum, n := 0.0, 0
	for i := 2; i+2 < len(times); i++ {
		if mean := (times[i+2] - times[i-2]) / 4; mean > 0 {
			d := (times[i]-times[i-1])/mean - 1
			sum, n = sum+d*d, n+1
		}
	}
	if n == 0 {
		return 1
	}
	return math.Sqrt(sum / float64(n))
}

// timed tells whether the longest delays are one while what waits is not.
func (r *run) timed(best *look) bool {
	var delays []time.Duration
	var octets []float64
	last, lastOctets := -1, 0.0
	r.backlogs(best.base, func(i int, v float64) {
		if r.load[i].Arrived != 0 {
			last, lastOctets = i, v
		} else if last >= 0 {
			if d, ok := r.delay(&r.load[last]); ok {
				delays, octets = append(delays, d-r.base.least), append(octets, lastOctets)
			}
			last = -1
		}
	})
	if len(delays) < few {
		return false
	}
	slices.Sort(delays)
	slices.Sort(octets)
	wide := (order.Quantile(octets, 0.9) - order.Quantile(octets, 0.1)) / max(order.Quantile(octets, 0.5), 1)
	narrow := seconds(order.Quantile(delays, 0.9)-order.Quantile(delays, 0.1)) / max(seconds(order.Quantile(delays, 0.5)), 1e-9)
	return narrow < steadyDelay && wide > 3*steadyDelay && order.Quantile(octets, 0.5) > fewPackets*float64(r.bytes)
}
