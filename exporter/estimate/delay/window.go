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
	min, max                       time.Duration
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

// AddDecided adds numbers of received and lost packets by the receiver's count. Lost ones are infinitely late (RFC
// 7679 section 5.1). If more were received than delays were added, because a reply was lost or a clock was not
// trusted, the known delays and the overdue packets represent all.
func (w *Window) AddDecided(received, lost int) {
	w.received += uint64(received)
	w.lost += uint64(lost)
}

// AddOverdue adds a packet that the receiver counted as received and that exceeded the loss timeout: it is lost and
// infinitely late.
func (w *Window) AddOverdue() { w.overdue++ }

// Lost is the number of packets that are infinitely late.
func (w *Window) Lost() uint64 { return w.lost + w.overdue }

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
// packets: later delays represent all.
func (w *Window) Break() {
	received, lost := w.received-min(w.received, w.overdue), w.Lost()
	w.Reset()
	w.received, w.lost = received, lost
}

// Snapshot is the state of a window.
type Snapshot struct {
	// Count is the number of delays with a value, Received the number of packets known to be received in time, Lost
	// the number of those infinitely late.
	Count, Received, Lost uint64
	// Min and Max are exact, and zero if Count is.
	Min, Max time.Duration

	of *Window
}

// Snapshot returns the current state. It shares the window's memory and is valid until the window changes. The
// first one after an Add sorts the window.
func (w *Window) Snapshot() Snapshot {
	if w.exact.sorted != w.exact.len() {
		w.exact.sort()
		w.ends = nil
	}
	return Snapshot{
		Count: w.count, Lost: w.Lost(),
		Received: max(w.received-min(w.received, w.overdue), w.count), Min: w.min, Max: w.max, of: w,
	}
}

// Quantile returns the smallest delay that at least the fraction q (0..1) of the packets did not exceed, lost
// packets counting as infinite and undefined ones left out (RFC 2330 section 11.3, RFC 7679 section 5.1). ok is
// false if it is infinite because of losses, if there is no delay, or if q is out of range. Of up to ExactLimit packets
// it is an exact order statistic; of more, it is within 0.8 % of its distance from the smallest of the first ExactLimit
// ones (or 8 ns). It is never below Min or above Max.
func (s Snapshot) Quantile(q float64) (d time.Duration, ok bool) {
	rank, ok := s.rank(q)
	if !ok {
		return 0, false
	}
	d, _ = s.at(rank)
	return d, true
}

// rank is the rank of a quantile among the delays, 1 to Count; false if it is undefined.
func (s Snapshot) rank(q float64) (uint64, bool) {
	if s.Count == 0 || !(q >= 0 && q <= 1) {
		return 0, false
	}
	rank := orderstat.Rank(s.Received+s.Lost, q)
	if s.Received == s.Count {
		return rank, rank <= s.Count // else infinite
	}
	// The overdue packets represent the same share of those with an unknown delay.
	finite := float64(s.Received+s.of.overdue) * float64(s.Count) / float64(s.Count+s.of.overdue)
	if float64(rank) > finite*(1+1e-12) {
		return 0, false
	}
	share := float64(rank) / finite * float64(s.Count)
	return min(max(1, uint64(math.Ceil(share*(1-1e-12)))), s.Count), true
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

// Bound is the error bound of the smallest delay and of the median; zero if Count is.
//
// It is proven, and a few packets with a wide bound, because a host held them after their timestamp, do not widen
// it. The smallest delay is that of the other packets: those whose bound consists by more than half of TX
// uncertainty, fewer than half of all, are left out. Its true value is at most the smallest upper end, and at least
// the smallest of the others' lower ends. The true median lies between the medians of all lower and of all upper
// ends, since an order statistic grows with each of its values.
//
// A window of more than ExactLimit packets has no ends of single packets. If all but k of them have a bound of at most
// b, the true delay of rank r lies between those of the ranks r-k and r+k, with an error of b and half a bucket;
// the best k is used.
//
// Both are those of the packets with a known delay; see Quantile for the others.
func (s Snapshot) Bound() time.Duration {
	if s.Count == 0 {
		return 0
	}
	return max(s.minBound(), s.medianBound())
}

func (s Snapshot) minBound() time.Duration {
	low := s.of.low
	if s.of.txUncertain < s.Count-s.of.txUncertain {
		low = s.of.lowCertain
	}
	return max(s.Min-low, s.of.high-s.Min)
}

func (s Snapshot) medianBound() time.Duration {
	rank, ok := s.rank(0.5)
	if !ok {
		return 0 // infinite for certain
	}
	median, width := s.at(rank)
	if s.Count <= ExactLimit {
		if s.of.ends == nil {
			s.of.ends = s.of.exact.ends()
		}
		return max(median-s.of.ends.lows[rank-1], s.of.ends.highs[rank-1]-median)
	}
	widest := &s.of.many.widest
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
