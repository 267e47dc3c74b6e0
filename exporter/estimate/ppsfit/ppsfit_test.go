package ppsfit

import (
	"testing"
	"time"
)

func TestFitNeedsEightPulsesThatAgree(t *testing.T) {
	w := newSimulation(t, 1, 30e-6)
	var f Fit
	for i := range 20 {
		w.tick()
		want := Learning
		if i >= minPulses-1 {
			want = Accepted
		}
		if v := f.Add(w.pulse(0)); v != want {
			t.Errorf("pulse %d is %v, want %v", i, v, want)
		}
		if _, _, ok := f.UTC(w.pulse(0).Raw); ok != (want == Accepted) {
			t.Errorf("after pulse %d known: %v", i, ok)
		}
	}
	w.sound(&f, time.Microsecond)
}

func TestTimeIsLinearBetweenPulses(t *testing.T) {
	var f Fit
	for i := range 10 {
		f.Add(Pulse{Raw: time.Duration(i) * 1_000_050_000, UTC: begin.Add(time.Duration(i) * time.Second)})
	}
	for raw, want := range map[time.Duration]time.Duration{
		0:              0,
		500_025_000:    500 * time.Millisecond,
		5_250_262_500:  5250 * time.Millisecond,
		9_000_450_000:  9 * time.Second,
		9_500_475_000:  9500 * time.Millisecond,
		11_000_550_000: 11 * time.Second,
	} {
		if at, _, ok := f.UTC(raw); !ok || at.Sub(begin) != want {
			t.Errorf("at %v: %v, %v; want %v", raw, at.Sub(begin), ok, want)
		}
	}
}

func TestTimeIsUnknownOutsideOfThePulsesRange(t *testing.T) {
	w := newSimulation(t, 1, 0)
	var f Fit
	w.run(&f, 100)
	last := w.pulse(0).Raw
	for raw, want := range map[time.Duration]bool{
		-1:                          false,
		0:                           false,
		last - memory*time.Second:   false,
		last - 31*time.Second:       true,
		last + maxGap:               true,
		last + maxGap + time.Second: false,
		1<<63 - 1:                   false,
	} {
		if _, _, ok := f.UTC(raw); ok != want {
			t.Errorf("at %v after the last pulse: known is %v", raw-last, ok)
		}
	}
}

func TestBoundGrowsWithTheTimeSinceTheLastPulse(t *testing.T) {
	w := newSimulation(t, 7, 10e-6)
	var f Fit
	for range 40 {
		w.tick()
		f.Add(w.pulse(time.Duration(2000 * w.random.NormFloat64())))
	}
	last := f.line.last().Raw
	previous := time.Duration(0)
	for since := time.Duration(0); since <= maxGap; since += time.Second {
		_, bound, ok := f.UTC(last + since)
		if !ok || bound <= previous {
			t.Errorf("%v after the last pulse: bound %v after %v, ok %v", since, bound, previous, ok)
		}
		previous = bound
	}
}

func TestDoubledPulseIsDropped(t *testing.T) {
	w := newSimulation(t, 2, 30e-6)
	var f Fit
	for range 30 {
		w.tick()
		f.Add(w.pulse(0))
		for _, d := range []time.Duration{0, 50 * time.Microsecond, 100 * time.Millisecond, 499 * time.Millisecond} {
			if v := f.Add(w.pulse(d)); v != Doubled {
				t.Errorf("second %d: a pulse %v later is %v", w.second, d, v)
			}
		}
	}
	w.sound(&f, time.Microsecond)
}

func TestMissedPulsesAreBridged(t *testing.T) {
	for missed := 1; missed <= 15; missed++ {
		w := newSimulation(t, 3, 30e-6)
		var f Fit
		w.run(&f, 20)
		for range missed {
			w.tick()
		}
		if v := w.run(&f, 1); v != Accepted {
			t.Errorf("after %d missed pulses the next is %v", missed, v)
		}
		w.sound(&f, 10*time.Microsecond)
		middle := w.pulse(0).Raw - time.Duration(missed+1)*time.Second/2
		if off, bound, ok := w.offset(&f, middle); !ok || off.Abs() > bound {
			t.Errorf("in the middle of %d missed pulses: off by %v, bound %v, ok %v", missed, off, bound, ok)
		}
	}
}

func TestMissedPulsesAreBridgedInNoise(t *testing.T) {
	w := newSimulation(t, 3, 30e-6)
	var f Fit
	accepted := 0
	for range 100 {
		for range 40 {
			w.tick()
			f.Add(w.pulse(time.Duration(15_000 * w.random.NormFloat64())))
		}
		for range 14 {
			w.tick()
		}
		w.tick()
		if f.Add(w.pulse(time.Duration(15_000*w.random.NormFloat64()))) == Accepted {
			accepted++
		}
	}
	if accepted < 98 {
		t.Errorf("%d of 100 pulses after 14 missed ones were accepted", accepted)
	}
}

