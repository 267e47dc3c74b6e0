package tcpdelay

import (
	"math"
	"slices"
	"time"

	"oneway.example/exporter/core/bound"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/estimate/orderstat"
)

// MaxWithheld is the largest share of withheld bytes that leaves a quantile of the delay its value.
const MaxWithheld = 0.3

// Quantile is a quantile of the delays of all bytes that were sent once; false if the samples are too few, if more than
// MaxWithheld of them are withheld, or if the interval has no end. The true quantile is within value +- bound, whatever the
// delays of withheld bytes within their intervals: from the quantile of all lower ends to the quantile of all upper ends.
//
// The samples are one byte in many: each time that the delay crosses the quantile, the crossing may be anywhere between two
// samples, which moves the rank by at most one, in the sum by no more than about the root of twice the number of crossings.
func (r *Result) Quantile(q float64) (value, bound time.Duration, ok bool) {
	n := len(r.Low)
	if n == 0 || r.WithheldRatio() > MaxWithheld {
		return 0, 0, false
	}
	rank, crossings := orderstat.Rank(n, q), 0
	level := orderstat.Quantile(orderstat.Sorted(r.likely), q)
	for i := range r.likely[1:] {
		if (r.likely[i] > level) != (r.likely[i+1] > level) {
			crossings++
		}
	}
	move := int(math.Ceil(math.Sqrt(2 * float64(crossings))))
	if rank-move < 1 || rank+move > n || float64(n)*min(q, 1-q) < 1 {
		return 0, 0, false
	}
	low, high := r.Low[rank-move-1], r.High[rank+move-1]
	return low + (high-low)/2, (high - low + 1) / 2, high != unlimited
}

// WithheldRatio is the share of the bytes that were sent once whose delay is only known as an interval; zero without any.
func (r *Result) WithheldRatio() float64 {
	return float64(r.Withheld) / float64(max(len(r.Low), 1))
}

// unlimited is the upper end of an interval without one.
const unlimited = time.Duration(math.MaxInt64)

// limits are the latest possible departure and the earliest possible arrival of the known bytes before a byte, or the
// earliest departure and the latest arrival of those after it.
type limits struct{ departure, arrival instant.Time }

// intervals adds the ends of the delays of a flow: of known delays by their bounds. A withheld byte that was sent once
// arrived after the bytes that were sent before it, not after those sent later, and not after the read that returned it; its delay is
// at least the smallest. A byte without time of departure left between its neighbors.
func (r *Result) intervals(all []pair, samples []Sample, e Errors) {
	errors := bound.Sum(e.Clocks.Error, e.Stamps)
	after := make([]limits, len(samples))
	next, least := limits{}, unlimited
	for i := len(samples) - 1; i >= 0; i-- {
		after[i] = next
		if s := &samples[i]; s.Class == Delay {
			next = limits{s.Sent, s.Sent.Add(s.Value + s.Bound)}
			least = min(least, s.Value-s.Bound)
		}
	}
	before := limits{}
	for i := range samples {
		s, p := &samples[i], all[i]
		if s.Class == Delay {
			before = limits{s.Sent, max(before.arrival, s.Sent.Add(s.Value-s.Bound))}
			r.add(s.Value-s.Bound, s.Value+s.Bound)
			continue
		}
		if s.Class != Reordered && s.Class != NoStamp || p.sent.Transmissions > 1 || least == unlimited || e.Clocks.Reason != sample.OK {
			continue
		}
		earliest, latest := s.Sent, s.Sent
		if s.Sent == 0 {
			earliest, latest = before.departure, after[i].departure
		}
		low, high := least, unlimited
		if latest != 0 && before.arrival != 0 {
			low = max(low, before.arrival.Sub(latest))
		}
		if earliest != 0 && after[i].arrival != 0 {
			high = after[i].arrival.Sub(earliest)
		}
		if earliest != 0 && p.received != nil && p.received.Read != 0 {
			high = min(high, bound.Sum(p.received.Read.Sub(earliest), errors))
		}
		r.add(low, max(low, high))
		r.Withheld++
	}
}

// add adds the ends of a delay.
func (r *Result) add(low, high time.Duration) {
	r.Low, r.High = append(r.Low, low), append(r.High, high)
	if high == unlimited {
		high = low
	}
	r.likely = append(r.likely, low+(high-low)/2)
}

// sorted sorts values in place.
func sorted(all ...*[]time.Duration) {
	for _, one := range all {
		slices.Sort(*one)
	}
}

// Quantile returns a quantile of sorted values; false if they are too few to have a value beyond it, or if it is among bytes that had
// not arrived at the end.
func Quantile(ascending []time.Duration, q float64) (time.Duration, bool) {
	if n := float64(len(ascending)); n*min(q, 1-q) < 1 {
		return 0, false
	}
	v := orderstat.Quantile(ascending, q)
	return v, v != unlimited
}
