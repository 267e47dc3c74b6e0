package capacity

import (
	"fmt"
	"math"
	"time"

	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/estimate/orderstat"
)

const (
	// pace is the share of the link's time from which on the sender's interval may be the cause.
	pace = 0.8
	// faster is the share of the later gaps that the first gaps are below with a token bucket, and certain the
	// required number of standard errors.
	faster  = 0.7
	certain = 8
	// tail is the least number of gaps at the bucket's rate; half of them for short trains.
	tail = 4
	// maxUncertain is the share of the dispersion that timestamps and clock, or scatter, may have; maxUneven the share of
	// groups or of other packets.
	maxUncertain = 0.1
	maxUneven    = 0.05
	// leastPart is the least number of packets of a Part.
	leastPart = 2 * tail
	// grouped is the share of gaps near zero, below the share near of the mean, from which on packets arrived in
	// groups.
	grouped = 0.3
	local   = 0.25
	// fewGrouped is the number of gaps near zero from which on the link may have slots that carry little more than a packet.
	fewGrouped = 2
	// meanSigmas is the number of standard errors by which the mean gap exceeds the median if other packets are in
	// between.
	meanSigmas = 4
	// independent is the ratio of the variance of the time over a quarter of the train to that of a gap from which on gaps
	// vary independently, as with other packets in between: the ratio is 1 if each packet was delayed
	// independently, and the number of gaps if each gap was. It is tested if gaps vary by more than the share variable.
	independent = 2.7
	variable    = 0.02
)

// Evaluate evaluates one train.
func Evaluate(t Train, o Options) Verdict {
	v := Verdict{IPBytes: t.IPBytes}
	if v.incomplete(t.Packets) {
		v.partly(t.Packets, o)
		return v
	}
	v.measure(t.Packets)
	gaps := make([]float64, len(t.Packets)-1)
	for i := range gaps {
		gaps[i] = t.Packets[i+1].Arrived.Sub(t.Packets[i].Arrived).Seconds()
	}
	if !v.paced(t.Packets) {
		if orderstat.Quantile(orderstat.Sorted(gaps), grouped) == 0 {
			v.is(Coalesced, "at least %s of the packets have the timestamp of the previous one", unit.Ratio.Format(grouped))
		}
		return v
	}
	if v.tooShort(o) {
		return v
	}
	if !v.bucket(gaps[v.Skipped:]) {
		v.uneven(gaps[v.Skipped:])
		return v
	}
	rest := Verdict{IPBytes: t.IPBytes}
	after := t.Packets[v.Skipped+knee(t.Packets[v.Skipped:]):]
	if rest.measure(after); !rest.paced(after) {
		v.is(SenderPace, "the first %d packets arrived faster than the rest, and so they were sent", len(t.Packets)-len(after)+1)
	}
	return v
}

// is sets the reason why the train is invalid. It returns true.
func (v *Verdict) is(r Result, format string, values ...any) bool {
	v.Result, v.Evidence = r, fmt.Sprintf(format, values...)
	return true
}

// tooShort sets Error to that of timestamps and clock, and reports whether it is too large.
func (v *Verdict) tooShort(o Options) bool {
	if o.StampError <= 0 {
		o.StampError = typicalStampError
	}
	v.Error = o.StampError + time.Duration(max(o.Drift, Oscillator)*float64(v.Dispersion))
	if float64(v.Error) <= maxUncertain*float64(v.Dispersion) {
		return false
	}
	return v.is(TooShort, "%d bytes arrived within %v, and the error of timestamps may be %v; longer trains are needed",
		int(v.bytes()+0.5), v.Dispersion, v.Error)
}

