package bound

import (
	"math/rand/v2"
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/tests/testseed"
)

const us = time.Microsecond

var kernelStamp = sample.Stamp{Origin: sample.Kernel}

func TestUntrustedCalibrationOnlyWidensTheInterval(t *testing.T) {
	seed := testseed.Of(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	moved := 0
	for range 10_000 {
		e := Calibration{Origin: sample.Kernel, Systematic: time.Duration(rng.IntN(100_000) - 50_000), Random: time.Duration(rng.IntN(100_000))}
		assumed := time.Duration(rng.IntN(50_000))
		before := sample.Delay{Value: time.Duration(rng.IntN(1_000_000) - 500_000), Bound: assumed + time.Duration(rng.IntN(100_000)), Reason: sample.OK}
		after := e.Correct(before, kernelStamp, assumed)
		if after.Value-after.Bound > before.Value-before.Bound || after.Value+after.Bound < before.Value+before.Bound {
			t.Fatalf("%+v made %+v of %+v", e, after, before)
		}
		if after.Value != before.Value {
			moved++
		}
	}
	if moved < 9000 {
		t.Errorf("only %d delays were corrected", moved)
	}
}

func TestCorrectionFollowsThePolicy(t *testing.T) {
	txUncertainty := sample.Stamp{Origin: sample.Kernel, TXUncertainty: 300 * us}
	small := Calibration{Origin: sample.Kernel, Systematic: 4 * us, Random: 10 * us}
	large := Calibration{Origin: sample.Kernel, Systematic: -4 * us, Random: 40 * us}
	trusted := Calibration{Origin: sample.Kernel, Systematic: 4 * us, Random: 5 * us, Trusted: true, Largest: 10 * us}
	for name, c := range map[string]struct {
		errors       Calibration
		local        sample.Stamp
		assumed      time.Duration
		value, bound time.Duration
	}{
		"nothing known":        {Calibration{}, kernelStamp, 25 * us, 100 * us, 75 * us},
		"no timestamp":         {Calibration{}, sample.Stamp{}, 25 * us, 100 * us, 75 * us},
		"small random":         {small, kernelStamp, 25 * us, 96 * us, 79 * us},
		"large random":         {large, kernelStamp, 25 * us, 104 * us, 94 * us},
		"trusted":              {trusted, kernelStamp, 25 * us, 96 * us, 60 * us},
		"trusted, but held":    {trusted, txUncertainty, 300 * us, 96 * us, 350 * us},
		"user-space timestamp": {small, sample.Stamp{Origin: sample.User}, 2000 * us, 100 * us, 2050 * us},
		"other card timestamp": {small, sample.Stamp{Origin: sample.Hardware}, 1 * us, 100 * us, 51 * us},
	} {
		d := sample.Delay{Value: 100 * us, Bound: 50*us + c.assumed, Reason: sample.OK}
		got := c.errors.Correct(d, c.local, c.assumed)
		if got.Value != c.value || got.Bound != c.bound || !got.OK() {
			t.Errorf("%s: %v ± %v, want %v ± %v", name, got.Value, got.Bound, c.value, c.bound)
		}
	}
}

func TestADelayWithoutABoundGetsNone(t *testing.T) {
	e := Calibration{Origin: sample.Kernel, Systematic: 4 * us, Random: 40 * us}
	got := e.Correct(sample.Delay{Value: 100 * us, Reason: sample.NoClock}, kernelStamp, 0)
	if got != (sample.Delay{Value: 96 * us, Reason: sample.NoClock}) {
		t.Errorf("%+v", got)
	}
}

func TestCorrectionDoesNotAllocate(t *testing.T) {
	e := calibrated()
	d := sample.Delay{Value: 100 * us, Bound: 75 * us, Reason: sample.OK}
	if n := testing.AllocsPerRun(100, func() { d = e.Correct(d, kernelStamp, 25*us) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkCorrect(b *testing.B) {
	e := calibrated()
	d := sample.Delay{Value: 100 * us, Bound: 75 * us, Reason: sample.OK}
	b.ReportAllocs()
	for b.Loop() {
		d = e.Correct(d, kernelStamp, 25*us)
	}
}

func calibrated() Calibration {
	return Calibration{Origin: sample.Kernel, Systematic: 2 * us, Random: 7 * us}
}
