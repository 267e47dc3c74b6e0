// Package delay summarizes one-way delays: their distribution over a window
// (RFC 7679), their variation (RFC 3393, RFC 5481) and the jitter of RFC 3550.
//
// Three types, all of one direction of one path:
//
//	Window     one-way delay                             needs trusted clocks
//	Variation  difference of consecutive delays          any clocks
//	PDV        difference from the smallest delay        any clocks
//
// A constant clock offset cancels in the last two, so they take plain differences of timestamps; a Window takes a
// sample.Delay and ignores the value of one that is not OK. None is safe for concurrent use, and none reads a
// clock.
package delay

import (
	"math"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/estimate/orderstat"
)

// ExactLimit is the number of delays up to which a window has exact quantiles. Larger windows keep a histogram, whose
// buckets add to the bound.
const ExactLimit = 1 << 16

// Window is the delays of one direction since the last Reset. The zero value is an empty window. Its memory grows
// with the window's packets, 8 bytes for each up to 0.5 MB (twice that after a delay far from the others), plus 16
// from a Bound to the next Reset, and is reused; beyond ExactLimit it is some KiB.
type Window struct {
	exact samples
	ends  *ends // of exact, when it was sorted last; nil: not known
	// many has the delays of a window of more than ExactLimit.
	many                           *many
	count, lost, received, overdue uint64
	// undefined counts received packets without a valid delay. carried are packets that the receiver counted as received before
	// the window began, less those that it counts later, whose delays were added before.
	undefined uint64
	carried   int64
	min, max  time.Duration
	// high is the smallest upper end, a limit of the smallest true delay; low is the smallest lower end, lowCertain
	// that of packets without a large TX uncertainty.
	high, low, lowCertain time.Duration
	txUncertain           uint64
}

// many holds the delays of a window of more than ExactLimit.
type many struct {
	// values are relative to origin, the smallest delay when the histogram began, so that the buckets' width
	// depends on the variation and not on the common part of the delays.
	values histogram
	origin time.Duration
	widest widest
}

func (m *many) add(v interval) {
	m.values.add(v.value - m.origin)
	m.widest.add(v.bound)
}

// Add takes the delay of one packet that is unique and in time. One that is not OK is ignored, a negative one kept.
// The bound must not be negative, and value plus bound must not overflow (package bound checks both). Add allocates
// only when a window has more packets than any before it.
func (w *Window) Add(d sample.Delay) {
	if !d.OK() {
		return
	}
	if w.count == 0 {
		w.high, w.low, w.lowCertain = math.MaxInt64, math.MaxInt64, math.MaxInt64
		w.min, w.max = d.Value, d.Value
	}
	w.high = min(w.high, d.Value+d.Bound)
	w.low = min(w.low, d.Value-d.Bound)
	if d.TXUncertainty > d.Bound/2 {
		w.txUncertain++
	} else {
		w.lowCertain = min(w.lowCertain, d.Value-d.Bound)
	}
	w.min, w.max = min(w.min, d.Value), max(w.max, d.Value)
	if v := (interval{d.Value, d.Bound}); w.count < ExactLimit {
		w.exact.add(v)
	} else {
		if w.count == ExactLimit {
			w.beginMany()
		}
		w.many.add(v)
	}
	w.count++
}

// beginMany moves the exact delays to the histogram.
func (w *Window) beginMany() {
	if w.many == nil {
		w.many = new(many)
	}
	w.many.origin = w.min
	for e := range w.exact.all() {
		w.many.add(e)
	}
	w.exact, w.ends = samples{}, nil
}

// AddUndefined adds a packet that is unique and in time, without a valid delay.
func (w *Window) AddUndefined() { w.undefined++ }

// AddDecided adds numbers of received and lost packets by the receiver's count. Lost ones are infinitely late (RFC
// 7679 section 5.1). If more were received than delays were added, because a reply was lost or a clock was not
// trusted, the delays of the others are unknown.
func (w *Window) AddDecided(received, lost int) {
	w.received += uint64(received)
	w.lost += uint64(lost)
}

// AddOverdue adds a packet that the receiver counted as received and that exceeded the loss timeout: it is lost and
// infinitely late.
func (w *Window) AddOverdue() { w.overdue++ }

// Lost is the number of packets that are infinitely late.
func (w *Window) Lost() uint64 { return w.lost + w.overdue }

