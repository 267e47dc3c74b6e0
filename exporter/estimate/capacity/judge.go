package capacity

import (
	"fmt"
	"math"
	"time"

	"oneway.example/exporter/estimate/order"
)

const (
	// pace is the share of the link's time from which on the sender's may have made it.
	pace = 0.8
	// faster is the share of the later gaps that the first gaps stay below if there was a
	// token bucket, and certain by how many standard errors.
	faster  = 0.7
	certain = 8
	// tail is how many gaps at least a bucket must leave to its rate, of few half of them.
	tail = 4
	// vague is the share of the dispersion that stamps and clock may make up, and scatter as much;
	// crooked that which groups may have, or others' packets.
	vague   = 0.1
	crooked = 0.05
	// grouped is the share of gaps that are none, less than the share near of the mean, from
	// which on packets came in groups.
	grouped = 0.3
	local   = 0.25
	// surely is how many standard errors of the median the mean gap is above it where others' packets have
	// made some longer.
	surely = 4
	// walk is how many times the variance of a gap that of the time over a quarter of the train may be:
	// it is as large if each packet was held up for itself, and as many times as large as there are
	// gaps in it if each was made longer for itself, as by packets of others. It is looked at where
	// gaps vary by more than the share calm.
	walk = 2.7
	calm = 0.02
)

// Judge looks at one train.
func Judge(t Train, o Options) Verdict {
	v := Verdict{IPBytes: t.IPBytes}
	if v.incomplete(t.Packets) {
		return v
	}
	v.measure(t.Packets)
	gaps := make([]float64, len(t.Packets)-1)
	for i := range gaps {
		gaps[i] = t.Packets[i+1].Arrived.Sub(t.Packets[i].Arrived).Seconds()
	}
	if !v.paced(t.Packets) {
		if order.Quantile(order.Sorted(gaps), grouped) == 0 {
			v.is(Coalesced, "%.0f %% of the packets or more have the stamp of the one before", 100*grouped)
		}
		return v
	}
	if v.tooShort(o) {
		return v
	}
	gaps = gaps[v.Skipped:]
	if !v.bucket(gaps) {
		v.uneven(gaps)
	}
	return v
}

// is says why the train says nothing. It returns true.
func (v *Verdict) is(r Result, format string, values ...any) bool {
	v.Result, v.Evidence = r, fmt.Sprintf(format, values...)
	return true
}

// tooShort sets Error to that of stamps and clock, and looks whether it is too much.
func (v *Verdict) tooShort(o Options) bool {
	if o.StampError <= 0 {
		o.StampError = typicalStampError
	}
	v.Error = o.StampError + time.Duration(max(o.Drift, Oscillator)*float64(v.Dispersion))
	if float64(v.Error) <= vague*float64(v.Dispersion) {
		return false
	}
	return v.is(TooShort, "%d bytes came within %v, and stamps may be off by %v; want longer trains",
		int(v.bytes()+0.5), v.Dispersion, v.Error)
}

// uneven adds to Error what arrivals off even distances may have done to the dispersion, and looks
// whether that is too much.
//
// Groups may have held up the first packet or the last for as long as one lasts, in each train
// alike: a train that is long beside them bears it. Where most gaps are alike and the mean is longer,
// others' packets have made it so; jitter alone has the gaps below the median spread as those above.
// What else scatters does so from train to train, too, and as much over a quarter of the train as over
// all of it, unless the gaps were made longer each for itself.
func (v *Verdict) uneven(gaps []float64) {
	ascending, n := order.Sorted(gaps), float64(len(gaps))
	even, usual := v.Dispersion.Seconds()/n, order.Median(ascending)
	small, widest := order.Quantile(ascending, grouped), ascending[len(gaps)-1]
	// The half below the median is 0.67 standard deviations wide, and the median's standard error 1.25/sqrt(n) of one.
	uncertain := 1.25 / 0.67 * (usual - order.Quantile(ascending, 0.25)) / math.Sqrt(n)
	one, quarter := spread(gaps, even, 1), spread(gaps, even, max(1, len(gaps)/4))
	result, off, limit := Interleaved, quarter, vague
	switch longer := even - usual; {
	case small == 0:
		result, off, limit = Coalesced, max(quarter, widest), crooked
	case small <= local*even:
		result, off, limit = Batched, max(quarter, widest), crooked
	case longer > surely*uncertain:
		off, limit = max(quarter, longer*n), crooked
	case one > calm*even && quarter*quarter > walk*one*one:
		limit = 0
	}
	v.Error += time.Duration(1e9 * off)
	if off > limit*v.Dispersion.Seconds() {
		us := func(seconds float64) time.Duration { return time.Duration(1e9 * seconds).Round(time.Microsecond) }
		v.is(result, "packets came %v apart in the mean, %v in the median, %v at the most, and the time over a quarter of the train varies by %v",
			us(even), us(usual), us(widest), us(quarter))
	}
}

