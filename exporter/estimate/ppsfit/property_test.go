package ppsfit

import (
	"math/rand/v2"
	"testing"
	"time"

	"oneway.example/tests/testseed"
)

// tally counts how often the true time was within the bound.
type tally struct {
	queries, known, inside int
	worst                  time.Duration // beyond the bound
}

// query compares at a time before the last pulse and one up to 5 s after it.
func (c *tally) query(w *simulation, f *Fit) {
	for _, raw := range []time.Duration{
		w.pulse(0).Raw - time.Duration(w.random.Int64N(int64(10*time.Second))),
		w.pulse(0).Raw + time.Duration(w.random.Int64N(int64(5*time.Second))),
	} {
		c.queries++
		off, bound, ok := w.offset(f, raw)
		if !ok {
			continue
		}
		c.known++
		if off.Abs() <= bound {
			c.inside++
		}
		c.worst = max(c.worst, off.Abs()-bound)
	}
}

func (c *tally) judge(t *testing.T, known float64) {
	t.Helper()
	t.Logf("known %.2f %%, inside %.4f %%, largest excess over the bound %v", 100*float64(c.known)/float64(c.queries), 100*float64(c.inside)/float64(c.known), c.worst)
	if float64(c.known) < known*float64(c.queries) {
		t.Errorf("known at %d of %d times", c.known, c.queries)
	}
	if float64(c.inside) < 0.999*float64(c.known) {
		t.Errorf("true time inside the bound at %d of %d times", c.inside, c.known)
	}
}

func TestTruthIsInsideTheBoundWhateverTheNoise(t *testing.T) {
	for name, noise := range noises() {
		for _, rate := range []float64{0, 50e-6, -300e-6} {
			t.Run(name, func(t *testing.T) {
				w := newSimulation(t, testseed.Of(t), rate)
				w.wander = 3e-9
				var f Fit
				var c tally
				for range 5000 {
					w.tick()
					f.Add(w.pulse(time.Duration(noise(w.random))))
					c.query(w, &f)
				}
				known := 0.99
				if name == "large" {
					known = 0.9 // an interval of the threshold's size is not rare
				}
				c.judge(t, known)
			})
		}
	}
}

func TestTruthIsInsideTheBoundThroughFaults(t *testing.T) {
	for name, noise := range noises() {
		t.Run(name, func(t *testing.T) {
			w := newSimulation(t, testseed.Of(t), 20e-6)
			w.wander = 3e-9
			var f Fit
			var c tally
			for range 5000 {
				w.tick()
				d := time.Duration(noise(w.random))
				switch w.random.IntN(20) {
				case 0: // missed
				case 1: // late by up to 20 ms
					f.Add(w.pulse(d + time.Duration(w.random.Int64N(2e7))))
				case 2: // doubled
					f.Add(w.pulse(d))
					f.Add(w.pulse(d + time.Duration(w.random.Int64N(2e8))))
				case 3: // with another one in between
					f.Add(w.pulse(d))
					f.Add(w.pulse(d + time.Duration(w.random.Int64N(9e8))))
				default:
					f.Add(w.pulse(d))
				}
				c.query(w, &f)
			}
			c.judge(t, 0.85)
		})
	}
}

func TestTruthIsInsideTheBoundLongAfterFewPulses(t *testing.T) {
	seed := testseed.Of(t)
	var c tally
	for i := range 3000 {
		w := &simulation{T: t, random: rand.New(rand.NewPCG(seed, uint64(i))), raws: []float64{3.7e12}, rate: 20e-6}
		var f Fit
		for range minPulses + i%4 {
			w.tick()
			f.Add(w.pulse(time.Duration(3000 * w.random.NormFloat64())))
		}
		c.queries++
		if off, bound, ok := w.offset(&f, w.pulse(0).Raw+16*time.Second); ok {
			c.known++
			if off.Abs() <= bound {
				c.inside++
			}
			c.worst = max(c.worst, off.Abs()-bound)
		}
	}
	c.judge(t, 0.99)
}

func TestBoundIsNotMuchLargerThanTheNoise(t *testing.T) {
	w := newSimulation(t, 41, 20e-6)
	var f Fit
	var sum time.Duration
	const asked = 1000
	w.run(&f, minPulses)
	for range asked {
		w.tick()
		f.Add(w.pulse(time.Duration(1000 * w.random.NormFloat64())))
		_, bound, ok := w.offset(&f, w.pulse(0).Raw)
		if !ok {
			t.Fatal("unknown")
		}
		sum += bound
	}
	if mean := sum / asked; mean < 2*time.Microsecond || mean > 5*time.Microsecond {
		t.Errorf("mean bound %v with a noise of 1 us; want 2 to 5 us", mean)
	}
}

func TestNoiseAloneIsNeverAccepted(t *testing.T) {
	for _, c := range []struct {
		name string
		next func(*rand.Rand) time.Duration // interval of pulses
	}{
		{"at random", func(r *rand.Rand) time.Duration { return time.Duration(r.ExpFloat64() * 1e9) }},
		{"jittery seconds", func(r *rand.Rand) time.Duration { return time.Second + time.Duration(r.NormFloat64()*2e6) }},
		{"too fast", func(*rand.Rand) time.Duration { return 700 * time.Millisecond }},
	} {
		t.Run(c.name, func(t *testing.T) {
			seed := testseed.Of(t)
			r := rand.New(rand.NewPCG(seed, 4))
			var f Fit
			raw := 100 * time.Second
			accepted := 0
			const pulses = 5000
			for range pulses {
				raw += c.next(r)
				f.Add(Pulse{Raw: raw, UTC: begin.Add(raw.Round(time.Second))})
				if _, _, ok := f.UTC(raw); ok {
					accepted++
				}
			}
			if accepted > 0 {
				t.Errorf("accepted after %d of %d pulses", accepted, pulses)
			}
		})
	}
}
