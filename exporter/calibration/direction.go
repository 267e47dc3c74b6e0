package calibration

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Direction is the error of the delays of one direction of a back-to-back run. The
// zero value is that of no packets.
type Direction struct {
	// Count is how many delays were used.
	Count int
	// Systematic is the median of the measured minus the true delay; it may be
	// negative. RFC 7679 section 3.7.3.
	Systematic time.Duration
	// Random is the half-width of the interval about Systematic that holds 95 % of
	// them, from the 2.5th and the 97.5th percentile. RFC 7679 section 3.7.3.
	Random time.Duration
	// Largest is the largest distance of any of them to Systematic, but for packets
	// that were held (see heldFrom) and whose bound (sample.Stamp.Held) covers it.
	Largest time.Duration
}

// heldFrom is from when on a packet counts as held by its host after its stamp, as in
// metric.DelayHeld.
const heldFrom = 25 * time.Microsecond

// observation is one measured delay.
type observation struct{ delay, held time.Duration }

// summarise reorders all and finds their error; there must be at least one.
func summarise(all []observation, trueDelay time.Duration) Direction {
	slices.SortFunc(all, func(a, b observation) int { return cmp.Compare(a.delay, b.delay) })
	at := func(p float64) time.Duration { return percentile(all, p) }
	d := Direction{Count: len(all), Systematic: at(50) - trueDelay}
	d.Random = max(at(50)-at(2.5), at(97.5)-at(50))
	for _, o := range all {
		off := o.delay - at(50)
		if covered := o.held > heldFrom && off > 0 && off <= o.held; !covered {
			d.Largest = max(d.Largest, off.Abs())
		}
	}
	return d
}

// percentile is the smallest delay x of sorted ones such that p percent of them are
// at most x (RFC 2330 section 11.3).
func percentile(sorted []observation, p float64) time.Duration {
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1].delay
}
