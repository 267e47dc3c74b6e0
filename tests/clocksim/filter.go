package clocksim

import (
	"cmp"
	"math"
	"slices"
)

// filter combines the samples of a reference clock since its last poll: it averages those nearest to the median.
type filter struct {
	samples  []sample
	variance float64 // moving average
	freedom  int     // of that average, up to 50
}

// Limits of the filter, as the defaults of a refclock in chrony.conf(5).
const (
	filterLength = 64
	filterLeast  = 4
	filterShare  = 0.6 // of the samples, around the median
	filterMemory = 50
)

func (f *filter) add(s sample) {
	if n := len(f.samples); n > 0 && s.at <= f.samples[n-1].at {
		return
	}
	if len(f.samples) == filterLength {
		f.samples = slices.Delete(f.samples, 0, 1)
	}
	f.samples = append(f.samples, s)
}

// poll empties the filter; ok is false if it had too few samples.
func (f *filter) poll() (result sample, ok bool) {
	if len(f.samples) < filterLeast {
		return sample{}, false
	}
	chosen := f.chosen()
	f.samples = f.samples[:0]
	n := float64(len(chosen))
	last := chosen[len(chosen)-1].at
	result.taken = chosen[0].taken
	for _, s := range chosen {
		result.at += (s.at - last) / n
		result.offset += s.offset / n
		result.peerDelay += s.peerDelay / n
		result.peerDispersion += s.peerDispersion / n
		result.rootDelay += s.rootDelay / n
		result.rootDispersion += s.rootDispersion / n
	}
	spread := f.spread(chosen, last+result.at, result.offset)
	result.at += last
	result.peerDispersion = max(spread, result.peerDispersion)
	result.rootDispersion = max(spread, result.rootDispersion)
	return result, true
}

// chosen are the samples around the median, oldest first.
func (f *filter) chosen() []sample {
	byOffset := slices.SortedFunc(slices.Values(f.samples), func(a, b sample) int { return cmp.Compare(a.offset, b.offset) })
	n := len(byOffset)
	cut := int(float64(n) * (1 - filterShare) / 2)
	cut = min((n-1)/2, max(1, cut))
	chosen := byOffset[cut : n-cut]
	slices.SortFunc(chosen, func(a, b sample) int { return cmp.Compare(a.at, b.at) })
	return chosen
}

// spread is the standard deviation of the offset at the samples' mean time.
func (f *filter) spread(chosen []sample, mean, offset float64) float64 {
	var variance, sd float64
	freedom := len(chosen) - 1
	if len(chosen) >= 4 {
		x, y, w := make([]float64, len(chosen)), make([]float64, len(chosen)), make([]float64, len(chosen))
		for i, s := range chosen {
			x[i], y[i], w[i] = s.at-mean, s.offset, s.peerDispersion
		}
		l := fit(x, y, w)
		variance, sd, freedom = l.variance, l.interceptSD, len(chosen)-2
	} else {
		for _, s := range chosen {
			variance += (s.offset - offset) * (s.offset - offset) / float64(max(1, freedom))
		}
		sd = math.Sqrt(variance)
	}
	if variance < 1e-20 {
		variance, sd = 1e-20, 1e-10
	}
	return f.steadied(variance, sd, max(1, freedom))
}

// steadied is sd by the average of the past, unless the current value is significantly larger.
func (f *filter) steadied(variance, sd float64, freedom int) float64 {
	before, n := f.variance, float64(freedom)
	if f.freedom > filterMemory {
		f.variance += n / (n + filterMemory) * (variance - f.variance)
	} else {
		f.variance = (f.variance*float64(f.freedom) + variance*n) / (n + float64(f.freedom))
		if f.freedom == 0 {
			before = f.variance
		}
		f.freedom += freedom
	}
	if variance*n/chiSquare(freedom) < before {
		return math.Sqrt(f.variance) * sd / math.Sqrt(variance)
	}
	return sd
}
