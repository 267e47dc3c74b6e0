package capacity

import (
	"fmt"
	"math"
	"slices"
	"time"

	"oneway.example/exporter/estimate/order"
)

const (
	// pace is the share of the link's time from which on the sender's may have made it.
	pace = 0.8
	// grouped is the share of gaps that are none from which on packets came in groups,
	// and ungrouped that beyond which the groups need not be regular.
	grouped   = 0.25
	ungrouped = 0.5
	// near is the share of the mean gap below which there is none.
	near = 0.25
	// irregular is by what share of the period a gap between groups may be off a multiple of
	// it, and regular the share of such gaps that must not be.
	irregular = 0.2
	regular   = 0.9
	// faster is the share of the later gaps that the first gaps stay below if there was a
	// token bucket, and certain by how many standard errors.
	faster  = 0.7
	certain = 5
	// tail is how many gaps at least a bucket must leave to its rate, of few half of them.
	tail = 4
	// harmless is the share of the train's dispersion that the widest gap between groups may
	// have: what the groups have done to the first and the last packet is less than that.
	harmless = 0.03
	// vague is the share of the dispersion that stamps and clock may make up.
	vague = 0.1
	// others is by what share of the median the mean gap may be above it, where it is by more
	// than surely standard errors of the median.
	others = 0.05
	surely = 4
	// wanders is how many times the variance of gaps that of arrivals may be: half of it, if
	// each packet was held up for itself; a sixth of the number of gaps times it, if each gap
	// was made longer for itself, as by packets of others. It is looked at where gaps vary by
	// more than the share calm.
	wanders = 1.2
	calm    = 0.02
)

// Judge looks at one train.
func Judge(t Train, o Options) Verdict {
	if o.StampError <= 0 {
		o.StampError = TypicalStampError
	}
	o.Drift = max(o.Drift, Oscillator)
	v := Verdict{IPBytes: t.IPBytes}
	if v.incomplete(t.Packets) {
		return v
	}
	v.measure(t.Packets)
	typical := min(o.StampError, TypicalStampError)
	if v.coalesced(gapsOf(t.Packets), min(typical.Seconds(), near*v.MeanGap.Seconds())) || v.tooShort(o) {
		return v
	}
	left, ok := v.unpaced(t.Packets, typical)
	if !ok || v.tooShort(o) {
		return v
	}
	gaps := gapsOf(left)
	g := groupsOf(gaps, near*v.MeanGap.Seconds())
	if !v.batched(gaps, &g) && !v.bucket(gaps) {
		v.uneven(gaps, &g)
	}
	return v
}

// tooShort sets Error to that of stamps and clock, and looks whether it is too much.
func (v *Verdict) tooShort(o Options) bool {
	v.Error = o.StampError + time.Duration(o.Drift*float64(v.Dispersion))
	if float64(v.Error) <= vague*float64(v.Dispersion) {
		return false
	}
	v.Result = TooShort
	v.Evidence = fmt.Sprintf("%d octets came within %v, and stamps may be off by %v; want longer trains",
		int(v.octets()+0.5), v.Dispersion, v.Error)
	return true
}

// uneven adds to Error what arrivals off even distances may have done to the dispersion, and looks
// whether that is too much.
//
// Groups may have held up the first packet or the last for as long as one lasts, in each train
// alike; what else scatters does so from train to train, too. Where most gaps are
// alike and the mean is longer, others' packets have made it so.
func (v *Verdict) uneven(gaps []float64, g *groups) {
	even := mean(gaps)
	usual, uncertain := median(gaps)
	scatter, variance := max(0, squares(gaps, even))/float64(len(gaps)+1), 0.0
	for _, gap := range gaps {
		variance += (gap - even) * (gap - even) / float64(len(gaps))
	}
	v.wanders = variance > calm*calm*even*even && scatter > wanders*variance
	off, inserted := math.Sqrt(scatter), 0.0
	if float64(g.small) >= grouped*float64(len(gaps)) && len(g.between) > 0 {
		off = max(off, g.widest())
	} else if longer := even - usual; longer > surely*uncertain {
		inserted = longer / usual
		v.wanders = false // Error has it
		off = max(off, longer*float64(len(gaps)))
	}
	v.Error += time.Duration(1e9 * off)
	if inserted <= others && v.Error <= v.Dispersion/4 {
		return
	}
	v.Result = Interleaved
	v.Evidence = fmt.Sprintf("packets came %v apart in the mean, %v in the median, and the last of them may be off by %v",
		v.MeanGap.Round(time.Microsecond), time.Duration(1e9*usual).Round(time.Microsecond), v.Error.Round(time.Microsecond))
}

// median is that, and its standard error by the median absolute deviation, which a few long gaps do not change.
func median(gaps []float64) (usual, uncertain float64) {
	s := order.Sorted(gaps)
	usual = order.Median(s)
	for i := range s {
		s[i] = math.Abs(s[i] - usual)
	}
	slices.Sort(s)
	return usual, 1.25 * 1.48 * order.Median(s) / math.Sqrt(float64(len(s)))
}

