package queue

import (
	"math"
	"slices"
)

const (
	// bucketShare is the least share of pairs of a lost and a received packet in which the lost one has the larger excess, if a token
	// bucket drops: random losses have a half.
	bucketShare = 0.9
	// mostRandom is the largest such share of random losses, however few.
	mostRandom = 0.8
	// atRandom is the largest deviation from a half that random losses explain, in standard errors of the rank sum test
	// (Mann and Whitney 1947), beside ownShare over the mean excess in packets: after a loss the excess is a packet less.
	atRandom, ownShare = 2.5, 0.25
	// tooRegular and walking are the 0.1 % and the 1 % quantile of the mean square of a random walk about its regression line, as a share
	// of its variance at the end, by simulation; the mean is 1/15.
	tooRegular, walking = 0.0127, 0.0174
	// independent is the least variation of the times between independent losses, periodic the largest of a policer's with other
	// losses, if few packets are lost: it falls with the square root of the share received.
	independent, periodic = 0.55, 0.43
	// fitted is the least number of losses for a line through them.
	fitted = 4
)

// tokens compares the losses with a token bucket. The excess of a packet is the bytes that passed before it less the bytes that the
// mean rate passes in the same time. A policer drops packets when the excess is at its limit, whatever the burst, and the excess stays
// near it; random losses do not depend on the excess, which is a random walk.
type tokens struct {
	// pairs is the number of pairs of a lost and a received packet, above the number in which the lost one has the larger excess,
	// spread the variance of above if the losses are random.
	pairs, above, spread float64
	// losses of packets were lost; squares is the sum of the squares of their excess in packets, walk of the variances of a random walk
	// at its end.
	losses, packets, squares, walk float64
}

// cause reports whether a token bucket drops the packets, or whether the losses are random; neither where they are too few to tell.
func (r *run) cause() (bucket, random bool) {
	var t tokens
	from := 0
	for i := range len(r.load) + 1 {
		if i == len(r.load) || r.inOutages[i] && r.load[i].Arrived == 0 {
			t.add(r, from, i)
			from = i + 1
		}
	}
	if t.pairs == 0 {
		return false, false
	}
	share, own := t.above/t.pairs, ownShare/math.Sqrt(t.squares/t.losses)
	limit := min(0.5+atRandom*math.Sqrt(t.spread)/t.pairs+own, mostRandom)
	walked, varied := t.squares/t.walk, r.variation()/math.Sqrt(1-t.losses/t.packets)
	bucket = share >= bucketShare || share > limit && walked < tooRegular || share > 0.5 && varied < periodic
	return bucket, !bucket && share <= limit && walked > walking && varied > independent
}

// add adds the packets from the first to the last loss of a part of the load without outages.
func (t *tokens) add(r *run, from, to int) {
	for from < to && r.load[from].Arrived != 0 {
		from++
	}
	for from < to && r.load[to-1].Arrived != 0 {
		to--
	}
	var at, passed []float64
	sum := 0.0
	for i := from; i < to; i++ {
		if p := &r.load[i]; p.Arrived == 0 {
			at, passed = append(at, seconds(r.elapsed(p.Sent))), append(passed, sum)
		} else {
			sum += float64(p.IPBytes)
		}
	}
	if len(at) < fitted || sum == 0 {
		return
	}
	line := regression(at, passed)
	var lost, received []float64
	sum = 0
	for i := from; i < to; i++ {
		p := &r.load[i]
		excess := sum - line(seconds(r.elapsed(p.Sent)))
		if p.Arrived == 0 {
			lost = append(lost, excess)
			continue
		}
		received = append(received, excess)
		sum += float64(p.IPBytes)
	}
	slices.Sort(lost)
	slices.Sort(received)
	n, m := float64(len(lost)), float64(len(received))
	k := 0
	for _, excess := range lost {
		for k < len(received) && received[k] < excess {
			k++
		}
		t.above += float64(k)
	}
	t.pairs += n * m
	t.spread += n * m * (n + m + 1) / 12
	for _, excess := range lost {
		t.squares += excess / (sum / m) * excess / (sum / m)
	}
	t.losses += n
	t.packets += n + m
	t.walk += n * n * m / (n + m)
}

// regression returns the line of least squares through points.
func regression(x, y []float64) func(x float64) float64 {
	var mx, my, xx, xy float64
	for i := range x {
		mx, my = mx+x[i]/float64(len(x)), my+y[i]/float64(len(x))
	}
	for i := range x {
		xx, xy = xx+(x[i]-mx)*(x[i]-mx), xy+(x[i]-mx)*(y[i]-my)
	}
	slope := 0.0
	if xx > 0 {
		slope = xy / xx
	}
	return func(x float64) float64 { return my + slope*(x-mx) }
}

// variation is the coefficient of variation of the times between losses, each relative to the mean of its neighbors and its own:
// sqrt(0.6) if they are independent and few of the packets, less if they are regular.
func (r *run) variation() float64 {
	sum, n := 0.0, 0
	for i := 2; i+2 < len(r.losses); i++ {
		if mean := seconds(r.losses[i+2]-r.losses[i-2]) / 4; mean > 0 {
			d := seconds(r.losses[i]-r.losses[i-1])/mean - 1
			sum, n = sum+d*d, n+1
		}
	}
	if n == 0 {
		return 1
	}
	return math.Sqrt(sum / float64(n))
}
