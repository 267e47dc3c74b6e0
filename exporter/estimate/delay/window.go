// Package delay summarises one-way delays: their distribution over a window
// (RFC 7679), their variation (RFC 3393, RFC 5481) and the jitter of RFC 3550.
//
// Three types, one for each question, all of one direction of one path:
//
//	Window     how long do packets take?        needs trusted clocks
//	Variation  how much does one differ from the next?   any clocks
//	PDV        how much longer than the fastest?         any clocks
//
// A constant clock offset cancels in the last two, so they take plain
// differences of stamps; a Window takes a sample.Delay and ignores the value of
// one that is not OK. None of them is safe for concurrent use, and none reads
// a clock.
package delay

import (
	"math"
	"slices"
	"time"

	"oneway.example/exporter/sample"
)

// Exact is up to how many delays a window has exact quantiles. Beyond, it keeps a
// histogram, whose buckets are part of the bound.
const Exact = 1 << 16

// Window is the delays of one direction since the last Reset. The zero value is
// an empty window. Its memory grows with the window's packets, 40 octets for each, up to
// 2.6 MB, and is reused; beyond Exact it is some KiB.
type Window struct {
	exact                            []interval
	sorted                           order
	values                           histogram
	count, lost, negative, undefined uint64
	received                         uint64
	min, max                         time.Duration
	// high is the least of all upper ends, so that the smallest true delay is no
	// more; low that of the lower ends, but for those in widest.
	low, high time.Duration
	widest    widest
}

// interval is a delay and its bound.
type interval struct{ value, bound time.Duration }

// order holds the delays of a window, their lower and their upper ends, each sorted, as long
// as the window has no more than of delays.
type order struct {
	values, lows, highs []time.Duration
	of                  uint64
	// low is the least of the lower ends of the packets whose bound is no more than twice
	// the median bound.
	low time.Duration
}

// Add takes the delay of one packet: unique and in time, which the caller sees
// to. A delay that is not OK has no value here and is only counted as
// undefined. A negative one is kept and counted. The bound must not be negative, nor so
// large that value and bound have no sum (package bound sees to it). Add allocates only
// when a window has more packets than any before it.
func (w *Window) Add(d sample.Delay) {
	if !d.OK() {
		w.undefined++
		return
	}
	if w.count == 0 {
		w.low, w.high = math.MaxInt64, math.MaxInt64
	}
	w.high = min(w.high, d.Value+d.Bound)
	if out := w.widest.add(wide{d.Bound, d.Value - d.Bound}); out.bound > 0 {
		w.low = min(w.low, out.low)
	}
	if w.count == 0 || d.Value < w.min {
		w.min = d.Value
	}
	if w.count == 0 || d.Value > w.max {
		w.max = d.Value
	}
	if d.Value < 0 {
		w.negative++
	}
	w.keep(interval{d.Value, d.Bound})
	w.count++
}

func (w *Window) keep(v interval) {
	switch {
	case w.count < Exact:
		w.exact = append(w.exact, v)
		return
	case w.count == Exact:
		for _, e := range w.exact {
			w.values.add(e.value)
		}
		w.exact, w.sorted = nil, order{}
	}
	w.values.add(v.value)
}

// Empty tells whether no delay was added that is OK.
func (w *Window) Empty() bool { return w.count == 0 }

// Decided says how many packets were received and how many were lost since the last call,
// by the receiver's count. Lost ones are infinitely late (RFC 7679 section 5.1). Where more
// were received than delays were added, because the answer that would have told the delay
// was lost or a clock was not trusted, the delays known stand for all. A negative number
// takes back what was said before: a packet that counted as received came after the
// waiting time.
func (w *Window) Decided(received, lost int) {
	w.received = apply(w.received, received)
	w.lost = apply(w.lost, lost)
}

func apply(to uint64, n int) uint64 {
	if n < 0 {
		return to - min(to, uint64(-n))
	}
	return to + uint64(n)
}

