package clocksim

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"oneway.example/tests/testseed"
)

func random(t *testing.T) *rand.Rand {
	t.Helper()
	return rand.New(rand.NewPCG(testseed.Of(t), 7))
}

// live runs a daemon until the given time.
func live(d *Chronyd, until time.Duration) {
	for d.Next() <= until {
		d.Act(d.Next())
	}
}

func close2(got, want, tolerance float64) bool { return math.Abs(got-want) <= tolerance }

func TestStepMovesOneClockAndSlewBoth(t *testing.T) {
	c := NewClock(Oscillator{Rate: 100e-6}, 0, random(t))
	c.Step(time.Second)
	c.slow(10*time.Second, 300e-6)
	wall, mono := c.Read(20 * time.Second)
	// 10 s at +100 ppm, 10 s at (1+100e-6)(1-300e-6)-1.
	want := 20*time.Second + time.Millisecond - 2*time.Millisecond - 300*time.Nanosecond
	if (mono-want).Abs() > 1 || wall-mono != time.Second {
		t.Errorf("monotonic %v, want %v; wall %v", mono, want, wall)
	}
	if got := c.Offset(20 * time.Second); !close2(got, 1-1.0003e-3, 1e-12) {
		t.Errorf("offset %v", got)
	}
}

func TestRampChangesTheRatePermanently(t *testing.T) {
	o := Oscillator{Rate: 1e-6, Ramps: []Ramp{{From: time.Minute, Over: time.Minute, Change: 4e-6}, {From: time.Hour, Change: -1e-6}}}
	for at, want := range map[time.Duration]float64{
		0: 1e-6, 90 * time.Second: 3e-6, 2 * time.Minute: 5e-6, 59 * time.Minute: 5e-6, time.Hour: 4e-6,
	} {
		if got := o.next(at, random(t)); !close2(got, want, 1e-15) {
			t.Errorf("rate %g at %v, want %g", got, at, want)
		}
	}
}

func TestFitFindsALineAndItsUncertainty(t *testing.T) {
	// Computed by hand: y = 1 + 2x with residuals +1, -2, +1 at x = -1, 0, 1.
	l := fit([]float64{-1, 0, 1}, []float64{0, -1, 4}, []float64{1, 1, 1})
	if !close2(l.intercept, 1, 1e-12) || !close2(l.slope, 2, 1e-12) ||
		!close2(l.variance, 6, 1e-12) || !close2(l.slopeSD, math.Sqrt(3), 1e-12) || !close2(l.interceptSD, math.Sqrt(2), 1e-12) {
		t.Errorf("%+v", l)
	}
}

// The values are those of published tables.
func TestQuantilesAgreeWithTables(t *testing.T) {
	for freedom, want := range map[int]float64{1: 636.6, 10: 4.587, 11: 4.437, 20: 3.850, 40: 3.551, 120: 3.373} {
		if got := student(freedom); !close2(got, want, 0.01) {
			t.Errorf("t(%d) = %v, want %v", freedom, got, want)
		}
	}
	for freedom, want := range map[int]float64{1: 2.706, 8: 13.362, 20: 28.412, 60: 74.397} {
		if got := chiSquare(freedom); !close2(got, want, want*0.03) {
			t.Errorf("chi square(%d) = %v, want %v", freedom, got, want)
		}
	}
	for n, want := range map[int]int{7: 0, 8: 2, 20: 7, 60: 24, 100: 42, 129: 56} {
		if got := criticalRuns(n); got != want {
			t.Errorf("critical runs of %d: %d, want %d", n, got, want)
		}
	}
}

func TestFilterSelectsSamplesAroundTheMedian(t *testing.T) {
	var f filter
	for i := range 16 {
		offset := 1e-6 * float64(i%2)
		if i%8 == 3 {
			offset = 1 // two of 16 are outliers
		}
		f.add(sample{at: float64(i), offset: offset, peerDispersion: 1e-6})
	}
	s, ok := f.poll()
	if !ok || s.offset < 0 || s.offset > 1e-6 || s.peerDispersion > 2e-6 {
		t.Errorf("got sample %+v, %v", s, ok)
	}
	for range 3 {
		f.add(sample{at: s.at + 100})
	}
	if _, ok := f.poll(); ok {
		t.Error("the filter accepted three samples")
	}
}

// The effect of a manual step on chronyd: at first it gives samples from before the step more weight than those after
// it.
func TestRegisterDropsSamplesThatDoNotFit(t *testing.T) {
	r := register{precision: 1e-9}
	random := random(t)
	for i := range 60 {
		offset := 1e-6 * random.NormFloat64()
		if i >= 40 {
			offset++
		}
		r.add(sample{at: 16 * float64(i), offset: offset, peerDelay: 1e-3, peerDispersion: 1e-6})
		if i == 40 && r.estimate.intercept > 0.9 {
			t.Errorf("one sample changes the estimate at once: %+v", r.estimate)
		}
	}
	if len(r.samples) > 20 || !close2(r.estimate.intercept, 1, 1e-4) {
		t.Errorf("got %d samples, estimate %+v", len(r.samples), r.estimate)
	}
}

