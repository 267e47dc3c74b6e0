package ratesearch

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestLadderEndsWithItsUpperEnd(t *testing.T) {
	for name, c := range map[string]struct {
		o    SweepOptions
		want []float64
	}{
		"doubling":       {SweepOptions{From: 100, To: 800, Factor: 2}, []float64{100, 200, 400, 800}},
		"between":        {SweepOptions{From: 100, To: 500, Factor: 2}, []float64{100, 200, 400, 500}},
		"one":            {SweepOptions{From: 100, To: 100}, []float64{100}},
		"default factor": {SweepOptions{From: 100, To: 130}, []float64{100, 125, 130}},
	} {
		s, err := NewSweep(c.o)
		if err != nil {
			t.Fatal(name, err)
		}
		var got []float64
		for {
			step, more := s.Next()
			if !more {
				break
			}
			if step.Duration != DefaultStep {
				t.Errorf("%s: %v", name, step.Duration)
			}
			got = append(got, step.Rate)
			s.Observe(Feedback{Packets: 1})
		}
		if diff := cmp.Diff(c.want, got, cmpopts.EquateApprox(1e-9, 0)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// The path of Halepovic 2008: 1.5 Mb/s, where loss begins.
func TestMaxLosslessIsTheHighestRateBelowAllLoss(t *testing.T) {
	const seeds = 100
	right := 0
	for seed := range uint64(seeds) {
		s, err := NewSweep(SweepOptions{From: 0.25 * mbit, To: 3 * mbit, Factor: 1.1, Beyond: 3})
		if err != nil {
			t.Fatal(err)
		}
		w := simulation{rate: 1.5 * mbit, queue: 40_000, emptied: true}
		n := w.run(s, seed)
		knee, ok := s.MaxLossless()
		// A step slightly faster than the link only fills its queue: 64 kb/s in 5 s.
		if ok && knee >= 1.5*mbit/1.1 && knee <= 1.5*mbit+64e3/8 && n < 27 {
			right++
		} else {
			t.Logf("seed %d: knee %v Mb/s after %d steps", seed, knee/mbit, n)
		}
	}
	t.Logf("right %d of %d", right, seeds)
	if right < seeds*99/100 {
		t.Error("too few")
	}
}

func TestLossyStepsInARowEndTheSweep(t *testing.T) {
	s, err := NewSweep(SweepOptions{From: 1, To: 1000, Factor: 2, Beyond: 2, MaxLoss: -1})
	if err != nil {
		t.Fatal(err)
	}
	for _, lost := range []int{0, 1, 0, 1, 1} {
		s.Observe(Feedback{Packets: 1000, Lost: lost, Sent: 1e9})
	}
	if _, more := s.Next(); more {
		t.Error("goes on")
	}
	s.Observe(Feedback{Packets: 1})
	steps := s.Steps()
	if len(steps) != 5 || !steps[2].Lossless || steps[1].Lossless || steps[1].Loss != 0.001 {
		t.Errorf("%+v", steps)
	}
	if knee, ok := s.MaxLossless(); !ok || knee != 1 {
		t.Errorf("knee %v %v", knee, ok)
	}
}

func TestMaxLosslessIsTheAchievedSendRate(t *testing.T) {
	s, err := NewSweep(SweepOptions{From: 1000, To: 64_000, Factor: 2})
	if err != nil {
		t.Fatal(err)
	}
	w := simulation{rate: 1e6, queue: 1e5, host: 20_000, emptied: true}
	w.run(s, 1)
	if knee, ok := s.MaxLossless(); !ok || knee != 20_000 {
		t.Errorf("knee %v %v, want the host's send rate", knee, ok)
	}
}

func TestThereIsNoLosslessRateIfTheLowestStepLoses(t *testing.T) {
	for name, f := range map[string]Feedback{"loss": {Packets: 100, Lost: 1, Sent: 1}, "nothing sent": {}} {
		s, err := NewSweep(SweepOptions{From: 1, To: 2, Duration: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := s.MaxLossless(); ok {
			t.Errorf("%s: a knee before the first step", name)
		}
		s.Observe(f)
		if knee, ok := s.MaxLossless(); ok {
			t.Errorf("%s: knee %v", name, knee)
		}
	}
}

func TestBadSweepsAreRefused(t *testing.T) {
	for name, o := range map[string]SweepOptions{
		"no rates":     {},
		"upside down":  {From: 2, To: 1},
		"not a number": {From: math.NaN(), To: 1},
		"infinite":     {From: 1, To: math.Inf(1)},
		"factor":       {From: 1, To: 2, Factor: 1},
		"factor NaN":   {From: 1, To: 2, Factor: math.NaN()},
		"too fine":     {From: 1, To: 2, Factor: 1.001},
		"zero":         {From: 0, To: 1},
		"duration":     {From: 1, To: 2, Duration: -1},
	} {
		if _, err := NewSweep(o); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
