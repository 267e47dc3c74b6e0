package ppsfit

import (
	"math"
	"testing"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/tests/testseed"
)

// labeled is the pulse with a CLOCK_REALTIME that is wrong by d: only the number of the second can be wrong.
func (w *simulation) labeled(d time.Duration) Pulse {
	p := w.pulse(0)
	p.UTC = instant.Time(math.Round(float64(p.UTC.Add(d)-begin)/1e9)*1e9) + begin
	return p
}

func TestStepOfWholeSecondsStartsAnew(t *testing.T) {
	for _, d := range []time.Duration{time.Second, -time.Second, 37 * time.Second, 600 * time.Millisecond, -700 * time.Millisecond} {
		w := newSimulation(t, 11, 40e-6)
		var f Fit
		w.run(&f, 40)
		for i := range minPulses + 5 {
			w.tick()
			p := w.labeled(d)
			v := f.Add(p)
			want := Learning
			switch {
			case i == 0:
				want = Step
			case i >= minPulses-1:
				want = Accepted
			}
			if v != want {
				t.Errorf("pulse %d after a step of %v is %v, want %v", i, d, v, want)
			}
			at, bound, ok := f.UTC(p.Raw)
			if ok != (want == Accepted) || ok && (at-p.UTC).Time().UnixNano() > int64(bound) {
				t.Errorf("pulse %d after a step of %v: %v, bound %v, ok %v; the clock has %v", i, d, at, bound, ok, p.UTC)
			}
		}
	}
}

func TestStepOfLessThanHalfASecondDoesNotDisturb(t *testing.T) {
	for _, d := range []time.Duration{499 * time.Millisecond, -499 * time.Millisecond, 50 * time.Millisecond} {
		w := newSimulation(t, 11, 40e-6)
		var f Fit
		w.run(&f, 40)
		for range 5 {
			w.tick()
			if v := f.Add(w.labeled(d)); v != Accepted {
				t.Errorf("a pulse after a step of %v is %v", d, v)
			}
			w.sound(&f, time.Microsecond)
		}
	}
}

func TestStepWhileLearningStartsAnew(t *testing.T) {
	w := newSimulation(t, 12, 40e-6)
	var f Fit
	w.run(&f, minPulses-2)
	w.label = time.Second
	if v := w.run(&f, 1); v != Step {
		t.Errorf("the first pulse after the step is %v", v)
	}
	if v := w.run(&f, minPulses-1); v != Accepted {
		t.Errorf("the last is %v", v)
	}
	w.sound(&f, time.Microsecond)
}

func TestOtherPhaseOfAllPulsesIsAStep(t *testing.T) {
	// As after a receiver's loss of satellites, or a pause of the machine.
	for _, d := range []time.Duration{300 * time.Millisecond, -300 * time.Millisecond, 400 * time.Microsecond, -3 * time.Second} {
		w := newSimulation(t, 13, 40e-6)
		var f Fit
		w.run(&f, 40)
		for i := range minPulses {
			w.tick()
			v := f.Add(w.pulse(d))
			if last := i == minPulses-1; last && v != Step || !last && v != Noisy {
				t.Errorf("pulse %d after a shift of %v is %v", i, d, v)
			}
		}
		at, _, ok := f.UTC(w.pulse(d).Raw)
		if !ok || at != w.pulse(d).UTC {
			t.Errorf("after a shift of %v: %v, ok %v, want %v", d, at, ok, w.pulse(d).UTC)
		}
	}
}

func TestRestartedRawClockIsAccepted(t *testing.T) {
	w := newSimulation(t, 14, 40e-6)
	var f Fit
	w.run(&f, 40)
	shift := -w.pulse(0).Raw
	for range minPulses {
		w.tick()
		f.Add(w.pulse(shift))
	}
	if at, _, ok := f.UTC(w.pulse(shift).Raw); !ok || at != w.pulse(shift).UTC {
		t.Errorf("%v, ok %v", at, ok)
	}
}

func TestImpossiblePulseChangesNothing(t *testing.T) {
	w := newSimulation(t, 15, 40e-6)
	var f Fit
	w.run(&f, 20)
	before := f
	raw := w.pulse(0).Raw + time.Second
	for _, p := range []Pulse{
		{},
		{Raw: -1, UTC: begin},
		{Raw: raw, UTC: begin + 1},
		{Raw: raw, UTC: -begin},
		{Raw: raw, UTC: lastSecond + instant.Time(time.Second)},
	} {
		if v := f.Add(p); v != Noisy || f != before {
			t.Errorf("%+v is %v", p, v)
		}
	}
}

// TestStepsInNoiseNeverLeaveAWrongSecond steps the labels at random and compares with the current label.
func TestStepsInNoiseNeverLeaveAWrongSecond(t *testing.T) {
	w := newSimulation(t, testseed.Of(t), 20e-6)
	var f Fit
	known := 0
	for range 5000 {
		w.tick()
		if w.random.IntN(40) == 0 {
			w.label += time.Duration(w.random.IntN(5)-2) * time.Second
		}
		f.Add(w.pulse(time.Duration(3000 * w.random.NormFloat64())))
		if off, bound, ok := w.offset(&f, w.pulse(0).Raw); ok {
			known++
			if off.Abs() > bound+100*time.Microsecond {
				t.Fatalf("second %d: off by %v, bound %v", w.second, off, bound)
			}
		}
	}
	if known < 2000 {
		t.Errorf("known at %d of 5000 pulses", known)
	}
}

func TestVerdictsHaveLabels(t *testing.T) {
	seen := map[string]bool{}
	for _, v := range append(Verdicts(), Verdict(99)) {
		if seen[v.String()] {
			t.Errorf("%q twice", v)
		}
		seen[v.String()] = true
		if want := v != Accepted && v != Learning; v.Rejected() != want {
			t.Errorf("%v rejected: %v", v, !want)
		}
	}
}
