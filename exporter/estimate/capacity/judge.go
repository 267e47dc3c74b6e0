package capacity

import (
	"fmt"
	"math"
	"time"
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
	// harmless is the share of the train's dispersion that the widest gap between groups may
	// have: what the groups have done to the first and the last packet is less than that.
	harmless = 0.03
)

// Judge looks at one train.
func Judge(t Train, o Options) Verdict {
	if o.StampError <= 0 {
		o.StampError = DefaultStampError
	}
	v := Verdict{IPBytes: t.IPBytes}
	if v.incomplete(t.Packets) {
		return v
	}
	v.measure(t.Packets)
	if v.coalesced(gapsOf(t.Packets), min(o.StampError.Seconds(), near*v.MeanGap.Seconds())) {
		return v
	}
	left, ok := v.unpaced(t.Packets, o.StampError)
	if !ok {
		return v
	}
	if gaps := gapsOf(left); !v.batched(gaps, near*v.MeanGap.Seconds()) {
		v.bucket(gaps)
	}
	return v
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
func (v *Verdict) batched(gaps []float64, none float64) bool {
	g := groupsOf(gaps, none)
	share := float64(g.small) / float64(len(gaps))
	if share < grouped || g.several < 2 || !g.throughout() || share < ungrouped && !g.periodic() {
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
func (v *Verdict) bucket(gaps []float64) {
	n := len(gaps)
	if n < 7 {
		return // too few for two rates
	}
	for k := 1; k <= n-4; k++ {
		first, rest := mean(gaps[:k]), mean(gaps[k:])
		if first >= faster*rest {
			continue
		}
		s := math.Sqrt((squares(gaps[:k], first) + squares(gaps[k:], rest)) / float64(n-2))
		if rest-first > certain*s*math.Sqrt2*math.Hypot(1/float64(k), 1/float64(n-k)) {
			v.Result = TokenBucket
			v.Evidence = fmt.Sprintf("the first %d packets came %.3g times as fast as the rest", k+1, rest/max(first, 1e-9))
			return
		}
	}
}

func mean(v []float64) (m float64) {
	for _, x := range v {
		m += x / float64(len(v))
	}
	return m
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
