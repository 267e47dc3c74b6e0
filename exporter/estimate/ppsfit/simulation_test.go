package ppsfit

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
)

// begin is an arbitrary whole second.
const begin = instant.Time(1_800_000_000 * int64(time.Second))

// simulation is a raw clock with a varying rate, and pulses.
type simulation struct {
	*testing.T
	random *rand.Rand
	// second counts true seconds since begin.
	second int
	raws   []float64 // raw clock at each true second, in ns
	rate   float64   // of the raw clock against true time, minus one
	// wander is the largest change of rate from one second to the next.
	wander float64
	// label is the error of CLOCK_REALTIME's second.
	label time.Duration
}

func newSimulation(t *testing.T, seed uint64, rate float64) *simulation {
	t.Helper()
	t.Logf("seed %d", seed)
	return &simulation{T: t, random: rand.New(rand.NewPCG(seed, 4)), raws: []float64{3.7e12}, rate: rate}
}

// tick advances by one second.
func (w *simulation) tick() {
	last := w.raws[len(w.raws)-1]
	next := w.rate + w.wander*(2*w.random.Float64()-1)
	w.raws = append(w.raws, last+1e9*(1+(w.rate+next)/2))
	w.rate = next
	w.second++
}

// pulse is the pulse of the current second, late by d.
func (w *simulation) pulse(d time.Duration) Pulse {
	return Pulse{
		Raw: time.Duration(math.Round(w.raws[w.second])) + d,
		UTC: begin.Add(time.Duration(w.second)*time.Second + w.label),
	}
}

// truth is the true time at raw, by the parabola between the seconds around it.
func (w *simulation) truth(raw time.Duration) time.Duration {
	i := w.second
	for i > 0 && w.raws[i] > float64(raw) {
		i--
	}
	for i+1 >= len(w.raws) {
		return time.Duration(i)*time.Second + time.Duration((float64(raw)-w.raws[i])/(1+w.rate))
	}
	share := (float64(raw) - w.raws[i]) / (w.raws[i+1] - w.raws[i])
	return time.Duration((float64(i) + share) * 1e9)
}

// offset is the error of the fit at raw.
func (w *simulation) offset(f *Fit, raw time.Duration) (off, bound time.Duration, ok bool) {
	at, bound, ok := f.UTC(raw)
	return at.Sub(begin) - w.label - w.truth(raw), bound, ok
}

// run feeds n clean pulses and returns the last verdict.
func (w *simulation) run(f *Fit, n int) (v Verdict) {
	for range n {
		w.tick()
		v = f.Add(w.pulse(0))
	}
	return v
}

// sound fails unless the fit gives the current second within its bound and limit.
func (w *simulation) sound(f *Fit, limit time.Duration) {
	w.Helper()
	off, bound, ok := w.offset(f, w.pulse(0).Raw)
	if !ok || off.Abs() > bound || bound > limit {
		w.Errorf("second %d: off by %v, bound %v, ok %v; want a bound of at most %v", w.second, off, bound, ok, limit)
	}
}

// noises are the kinds of latency, all of mean zero, since a common latency is not detected.
func noises() map[string]func(*rand.Rand) float64 {
	return map[string]func(*rand.Rand) float64{
		"none":     func(*rand.Rand) float64 { return 0 },
		"normal":   func(r *rand.Rand) float64 { return 5e3 * r.NormFloat64() },
		"uniform":  func(r *rand.Rand) float64 { return 20e3 * (r.Float64() - 0.5) },
		"late":     func(r *rand.Rand) float64 { return 5e3 * (r.ExpFloat64() - 1) },
		"two ways": func(r *rand.Rand) float64 { return 8e3 * float64(2*r.IntN(2)-1) },
		"rare":     func(r *rand.Rand) float64 { return 60e3*float64(r.IntN(30)/29) + 100*r.NormFloat64() },
		"coarse":   func(r *rand.Rand) float64 { return 1e3 * math.Round(2*r.NormFloat64()) },
		"large":    func(r *rand.Rand) float64 { return 25e3 * r.NormFloat64() },
	}
}