func TestFitToleratesEveryFifthPulseNoisy(t *testing.T) {
	w := newSimulation(t, 3, 30e-6)
	var f Fit
	for i := range 20 {
		w.tick()
		f.Add(w.pulse(time.Duration(i%5/4) * 20 * time.Millisecond))
	}
	w.sound(&f, time.Microsecond)
}

func TestFitToleratesEverySecondPulseMissed(t *testing.T) {
	w := newSimulation(t, 3, 30e-6)
	var f Fit
	for range 20 {
		w.tick()
		w.run(&f, 1)
	}
	w.sound(&f, time.Microsecond)
}

func TestNoisyPulseIsRejectedAndTheNextIsUsed(t *testing.T) {
	for _, d := range []time.Duration{110 * time.Microsecond, -110 * time.Microsecond, time.Millisecond, 300 * time.Millisecond, -300 * time.Millisecond} {
		w := newSimulation(t, 5, 30e-6)
		var f Fit
		w.run(&f, 20)
		w.tick()
		if v := f.Add(w.pulse(d)); v != Noisy {
			t.Errorf("a pulse off by %v is %v", d, v)
		}
		w.sound(&f, time.Microsecond)
		if v := w.run(&f, 1); v != Accepted {
			t.Errorf("the pulse after one off by %v is %v", d, v)
		}
		w.sound(&f, time.Microsecond)
	}
}

func TestPulseWithinTheThresholdWidensTheBound(t *testing.T) {
	w := newSimulation(t, 5, 0)
	var f Fit
	w.run(&f, 20)
	w.tick()
	if v := f.Add(w.pulse(90 * time.Microsecond)); v != Accepted {
		t.Fatalf("the pulse is %v", v)
	}
	if off, bound, ok := w.offset(&f, w.pulse(0).Raw); !ok || off.Abs() < 80*time.Microsecond || off.Abs() > bound {
		t.Errorf("off by %v, bound %v, ok %v", off, bound, ok)
	}
}

func TestFalseFirstPulseAffectsNoOther(t *testing.T) {
	for _, d := range []time.Duration{-900 * time.Millisecond, -400 * time.Millisecond, -5 * time.Millisecond, -500 * time.Microsecond, 300 * time.Microsecond, 400 * time.Millisecond} {
		w := newSimulation(t, 6, 40e-6)
		var f Fit
		f.Add(w.pulse(d))
		if v := w.run(&f, minPulses+2); v != Accepted {
			t.Errorf("first pulse off by %v: the pulse %d after it is %v", d, minPulses+2, v)
		}
		w.sound(&f, time.Microsecond)
	}
}

func TestFitRecoversFromABurstOfNoise(t *testing.T) {
	w := newSimulation(t, 8, 40e-6)
	var f Fit
	w.run(&f, 40)
	for range 60 {
		w.tick()
		f.Add(w.pulse(time.Duration(w.random.Int64N(8e8)) - 4e8))
	}
	if _, _, ok := f.UTC(w.pulse(0).Raw); ok {
		t.Error("accepted a minute of noise")
	}
	w.run(&f, 12)
	w.sound(&f, time.Microsecond)
}

func TestFitIsUnknownWhileMostPulsesDisagree(t *testing.T) {
	w := newSimulation(t, 8, 0)
	var f Fit
	w.run(&f, 40)
	for i := range 40 {
		w.tick()
		d := time.Duration(w.random.Int64N(4e8))
		if i%3 == 0 {
			d = 0
		}
		f.Add(w.pulse(d))
	}
	if _, _, ok := f.UTC(w.pulse(0).Raw); ok {
		t.Error("accepted with one good pulse in three")
	}
}

func TestLongLossStartsAnew(t *testing.T) {
	for _, lost := range []int{17, 180, 600, 86400} {
		w := newSimulation(t, 9, 40e-6)
		var f Fit
		w.run(&f, 40)
		for range lost {
			w.tick()
		}
		w.rate += 2e-6 // temperature change
		if v := w.run(&f, 1); v != Gap {
			t.Errorf("the first pulse after %d s is %v", lost, v)
		}
		if _, _, ok := f.UTC(w.pulse(0).Raw); ok {
			t.Errorf("after %d s one pulse gave a time", lost)
		}
		if v := w.run(&f, minPulses-1); v != Accepted {
			t.Errorf("the pulse %d after a loss of %d s is %v", minPulses, lost, v)
		}
		w.sound(&f, time.Microsecond)
	}
}