// Next begins the next window. The delays of waiting packets, which the receiver has counted, follow in it.
func (w *Window) Next(waiting uint64) {
	_, carried := w.unknown(waiting)
	w.Reset()
	w.carried = carried
}

// unknown counts the received packets whose delay stays unknown, and returns the next window's carried.
func (w *Window) unknown(waiting uint64) (n uint64, carried int64) {
	more := int64(w.received-min(w.received, w.overdue)) + w.carried - int64(w.count+w.undefined)
	carried = min(more, int64(waiting))
	return w.undefined + uint64(max(0, more-carried)), carried
}

// Reset begins a new window and keeps the memory of the old one.
func (w *Window) Reset() {
	if w.many != nil {
		w.many.values.reset()
		w.many.widest = widest{}
	}
	w.exact.reset()
	*w = Window{exact: w.exact, many: w.many}
}

// Break discards the delays, which are of another clock than later ones, and keeps the numbers of received and lost
// packets: their delays are unknown.
func (w *Window) Break() {
	old := *w
	w.Reset()
	w.received, w.lost, w.overdue = old.received, old.lost, old.overdue
	w.undefined, w.carried = old.undefined+old.count, old.carried
}

// Open is what a window does not know of its packets.
type Open struct {
	// Waiting packets were received, and their delays will be added. Undecided ones may be lost, or received with any delay.
	Waiting, Undecided uint64
	// Undirected: the lost packets may be lost in the other direction; they are undecided.
	Undirected bool
}

// Snapshot is the state of a window.
type Snapshot struct {
	// Count is the number of delays with a value, Received the number of packets known to be received in time, Lost
	// the number of those infinitely late, Undecided the number whose outcome is not known.
	Count, Received, Lost, Undecided uint64
	// Min and Max are exact for the packets with a known delay, and zero if Count is.
	Min, Max time.Duration

	of *Window
}

// Snapshot returns the current state , with nothing open.
func (w *Window) Snapshot() Snapshot { return w.SnapshotOf(Open{}) }

// SnapshotOf returns the current state. It shares the window's memory and is valid until the window changes. The
// first one after an Add sorts the window.
func (w *Window) SnapshotOf(o Open) Snapshot {
	if w.exact.sorted != w.exact.len() {
		w.exact.sort()
		w.ends = nil
	}
	unknown, _ := w.unknown(o.Waiting)
	s := Snapshot{Count: w.count, Lost: w.Lost(), Received: w.count + unknown, Undecided: o.Undecided, Min: w.min, Max: w.max, of: w}
	if o.Undirected {
		s.Undecided, s.Lost = max(s.Undecided, s.Lost), 0
	}
	return s
}

// Unknown counts the packets whose delay is not known, finite or not.
func (s Snapshot) Unknown() uint64 { return s.Received - s.Count + s.Undecided }

// Quantile returns the smallest delay that at least the fraction q (0..1) of the packets did not exceed, lost
// packets counting as infinite (RFC 2330 section 11.3, RFC 7679 section 5.1). ok is false if it is infinite because of
// losses, if there is no delay, or if q is out of range. Of up to ExactLimit packets
// it is an exact order statistic; of more, it is within 0.8 % of its distance from the smallest of the first ExactLimit
// ones (or 8 ns). It is never below Min or above Max.
//
// Packets with an unknown delay may be faster or slower than all others. They are assumed to be distributed as
// the others; Bound includes what they can change. ok is false if the quantile could differ by more than the bound of the clocks and a tenth of the median.
func (s Snapshot) Quantile(q float64) (d time.Duration, ok bool) { return s.QuantileLike(q, s) }

// QuantileLike is Quantile, but packets with an unknown delay may change it by as much as a quantile q of reference, which are the
// delays that s is the variation of. The zero points of the clocks do not matter to it.
func (s Snapshot) QuantileLike(q float64, reference Snapshot) (d time.Duration, ok bool) {
	r, ok := s.ranksOf(q)
	if !ok {
		return 0, false
	}
	d, _ = s.at(r.rank)
	if s.Unknown() > 0 && s.errorOf(r) > reference.tolerance(q) {
		return 0, false
	}
	return d, true
}

// tolerated is the part of the median, one of so many, by which unknown delays may change a quantile that is known.
const tolerated = 10

