// Package delay summarizes one-way delays: their distribution over a window
// (RFC 7679), their variation (RFC 3393, RFC 5481) and the jitter of RFC 3550.
//
// Three types, one for each request, all of one direction of one path:
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
// an empty window. Its memory grows with the window's packets, 16 bytes for each, up to
// 1 MB, and is reused, with 24 more from a Snapshot to the next Reset; beyond Exact it is some KiB.
type Window struct {
	exact  []interval
	sorted order
	// values are above origin, the smallest delay when the histogram began: its buckets are
	// a share of what is above that, whatever the delays have in common. nil: there are no more than Exact.
	values                           *histogram
	origin                           time.Duration
	count, lost, negative, undefined uint64
	received, overdue                uint64
	min, max                         time.Duration
	// high is the least of all upper ends, so that the smallest true delay is no
	// more; low that of the lower ends, lowUnheld of those of packets that were not heldUp.
	high, low, lowUnheld time.Duration
	heldUp               uint64
	widest               widest
}

// interval is a delay and its bound.
type interval struct{ value, bound time.Duration }

// order holds the delays of a window, their lower and their upper ends, each sorted, as long
// as the window has no more than of delays.
type order struct {
	values, lows, highs []time.Duration
	of                  uint64
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
		w.high, w.low, w.lowUnheld = math.MaxInt64, math.MaxInt64, math.MaxInt64
		w.min, w.max = d.Value, d.Value
	}
	w.high = min(w.high, d.Value+d.Bound)
	w.low = min(w.low, d.Value-d.Bound)
	if d.TXUncertainty > d.Bound/2 {
		w.heldUp++
	} else {
		w.lowUnheld = min(w.lowUnheld, d.Value-d.Bound)
	}
	w.widest.add(d.Bound)
	w.min, w.max = min(w.min, d.Value), max(w.max, d.Value)
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
		w.origin = w.min
		if w.values == nil {
			w.values = new(histogram)
		}
		for _, e := range w.exact {
			w.values.add(e.value - w.origin)
		}
		w.exact, w.sorted = nil, order{}
	}
	w.values.add(v.value - w.origin)
}

// Decided says how many packets were received and how many were lost since the last call,
// by the receiver's count. Lost ones are infinitely late (RFC 7679 section 5.1). Where more
// were received than delays were added, because the reply that would have told the delay
// was lost or a clock was not trusted, the delays known, and the Overdue, stand for all.
func (w *Window) Decided(received, lost int) {
	w.received += uint64(received)
	w.lost += uint64(lost)
}

// Overdue takes a packet that the receiver counted as received, and that took longer than
// the waiting time: it is lost, and infinitely late.
func (w *Window) Overdue() { w.overdue++ }

// Lost is how many packets are infinitely late.
func (w *Window) Lost() uint64 { return w.lost + w.overdue }

// Reset begins a new window and keeps the memory of the old one.
func (w *Window) Reset() {
	if w.values != nil {
		w.values.reset()
	}
	*w = Window{exact: w.exact[:0], values: w.values}
}

// Break forgets the delays, which another clock than those to come has measured, and keeps what
// is known of how many packets were received and lost: the delays to come stand for all.
func (w *Window) Break() {
	received, lost, undefined := w.received-min(w.received, w.overdue), w.Lost(), w.undefined+w.count
	w.Reset()
	w.received, w.lost, w.undefined = received, lost, undefined
}

// Snapshot is the state of a window.
type Snapshot struct {
	// Count is how many delays have a value, Negative how many of these are
	// below zero (a clock fault), Received how many packets were received in time as far as
	// is known, Lost how many are infinitely late, Undefined how many arrived with a delay that
	// is not OK.
	Count, Negative, Received, Lost, Undefined uint64
	// Min and Max are exact, and zero if Count is.
	Min, Max time.Duration

	of *Window
}

