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
	"time"

	"oneway.example/exporter/sample"
)

// Window is the delays of one direction since the last Reset. The zero value is
// an empty window. Its memory is bounded: about 0.5 KiB and 0.3 KiB for every
// factor of two between the smallest and the largest delay.
type Window struct {
	values                           histogram
	count, lost, negative, undefined uint64
	min, max                         time.Duration
	// high is the least of all upper ends, so that the smallest true delay is no
	// more; low that of the lower ends, but for those in widest.
	low, high time.Duration
	widest    widest
}

// Add takes the delay of one packet: unique and in time, which the caller sees
// to. A delay that is not OK has no value here and is only counted as
// undefined. A negative one is kept and counted. Add allocates only when a
// delay of a new order of magnitude is seen.
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
	w.count++
	w.values.add(d.Value)
}

// Lost says that n packets were lost: their delay is infinite (RFC 7679
// section 4). A negative n is ignored.
func (w *Window) Lost(n int) {
	if n > 0 {
		w.lost += uint64(n)
	}
}

// Reset begins a new window and keeps the memory of the old one.
func (w *Window) Reset() {
	w.values.reset()
	*w = Window{values: w.values}
}

// Snapshot is the state of a window.
type Snapshot struct {
	// Count is how many delays have a value, Negative how many of these are
	// below zero (a clock fault), Lost how many packets are infinitely late,
	// Undefined how many arrived with a delay that is not OK.
	Count, Negative, Lost, Undefined uint64
	// Min and Max are exact, and zero if Count is.
	Min, Max time.Duration

	low, high time.Duration
	widest    widest
	values    *histogram
}

// Snapshot returns the present state. It shares the window's memory: it holds
// until the next Add or Reset.
func (w *Window) Snapshot() Snapshot {
	return Snapshot{
		Count: w.count, Negative: w.negative, Lost: w.lost, Undefined: w.undefined,
		Min: w.min, Max: w.max, low: w.low, high: w.high, widest: w.widest, values: &w.values,
	}
}

// Quantile returns the smallest delay that at least the fraction q (0..1) of
// the packets did not exceed, lost packets counted as infinite and undefined
// ones left out (RFC 2330 section 11.3, RFC 7679 section 5.1). It is not
// defined, ok false, if so many were lost that it is infinite, if there is no
// delay at all, or if q is not in range. The result is within 0.8 % (or 8 ns)
// of the exact one, and exact where it is the smallest or the largest delay.
func (s Snapshot) Quantile(q float64) (d time.Duration, ok bool) {
	if s.Count == 0 || !(q >= 0 && q <= 1) {
		return 0, false
	}
	rank := s.rank(q)
	if rank > s.Count {
		return 0, false
	}
	return s.at(rank), true
}

// rank is that of a quantile among all packets, lost ones included.
func (s Snapshot) rank(q float64) uint64 {
	// The factor keeps 0.07 x 100 = 7.000000000000001 from being rank 8.
	return max(1, uint64(math.Ceil(q*float64(s.Count+s.Lost)*(1-1e-12))))
}

// at is the delay of a rank of 1 to Count.
func (s Snapshot) at(rank uint64) time.Duration {
	switch rank {
	case 1:
		return s.Min
	case s.Count:
		return s.Max
	}
	return min(max(s.values.at(rank), s.Min), s.Max)
}