// tolerance is the largest error of quantile q that packets with an unknown delay may cause: a bound that is wider than the tenth
// of a delay is taken for the fault of a clock. The quantile must have ranks.
func (s Snapshot) tolerance(q float64) time.Duration {
	most := max(0, s.minBound())
	if r, ok := s.ranksOf(min(q, 0.5)); ok {
		reference, _ := s.at(r.rank)
		r.low, r.high = r.rank, r.rank
		most = max(most, s.errorOf(r), reference/tolerated)
	}
	return most
}

// ranks are the rank of a quantile among the known delays, 1 to Count, and those between which it lies whatever the unknown ones
// are.
type ranks struct{ low, rank, high uint64 }

// ranksOf returns the ranks of quantile q; false if it may be infinite or smaller than every known delay.
func (s Snapshot) ranksOf(q float64) (r ranks, ok bool) {
	if s.Count == 0 || !(q >= 0 && q <= 1) {
		return r, false
	}
	unknown := s.Unknown()
	r.high = orderstat.Rank(s.Count+unknown+s.Lost, q)
	if r.high > s.Count || r.high <= unknown {
		return r, false
	}
	r.low = r.high - unknown
	finite := s.Count + unknown
	r.rank = (r.high*s.Count + finite - 1) / finite
	return r, true
}

// at is the delay of a rank of 1 to Count, and its error from the histogram.
func (s Snapshot) at(rank uint64) (d, width time.Duration) {
	switch {
	case s.Count <= ExactLimit:
		return s.of.exact.value(rank), 0
	case rank == 1:
		return s.Min, 0
	case rank == s.Count:
		return s.Max, 0
	}
	d = s.of.many.values.at(rank)
	return min(max(s.of.many.origin+d, s.Min), s.Max), halfBucket(d)
}

// Bound is the error bound of the smallest delay and of the median, and, if some delays are unknown, of further quantiles that are
// defined; zero if Count is.
//
// It is proven, and a few packets with a wide bound, because a host held them after their timestamp, do not widen
// it. The smallest delay is taken over the other packets: those whose bound consists by more than half of TX
// uncertainty, fewer than half of all, are left out. Its true value is at most the smallest upper end, and at least
// the smallest of the others' lower ends. The true median lies between the medians of all lower and of all upper
// ends, since an order statistic grows with each of its values.
//
// A window of more than ExactLimit packets has no ends of single packets. If all but k of them have a bound of at most
// b, the true delay of rank r lies between those of the ranks r-k and r+k, with an error of b and half a bucket;
// the best k is used.
//
// A packet with an unknown delay moves the rank of a quantile by one at most. The smallest delay is taken over the others.
func (s Snapshot) Bound(quantiles ...float64) (most time.Duration) {
	if s.Count == 0 {
		return 0
	}
	most = max(s.minBound(), s.quantileBound(0.5))
	if s.Unknown() > 0 {
		for _, q := range quantiles {
			most = max(most, s.quantileBound(q))
		}
	}
	return most
}

// quantileBound is the error bound of a quantile; zero if it is not defined.
func (s Snapshot) quantileBound(q float64) time.Duration {
	if _, ok := s.Quantile(q); !ok {
		return 0
	}
	r, _ := s.ranksOf(q)
	return s.errorOf(r)
}

func (s Snapshot) minBound() time.Duration {
	low := s.of.low
	if s.of.txUncertain < s.Count-s.of.txUncertain {
		low = s.of.lowCertain
	}
	return max(s.Min-low, s.of.high-s.Min)
}

// errorOf is the largest distance of the delay of a rank from the true delay of a packet between the lowest and the highest rank.
func (s Snapshot) errorOf(r ranks) time.Duration {
	d, _ := s.at(r.rank)
	if s.Count <= ExactLimit {
		if s.of.ends == nil {
			s.of.ends = s.of.exact.ends()
		}
		return max(d-s.of.ends.lows[r.low-1], s.of.ends.highs[r.high-1]-d)
	}
	widest := &s.of.many.widest
	best := time.Duration(math.MaxInt64)
	for k := uint64(0); k < uint64(len(widest)) && k < r.low && r.high+k <= s.Count; k++ {
		low, lowWidth := s.at(r.low - k)
		high, highWidth := s.at(r.high + k)
		best = min(best, max(d-low+lowWidth, high-d+highWidth)+widest[k])
	}
	return best
}

// widest holds the largest bounds of a window, the largest first.
type widest [8]time.Duration

// add inserts a bound.
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