// Snapshot returns the present state. It shares the window's memory: it holds
// until the window changes. The first one after an Add sorts the window.
func (w *Window) Snapshot() Snapshot {
	if w.count <= Exact {
		w.sorted.fill(w.exact)
	}
	return Snapshot{
		Count: w.count, Negative: w.negative, Lost: w.Lost(), Undefined: w.undefined,
		Received: max(w.received-min(w.received, w.overdue), w.count), Min: w.min, Max: w.max, of: w,
	}
}

func (o *order) fill(from []interval) {
	if o.of == uint64(len(from)) {
		return
	}
	n := len(from)
	o.values, o.lows, o.highs = slices.Grow(o.values[:0], n), slices.Grow(o.lows[:0], n), slices.Grow(o.highs[:0], n)
	for _, v := range from {
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
// to Exact packets; of more, it is within 0.8 % of its distance from the smallest of the first
// Exact ones (or 8 ns). It is never below Min or above Max.
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
	if s.Received == s.Count {
		return rank, rank <= s.Count // else infinite
	}
	// Of the packets whose delay is not known, as many are overdue as of the others.
	finite := float64(s.Received+s.of.overdue) * float64(s.Count) / float64(s.Count+s.of.overdue)
	if float64(rank) > finite*(1+1e-12) {
		return 0, false
	}
	share := float64(rank) / finite * float64(s.Count)
	return min(max(1, uint64(math.Ceil(share*(1-1e-12)))), s.Count), true
}

// at is the delay of a rank of 1 to Count, and how far the histogram may have moved it.
func (s Snapshot) at(rank uint64) (d, width time.Duration) {
	switch {
	case s.Count <= Exact:
		return s.of.sorted.values[rank-1], 0
	case rank == 1:
		return s.Min, 0
	case rank == s.Count:
		return s.Max, 0
	}
	d = s.of.values.at(rank)
	return min(max(s.of.origin+d, s.Min), s.Max), halfBucket(d)
}

// Bound is that of the smallest delay and of the median: the truth of either lies
// within it. Zero if Count is.
//
// It is proven, and a few packets of a wide bound of their own, which a host has
// held up, do not widen it. The smallest delay is that of the packets that were
// not: those whose bound is by more than half the time for which they may have been held,
// fewer than half of all, are set aside. Its truth is at most the least of all upper ends, and
// at least the least of the others' lower ends. The true median lies between the medians of all lower
// and of all upper ends, since an order statistic grows with each of its values.
//
// A window of more than Exact packets has no ends of single packets any more. If all but k
// of them have a bound of at most b, the true delay of rank r lies between those of the
// ranks r-k and r+k, give or take b and half a bucket of the histogram; the best k is taken.
//
// Both are those of the packets whose delay is known: Quantile says what stands for the others.
func (s Snapshot) Bound() time.Duration {
	if s.Count == 0 {
		return 0
	}
	return max(s.minBound(), s.medianBound())
}

func (s Snapshot) minBound() time.Duration {
	low := s.of.low
	if s.of.heldUp < s.Count-s.of.heldUp {
		low = s.of.lowUnheld
	}
	return max(s.Min-low, s.of.high-s.Min)
}

func (s Snapshot) medianBound() time.Duration {
	rank, ok := s.rank(0.5)
	if !ok {
		return 0 // infinite, and certain
	}
	if o := &s.of.sorted; s.Count <= Exact {
		return max(o.values[rank-1]-o.lows[rank-1], o.highs[rank-1]-o.values[rank-1])
	}
	median, width := s.at(rank)
	widest := &s.of.widest
	best := widest[0] + width
	for k := uint64(1); k < uint64(len(widest)) && k < rank && rank+k <= s.Count; k++ {
		low, lowWidth := s.at(rank - k)
		high, highWidth := s.at(rank + k)
		best = min(best, max(median-low+lowWidth, high-median+highWidth)+widest[k])
	}
	return best
}

// widest holds the largest bounds of a window, the largest first.
type widest [8]time.Duration

// add puts a bound in its place.
func (w *widest) add(b time.Duration) {
	i := len(w) - 1
	if b <= w[i] {
		return
	}
	for ; i > 0 && w[i-1] < b; i-- {
		w[i] = w[i-1]
	}
	w[i] = b
}