// measure takes the times and the capacity from these packets.
func (v *Verdict) measure(packets []Packet) {
	n := len(packets)
	v.Dispersion = packets[n-1].Arrived.Sub(packets[0].Arrived)
	v.SentDispersion = packets[n-1].Sent.Sub(packets[0].Sent)
	v.MeanGap = v.Dispersion / time.Duration(n-1)
	if v.Capacity = 0; v.Dispersion > 0 {
		v.Capacity = float64(n-1) * float64(v.IPBytes) / v.Dispersion.Seconds()
	}
}

func gapsOf(packets []Packet) []float64 {
	gaps := make([]float64, len(packets)-1)
	for i := range gaps {
		gaps[i] = packets[i+1].Arrived.Sub(packets[i].Arrived).Seconds()
	}
	return gaps
}

// incomplete looks for what keeps a train from being a train.
func (v *Verdict) incomplete(packets []Packet) bool {
	lost, reordered, duplicated, unstamped := 0, 0, 0, 0
	for i, p := range packets {
		switch {
		case p.Lost:
			lost++
		case p.Arrived == 0 || p.Sent == 0:
			unstamped++
		case i > 0 && packets[i-1].Arrived > p.Arrived:
			reordered++
		}
		if p.Duplicates > 0 {
			duplicated++
		}
	}
	n := len(packets)
	switch {
	case lost > 0:
		v.Result, v.Evidence = Lost, fmt.Sprintf("%d of %d packets lost", lost, n)
	case n < 2:
		v.Result, v.Evidence = Lost, fmt.Sprintf("%d packets are no train", n)
	case reordered > 0:
		v.Result, v.Evidence = Reordered, fmt.Sprintf("%d of %d packets overtaken", reordered, n)
	case duplicated > 0:
		v.Result, v.Evidence = Duplicated, fmt.Sprintf("%d of %d packets came more than once", duplicated, n)
	case unstamped > 0:
		v.Result, v.Evidence = Unstamped, fmt.Sprintf("%d of %d packets without the kernel's stamps", unstamped, n)
	}
	return v.Result != Clean
}

// coalesced looks for packets with the stamp of the one before.
func (v *Verdict) coalesced(gaps []float64, none float64) bool {
	g := groupsOf(gaps, none)
	if float64(g.small) < grouped*float64(len(gaps)) || !g.throughout() || g.widest() <= harmless*v.Dispersion.Seconds() {
		return false
	}
	v.Result, v.Evidence = Coalesced, fmt.Sprintf("%d of %d packets have the stamp of the one before", g.small, len(gaps)+1)
	return true
}

// batched looks for groups, of which a long train bears small ones: the first packet's stamp
// and the last one's are each wrong by less than a gap between groups.
func (v *Verdict) batched(gaps []float64, g *groups) bool {
	share := float64(g.small) / float64(len(gaps))
	if share < grouped || !g.throughout() || share < ungrouped && (g.several < 2 || !g.periodic()) {
		return false
	}
	if g.widest() <= harmless*v.Dispersion.Seconds() {
		return false
	}
	v.Result = Batched
	v.Evidence = fmt.Sprintf("%d packets came in %d groups, %v apart", len(gaps)+1, len(g.between)+1,
		time.Duration(1e9*g.period()).Round(time.Microsecond))
	return true
}

// bucket looks for the split of the train at which the gaps before are shortest compared
// with those after it: b packets that passed with the bucket's tokens, and the rest.
//
// The means of k and m gaps are each the difference of two arrivals, over k and m; and so
// their standard errors are s sqrt(2)/k and s sqrt(2)/m, s being that of an arrival: what is
// left of the arrivals when the two lines are taken off.
//
// Of few gaps s itself is uncertain, and more standard errors are asked for.
func (v *Verdict) bucket(gaps []float64) bool {
	n := len(gaps)
	sure := certain * (1 + 8/float64((n-2)*(n-2)))
	before, all := 0.0, mean(gaps)*float64(n)
	for k := 1; k <= n-min(tail, n/2); k++ {
		before += gaps[k-1]
		first, rest := before/float64(k), (all-before)/float64(n-k)
		if first >= faster*rest {
			continue
		}
		s := math.Sqrt((squares(gaps[:k], first) + squares(gaps[k:], rest)) / float64(n-2))
		if rest-first > sure*s*math.Sqrt2*math.Hypot(1/float64(k), 1/float64(n-k)) {
			v.Result = TokenBucket
			v.Evidence = fmt.Sprintf("the first %d packets came %.3g times as fast as the rest", k+1, rest/max(first, 1e-9))
			return true
		}
	}
	return false
}

func mean(v []float64) (m float64) {
	for _, x := range v {
		m += x
	}
	return m / float64(len(v))
}

// squares is the sum of squares of how far each arrival is off the line of even gaps, the
// offset of the line taken off.
func squares(gaps []float64, even float64) (sum float64) {
	at, total := 0.0, 0.0
	for i, g := range gaps {
		at += g - even
		total += at
		sum += at * at
		if i == len(gaps)-1 {
			sum -= total * total / float64(i+2)
		}
	}
	return sum
}
