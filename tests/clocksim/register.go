package clocksim

import (
	"math"
	"slices"
	"time"
)

// sample is one measurement, in seconds.
type sample struct {
	at             float64 // by the clock, corrected by the remaining slew of chronyd
	offset         float64 // positive: the clock is fast
	peerDelay      float64
	peerDispersion float64
	rootDelay      float64
	rootDispersion float64
	taken          time.Duration // true time, of the earliest if it combines several
}

// adjusted is the sample as if the clock had been changed before it.
func (s sample) adjusted(when, frequency, offset float64) sample {
	delta := (when-s.at)*frequency - offset
	s.at += delta
	s.offset += delta
	return s
}

func adjust(samples []sample, when, frequency, offset float64) {
	for i := range samples {
		samples[i] = samples[i].adjusted(when, frequency, offset)
	}
}

// Limits of the register: chronyd's own, and the defaults of chrony.conf(5).
const (
	maxSamples    = 64
	minSamples    = 6
	minToRegress  = 3
	runsRatio     = 2 // factor of additional older samples for the test of runs
	worstRate     = 2000e-6
	minSkew       = 1e-12
	maxSkew       = 1.0
	distanceRatio = 0.7
)

// register is the regression over the last samples of a source.
type register struct {
	samples   []sample // oldest first
	former    []sample // dropped from the fit, kept for the test of runs
	precision float64  // of clock readings
	ok        bool
	estimate  line // offset at the last sample, and its change
	skew      float64
	best      int // the sample with the smallest bound of the offset
}

// add adds a sample and repeats the fit.
func (r *register) add(s sample) {
	if n := len(r.samples); n > 0 && s.at <= r.samples[n-1].at {
		r.samples, r.former = nil, nil // the clock went back
	}
	if len(r.samples) == maxSamples {
		r.drop(1)
	}
	r.samples = append(r.samples, s)
	r.regress()
}

// drop removes the oldest n samples from the fit.
func (r *register) drop(n int) {
	r.former = append(r.former, r.samples[:n]...)
	r.samples = slices.Clone(r.samples[n:])
	if over := len(r.former) - len(r.samples)*(runsRatio-1); over > 0 {
		r.former = slices.Clone(r.former[over:])
	}
}

// regress fits a line to as many samples as possible: the oldest are dropped until the residuals appear independent.
func (r *register) regress() {
	all := append(slices.Clone(r.former), r.samples...)
	last := all[len(all)-1].at
	x, y := make([]float64, len(all)), make([]float64, len(all))
	for i, s := range all {
		x[i], y[i] = s.at-last, s.offset
	}
	weights := r.weights()
	n, m := len(r.samples), len(r.former)
	if r.ok = n >= minToRegress; !r.ok {
		r.skew, r.best = worstRate, n-1
		return
	}
	start := 0
	for ; ; start++ {
		r.estimate = fit(x[m+start:], y[m+start:], weights[start:])
		from := max(0, m+n-(n-start)*runsRatio)
		residuals := make([]float64, 0, len(all))
		for i := from; i < len(all); i++ {
			residuals = append(residuals, r.estimate.residual(x[i], y[i]))
		}
		if runs(residuals) > criticalRuns(len(residuals)) || n-start <= minSamples {
			break
		}
	}
	r.skew = min(maxSkew, max(minSkew, r.estimate.slopeSD*student(n-start-2)))
	r.drop(start)
	r.findBest()
}

// weights increase with a sample's distance above the minimum.
func (r *register) weights() []float64 {
	distances := make([]float64, len(r.samples))
	for i, s := range r.samples {
		distances[i] = s.peerDelay/2 + s.peerDispersion
	}
	sorted := slices.Sorted(slices.Values(distances))
	least := sorted[0]
	median := (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
	sd := min(least, max(r.precision, (median-least)/distanceRatio))
	least += r.precision
	for i, d := range distances {
		w := 1 + max(0, d-least)/sd
		distances[i] = w * w
	}
	return distances
}

func (r *register) findBest() {
	last, least := r.samples[len(r.samples)-1].at, math.Inf(1)
	for i, s := range r.samples {
		if d := s.rootDispersion + (last-s.at)*r.skew + s.rootDelay/2; d < least {
			r.best, least = i, d
		}
	}
}

// slew adjusts the samples for a change of the clock.
func (r *register) slew(when, frequency, offset float64) {
	if len(r.samples) == 0 {
		return
	}
	last := r.samples[len(r.samples)-1].at
	adjust(r.samples, when, frequency, offset)
	adjust(r.former, when, frequency, offset)
	r.estimate.intercept += (when-last)*frequency - offset
	r.estimate.slope = (r.estimate.slope - frequency) / (1 - frequency)
}

// disperse adds to the uncertainty of all samples.
func (r *register) disperse(by float64) {
	for i := range r.samples {
		r.samples[i].peerDispersion += by
		r.samples[i].rootDispersion += by
	}
}