func TestCorrectionIsTheRemainingSlew(t *testing.T) {
	c := NewClock(Oscillator{}, 10*time.Millisecond, random(t))
	s := steering{clock: c, random: random(t), start: c.seconds(0)}
	s.steer(0, 0, 10e-3, 0)
	for at := time.Duration(0); at < s.end; at += 100 * time.Millisecond {
		if off := c.Offset(at) + s.correction(at); !close2(off, 0, 1e-8) {
			t.Errorf("at %v the error of the corrected clock is %v", at, off)
		}
	}
	for s.end < time.Minute {
		s.replan(s.end)
	}
	if off := c.Offset(time.Minute); !close2(off, 0, 1e-6) {
		t.Errorf("after the slew the error of the clock is %v", off)
	}
}

func TestSlewAtFullSpeedStopsInTime(t *testing.T) {
	for _, offset := range []float64{1, -1} {
		c := NewClock(Oscillator{}, time.Duration(offset*1e9), random(t))
		s := steering{clock: c, random: random(t), start: c.seconds(0)}
		s.steer(0, 0, offset, 0)
		if off := c.Offset(s.end); s.end < 11*time.Second || s.end > 13*time.Second || !close2(off, 0, 1e-3) {
			t.Errorf("slew of %v s in %v: %v s remain", offset, s.end, off)
		}
	}
}

func TestChronydFindsOffsetAndFrequency(t *testing.T) {
	for name, source := range map[string]Source{
		"pulse":  &Pulse{Poll: 4, Delay: 1e-6, Precision: 1e-6, Jitter: time.Microsecond},
		"server": &NTP{Poll: 4, Forward: time.Millisecond, Back: time.Millisecond, Jitter: 20 * time.Microsecond},
	} {
		c := NewClock(Oscillator{Rate: 50e-6}, 50*time.Millisecond, random(t))
		d := Start(c, Config{Source: source}, 0, random(t))
		if d.Tracking(0).Synchronized {
			t.Errorf("%s: synchronized from the start", name)
		}
		live(d, time.Hour)
		track, off := d.Tracking(time.Hour), c.Offset(time.Hour)
		bound := math.Abs(track.Correction) + track.RootDispersion + track.RootDelay/2
		if !track.Synchronized || math.Abs(off) > 30e-6 || math.Abs(off) > bound || !close2(track.Frequency, -50e-6, 0.2e-6) {
			t.Errorf("%s: error %v, bound %v, %+v", name, off, bound, track)
		}
	}
}

// chronyc(1), reference.c: between updates the dispersion grows by skew, residual
// frequency and maxclockerror.
func TestDispersionGrowsLikeChronydsWithoutAnUpdate(t *testing.T) {
	lost := func(at time.Duration) bool { return at > time.Hour }
	d := Start(NewClock(Oscillator{}, 0, random(t)), Config{Source: &Pulse{Poll: 4, Delay: 1e-6, Precision: 1e-6, Lost: lost}}, 0, random(t))
	live(d, 61*time.Minute)
	from := d.Tracking(61 * time.Minute)
	live(d, 121*time.Minute)
	to := d.Tracking(121 * time.Minute)
	want := 3600 * (from.Skew + math.Abs(from.Residual) + 1e-6)
	if !to.Synchronized || !close2(to.RootDispersion-from.RootDispersion, want, want/1000) {
		t.Errorf("grew by %v in an hour, want %v", to.RootDispersion-from.RootDispersion, want)
	}
}

func TestMakeStepStepsOnlyAtFirst(t *testing.T) {
	c := NewClock(Oscillator{}, -3*time.Second, random(t))
	d := Start(c, Config{MakeStep: 1, StepLimit: 3, Source: &NTP{Poll: 4}}, 0, random(t))
	live(d, 10*time.Second)
	if wall, mono := c.Read(10 * time.Second); (wall-mono).Abs() > time.Millisecond || math.Abs(c.Offset(10*time.Second)) > 1e-3 {
		t.Errorf("wall minus monotonic %v, error %v", wall-mono, c.Offset(10*time.Second))
	}
	live(d, time.Hour)
	c.Step(2 * time.Second)
	live(d, 2*time.Hour)
	if wall, mono := c.Read(2 * time.Hour); (wall - mono - 2*time.Second).Abs() > time.Millisecond {
		t.Errorf("stepped after its third update: %v", wall-mono)
	}
	if off := c.Offset(2 * time.Hour); math.Abs(off) > 1e-3 {
		t.Errorf("error %v an hour after a step", off)
	}
}

func TestSimulationIsDeterministicForASeed(t *testing.T) {
	day := func() Tracking {
		d := Start(NewClock(Oscillator{Rate: 1e-5, Walk: 1e-9, Day: 1e-7}, 0, random(t)), Config{Source: &Pulse{Poll: 4, Delay: 1e-6, Jitter: time.Microsecond}}, 0, random(t))
		live(d, time.Hour)
		return d.Tracking(time.Hour)
	}
	if a, b := day(), day(); a != b {
		t.Errorf("%+v\n%+v", a, b)
	}
}