// spread is how far the time over so many gaps in a row is off that of even gaps: the root of the mean square.
func spread(gaps []float64, even float64, many int) float64 {
	off, sum := 0.0, 0.0
	for i, gap := range gaps {
		if off += gap - even; i >= many {
			off -= gaps[i-many] - even
		}
		if i+1 >= many {
			sum += off * off
		}
	}
	return math.Sqrt(sum / float64(len(gaps)-many+1))
}

// measure takes the times and the capacity from these packets.
func (v *Verdict) measure(packets []Packet) {
	gaps := len(packets) - 1
	if v.Dispersion = packets[gaps].Arrived.Sub(packets[0].Arrived); v.Dispersion > 0 {
		v.MeanGap = v.Dispersion / time.Duration(gaps)
		v.Capacity = float64(gaps*v.IPBytes) / v.Dispersion.Seconds()
	}
}

// incomplete looks for what keeps a train from being a train.
func (v *Verdict) incomplete(packets []Packet) bool {
	var counts [TooShort + 1]int
	for i, p := range packets {
		switch {
		case p.Lost:
			counts[Lost]++
		case p.Arrived == 0 || p.Sent == 0:
			counts[Unstamped]++
		case i > 0 && packets[i-1].Arrived > p.Arrived:
			counts[Reordered]++
		}
		if p.Duplicates > 0 {
			counts[Duplicated]++
		}
	}
	for r, n := range counts {
		if n > 0 {
			return v.is(Result(r), "%d of %d packets %v", n, len(packets), Result(r))
		}
	}
	if len(packets) < 2 {
		return v.is(Lost, "%d packets are no train", len(packets))
	}
	return false
}

// bucket looks for the split of the train at which the gaps before are shortest compared
// with those after it: b packets that passed with the bucket's tokens, and the rest.
//
// The means of k and m gaps are each the difference of two arrivals, over k and m; and so
// their standard errors are s/k and s/m, s being that of a gap, which is such a difference, too: what
// gaps vary by before and after. Of few gaps s itself is uncertain, and more standard errors are asked for.
func (v *Verdict) bucket(gaps []float64) bool {
	n := len(gaps)
	sure := certain * (1 + 8/float64((n-2)*(n-2)))
	before, squares, all := 0.0, 0.0, v.Dispersion.Seconds()
	for _, gap := range gaps {
		squares += gap * gap
	}
	for k := 1; k <= n-min(tail, n/2); k++ {
		before += gaps[k-1]
		first, rest := before/float64(k), (all-before)/float64(n-k)
		s := math.Sqrt(max(0, squares-before*first-(all-before)*rest) / float64(n-2))
		if first < faster*rest && rest-first > sure*s*math.Hypot(1/float64(k), 1/float64(n-k)) {
			return v.is(TokenBucket, "the first %d packets came %.3g times as fast as the rest", k+1, rest/max(first, 1e-9))
		}
	}
	return false
}

// paced leaves out the begin of a train that the sender's pauses have spread, and looks whether its pace
// has a share in too much of it.
//
// As long as packets wait before the slowest link, it sends one after the other, and
// when they left the sender makes no difference, whatever its gaps. That ends with a packet
// k that leaves after the link has sent all k packets before it: it finds the link idle, and
// that idle time is in the dispersion. Such a packet meets an idle link as the first one of a
// train does: what follows is a train of its own, and is looked at again, without one idle time
// in its mean gap.
//
// Where each packet has left at about the time when the link was ready for it, nothing
// is believed, even if it was a little earlier: there is then hardly a packet that has waited,
// and a link that is as fast as the sender looks like one that is faster.
func (v *Verdict) paced(packets []Packet) bool {
	left := packets
	for k := v.idleBefore(left); k > 0; k = v.idleBefore(left) {
		left = left[k:]
		v.measure(left)
	}
	v.Skipped = len(packets) - len(left)
	late := 0
	for k := range left {
		if k > 0 && float64(left[k].Sent.Sub(left[0].Sent)) >= pace*float64(k)*float64(v.MeanGap) {
			late++
		}
	}
	if v.Skipped <= len(packets)/4 && 2*late <= len(left)-1 {
		return true
	}
	return !v.is(SenderPace, "the link had sent the first %d of %d packets when the next left the sender, and %d of the rest cannot have waited long",
		v.Skipped, len(packets), late)
}

// idleBefore is the first packet that left the sender after the link had sent all packets
// before it; 0: there is none.
//
// What the link needs for a packet is the mean of the receiver's gaps, but without that just
// before the packet in question: if the link was idle then, the idle time is in that gap. Other idle
// times are in the mean, each in equal parts, and make the link look slower; so an idle
// time that is found is a true one but for the stamps' errors, and the shortest of several
// may not be found before the others are left out.
func (v *Verdict) idleBefore(packets []Packet) int {
	others := len(packets) - 2 // of a pair, none
	for k := 1; k < len(packets) && others > 0; k++ {
		gap := packets[k].Arrived.Sub(packets[k-1].Arrived)
		service := time.Duration(k) * (v.Dispersion - gap) / time.Duration(others)
		if packets[k].Sent.Sub(packets[0].Sent) > service+2*typicalStampError {
			return k
		}
	}
	return 0
}