// uneven adds to Error the effect of uneven arrivals on the dispersion, and reports whether it is too large.
//
// Groups may have delayed the first or the last packet by the length of one, in each train alike; a train that is
// long compared with it remains valid. Slots that carry little more than a packet show it by a few packets that arrive right after
// the previous one. If most gaps are alike and the mean is longer, other packets are in between;
// with jitter alone the gaps below the median spread like those above. Other scatter also differs from train to
// train, and is as large over a quarter of the train as over all of it, unless the gaps vary independently.
func (v *Verdict) uneven(gaps []float64) {
	ascending, n := orderstat.Sorted(gaps), float64(len(gaps))
	even, usual := v.Dispersion.Seconds()/n, orderstat.Median(ascending)
	small, widest := orderstat.Quantile(ascending, grouped), ascending[len(gaps)-1]
	// The half below the median is 0.67 standard deviations wide; the median's standard error is 1.25/sqrt(n) of
	// one.
	uncertain := 1.25 / 0.67 * (usual - orderstat.Quantile(ascending, 0.25)) / math.Sqrt(n)
	one, quarter := spread(gaps, even, 1), spread(gaps, even, max(1, len(gaps)/4))
	result, off, limit := Interleaved, quarter, maxUncertain
	switch longer := even - usual; {
	case small == 0:
		result, off, limit = Coalesced, max(quarter, widest), maxUneven
	case small <= local*even:
		result, off, limit = Batched, max(quarter, widest), maxUneven
	case longer > meanSigmas*uncertain:
		off, limit = max(quarter, longer*n), maxUneven
	case one > variable*even && quarter*quarter > independent*one*one:
		limit = 0
	}
	width := off
	if ascending[min(fewGrouped, len(gaps))-1] <= local*even {
		width = max(off, widest)
	}
	v.Error += time.Duration(1e9 * width)
	if off > limit*v.Dispersion.Seconds() {
		us := func(seconds float64) time.Duration { return time.Duration(1e9 * seconds).Round(time.Microsecond) }
		v.is(result, "the interval of packets is %v in the mean, %v in the median and at most %v; the time over a quarter of the train varies by %v",
			us(even), us(usual), us(widest), us(quarter))
	}
}

// spread is the root mean square difference of the time over so many consecutive gaps from that of even gaps.
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

// measure sets the times and the capacity of these packets.
func (v *Verdict) measure(packets []Packet) {
	gaps := len(packets) - 1
	if v.Dispersion = packets[gaps].Arrived.Sub(packets[0].Arrived); v.Dispersion > 0 {
		v.MeanGap = v.Dispersion / time.Duration(gaps)
		v.Capacity = float64(gaps*v.IPBytes) / v.Dispersion.Seconds()
	}
}

// incomplete reports whether the packets are not a complete train, and sets the reason.
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
		return v.is(Lost, "%s too few for a train", unit.Counted(len(packets), "packet is", "packets are"))
	}
	return false
}

// partly sets Part.
func (v *Verdict) partly(packets []Packet, o Options) {
	if v.Result != Lost {
		return
	}
	var longest []Packet
	for from, i := 0, 0; i < len(packets); i++ {
		if packets[i].Lost {
			from = i + 1
		} else if i+1-from > len(longest) {
			longest = packets[from : i+1]
		}
	}
	if len(longest) < leastPart {
		return
	}
	if part := Evaluate(Train{IPBytes: v.IPBytes, Packets: longest}, o); part.Result == Clean {
		v.Part = &part
	}
}

// bucket searches the split of the train with the shortest gaps before it compared with those after it: packets that
// passed with the bucket's tokens, and the rest.
//
// The mean of k gaps is the difference of two arrivals, over k, and its standard error s/k; s is that of a gap,
// which is such a difference too, estimated from the variation of the gaps before and after. For few gaps s itself
// is uncertain, and more standard errors are required.
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
			return v.is(TokenBucket, "the first %d packets arrived %.3g times as fast as the rest", k+1, rest/max(first, 1e-9))
		}
	}
	return false
}

// paced leaves out the begin of a train that the sender's pauses have spread, and reports whether its pace affects
// too much of the train.
//
// As long as packets queue before the slowest link, it sends them one after the other, and the sender's gaps have
// no effect. This ends with a packet k that is sent after the link has sent all k packets before it: the link was
// idle, and the idle time is in the dispersion. Such a packet is like the first one of a train: the rest is a train
// of its own, and is evaluated again, without that idle time in its mean gap.
//
// If each packet was sent at about the time when the link was ready for it, or a little earlier, the train is
// invalid: hardly any packet has queued, and a link as fast as the sender looks like a faster one.
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
	return !v.is(SenderPace, "the link was idle after the first %d of %d packets, and %d of the rest were sent too late to queue",
		v.Skipped, len(packets), late)
}

// idleBefore returns the first packet that was sent after the link had sent all packets before it; 0: there is
// none.
//
// The link's time for a packet is the mean of the receiver's gaps, without the gap just before the packet in
// question, which contains the idle time, if any. Other idle times are in the mean and make the link look slower;
// so an idle time that is found is real, except for errors of timestamps, and the shortest of several may only be
// found after the others are left out.
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