// Reset begins a new window and keeps the memory of the old one.
func (w *Window) Reset() {
	w.values.reset()
	w.sorted.of = 0
	*w = Window{exact: w.exact[:0], sorted: w.sorted, values: w.values}
}

// Snapshot is the state of a window.
type Snapshot struct {
	// Count is how many delays have a value, Negative how many of these are
	// below zero (a clock fault), Received how many packets were received, Lost how many
	// are infinitely late, Undefined how many arrived with a delay that is not OK.
	Count, Negative, Received, Lost, Undefined uint64
	// Min and Max are exact, and zero if Count is.
	Min, Max time.Duration

	low, high time.Duration
	widest    widest
	sorted    *order // nil: too many, the histogram has them
	values    *histogram
}

// Snapshot returns the present state. It shares the window's memory: it holds
// until the next Add or Reset. The first one after an Add sorts the window.
func (w *Window) Snapshot() Snapshot {
	s := Snapshot{
		Count: w.count, Negative: w.negative, Received: max(w.received, w.count), Lost: w.lost, Undefined: w.undefined,
		Min: w.min, Max: w.max, low: w.low, high: w.high, widest: w.widest, values: &w.values,
	}
	if w.count <= Exact {
		w.sorted.fill(w.exact)
		s.sorted = &w.sorted
	}
	return s
}

func (o *order) fill(from []interval) {
	if o.of == uint64(len(from)) {
		return
	}
	o.values, o.lows, o.highs, o.low = o.values[:0], o.lows[:0], o.highs[:0], math.MaxInt64
	for _, v := range from {
		o.lows = append(o.lows, v.bound)
	}
	slices.Sort(o.lows) // the bounds, for now
	var ordinary time.Duration
	if len(from) > 0 {
		ordinary = 2 * o.lows[len(from)/2]
	}
	o.lows = o.lows[:0]
	for _, v := range from {
		if v.bound <= ordinary {
			o.low = min(o.low, v.value-v.bound)
		}
		o.values = append(o.values, v.value)
		o.lows = append(o.lows, v.value-v.bound)
		o.highs = append(o.highs, v.value+v.bound)
	}
	slices.Sort(o.values)
	slices.Sort(o.lows)
	slices.Sort(o.highs)
	o.of = uint64(len(from))
}

// Quantile returns the smallest delay that at least the fraction q (0..1) of
// the packets did not exceed, lost packets counted as infinite and undefined
// ones left out (RFC 2330 section 11.3, RFC 7679 section 5.1). It is not
// defined, ok false, if so many were lost that it is infinite, if there is no
// delay at all, or if q is not in range. It is an exact order statistic of the delays of up
// to Exact packets; of more, it is within 0.8 % (or 8 ns). It is never below Min or above Max.
func (s Snapshot) Quantile(q float64) (d time.Duration, ok bool) {
	rank, ok := s.rank(q)
	if !ok {
		return 0, false
	}
	d, _ = s.at(rank)
	return d, true
}

// rank is that of a quantile among the delays, 1 to Count; false if it is not defined.
func (s Snapshot) rank(q float64) (uint64, bool) {
	if s.Count == 0 || !(q >= 0 && q <= 1) {
		return 0, false
	}
	// The factor keeps 0.07 x 100 = 7.000000000000001 from being rank 8.
	rank := max(1, uint64(math.Ceil(q*float64(s.Received+s.Lost)*(1-1e-12))))
	if rank > s.Received {
		return 0, false // infinite
	}
	if s.Received == s.Count {
		return rank, true
	}
	share := float64(rank) / float64(s.Received) * float64(s.Count)
	return min(max(1, uint64(math.Ceil(share*(1-1e-12)))), s.Count), true
}

// at is the delay of a rank of 1 to Count, and how far the histogram may have moved it.
func (s Snapshot) at(rank uint64) (d, width time.Duration) {
	switch {
	case s.sorted != nil:
		return s.sorted.values[rank-1], 0
	case rank == 1:
		return s.Min, 0
	case rank == s.Count:
		return s.Max, 0
	}
	d = s.values.at(rank)
	return min(max(d, s.Min), s.Max), halfBucket(d)
}
