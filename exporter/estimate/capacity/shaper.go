package capacity

import (
	"math"
	"slices"

	"oneway.example/exporter/estimate/orderstat"
)

// Shaper is a token bucket: it passes Burst bytes at once and then Rate, in IP bytes and IP bytes a second. Each has its
// error bound, or is unknown.
type Shaper struct {
	Rate, RateBound   float64
	Burst, BurstBound float64
	// RateOK and BurstOK: they are known. The burst of a bucket that no pause between the trains has filled is not, and
	// neither is a value whose bound exceeds a tenth of it.
	RateOK, BurstOK bool
}

// The least number of trains that the rate and the burst of a Shaper need. What was before the first train is not known, so one
// more train shows the rate.
const (
	leastRates  = MinClean
	leastBursts = leastRates - 1
)

// maxBound is the largest error bound of a rate and of a burst, as a share of it. Links whose rate changes, such as
// cellular ones, now and then have trains that look like a token bucket, but disagree in its size and rate.
const maxBound = 0.1

// FindShaper measures a token bucket by the trains that have emptied it, of one size, in the order of sending.
//
// Once the bucket is empty, packets leave as tokens arrive: the rest of a train is a train that the rate disperses, and
// is evaluated as one. The packet that ends the first j+1 packets of L bytes leaves (L (j+1) - B) / r after the first
// one, which took its tokens at once: so B = L (j+1) - r T. The bucket was full if the pause before the train has
// brought more tokens than B; otherwise B is only what the pause has brought.
func FindShaper(trains []Train, o Options) (s Shaper) {
	var rests []Verdict
	var bursts, lows, highs []float64
	var before Train
	for _, t := range trains {
		v := Evaluate(t, o)
		if v.Result == TokenBucket && v.Skipped == 0 {
			split := knee(t.Packets)
			rest := Evaluate(Train{IPBytes: t.IPBytes, Packets: t.Packets[split+1:]}, o)
			rests = append(rests, rest)
			if burst, uncertain := burst(t, split, &rest); rest.Result == Clean && filled(before, t, rest.Capacity, burst+uncertain) {
				bursts, lows, highs = append(bursts, burst), append(lows, burst-uncertain), append(highs, burst+uncertain)
			}
		}
		before = t
	}
	sum := Summarize(rests, leastRates)
	if !sum.OK {
		return Shaper{}
	}
	s = Shaper{RateOK: true, Rate: sum.Median, RateBound: max(sum.Median-sum.Low, sum.High-sum.Median)}
	if s.RateBound > maxBound*s.Rate {
		return Shaper{}
	}
	if len(bursts) < leastBursts {
		return s
	}
	s.Burst = orderstat.Median(orderstat.Sorted(bursts))
	few := extension(len(bursts)) * (slices.Max(bursts) - slices.Min(bursts))
	s.BurstBound = max(s.Burst-slices.Min(lows), slices.Max(highs)-s.Burst) + few
	s.BurstOK = s.BurstBound <= maxBound*s.Burst
	return s
}

// knee returns the number of gaps before the bucket was empty: the split into short and long gaps that leaves the least
// variation within both.
func knee(packets []Packet) (best int) {
	n := len(packets) - 1
	gap := func(i int) float64 { return packets[i+1].Arrived.Sub(packets[i].Arrived).Seconds() }
	all, before, most := packets[n].Arrived.Sub(packets[0].Arrived).Seconds(), 0.0, 0.0
	for k := 1; k < n; k++ {
		before += gap(k - 1)
		first, rest := before/float64(k), (all-before)/float64(n-k)
		// The sum of squares within both is least where this, the one between them, is largest.
		if between := float64(k) * float64(n-k) * (rest - first) * (rest - first); rest > first && between > most {
			best, most = k, between
		}
	}
	return best
}

// burst returns the bytes that a train had at once, and the error of that, by the rest of it after the bucket was empty. split is the
// number of gaps before that. Some shapers add tokens while the line transmits the first packet, some do not.
func burst(t Train, split int, rest *Verdict) (bytes, uncertain float64) {
	size, n := float64(t.IPBytes), len(t.Packets)
	first := n - 1 - int(math.Round(rest.bytes()/size)) // the first packet of the rest
	var sum, elapsed float64
	for j := first; j < n; j++ {
		took := t.Packets[j].Arrived.Sub(t.Packets[0].Arrived).Seconds()
		sum += size*float64(j+1) - rest.Capacity*took
		elapsed += took
	}
	count := float64(n - first)
	low, high := rest.interval()
	off := max(rest.Capacity-low, high-rest.Capacity)
	line := t.Packets[split].Arrived.Sub(t.Packets[0].Arrived).Seconds() / float64(max(1, split)) // its time for a packet
	return sum / count, off*elapsed/count + rest.Capacity*(rest.Error.Seconds()+line)
}

// filled reports whether the pause between two trains has brought more tokens than a burst.
func filled(before, t Train, rate, burst float64) bool {
	if len(before.Packets) == 0 {
		return false // what was before is not known
	}
	last := before.Packets[len(before.Packets)-1]
	if last.Arrived == 0 {
		return false
	}
	return rate*t.Packets[0].Arrived.Sub(last.Arrived).Seconds() > burst+float64(t.IPBytes)
}
