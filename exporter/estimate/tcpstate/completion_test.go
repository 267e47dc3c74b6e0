package tcpstate

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"oneway.example/tests/testseed"
)

// Flows that did not end are the longest: they move the quantiles up, and hide those that would be theirs.
func TestUnfinishedFlowsAreTheLongest(t *testing.T) {
	var times []time.Duration
	for i := range 80 {
		times = append(times, time.Duration(80-i)*ms)
	}
	all := NewCompletions(times, 20)
	for _, c := range []struct {
		q    float64
		want Quantile
		ok   bool
	}{
		{0.5, Quantile{50 * ms, 40 * ms, 61 * ms}, true},
		{0.8, Quantile{80 * ms, 72 * ms, 0}, true},
		{0.81, Quantile{}, false},
		{0.01, Quantile{}, false},
		{0, Quantile{}, false},
		{1, Quantile{}, false},
		{math.NaN(), Quantile{}, false},
	} {
		if got, ok := all.At(c.q); got != c.want || ok != c.ok {
			t.Errorf("%v: %+v, %v, want %+v", c.q, got, ok, c.want)
		}
	}
	if got, ok := NewCompletions(nil, 0).At(0.5); ok {
		t.Errorf("no flows: %+v", got)
	}
}

// Of 2000 intervals at least 92 % cover the quantile: at a coverage of 95 % fewer have a chance below 1e-7.
func TestIntervalOfCompletionsCoversTheTruth(t *testing.T) {
	rng := rand.New(rand.NewPCG(testseed.Of(t), 4))
	const runs = 2000
	for _, q := range []float64{0.5, 0.9} {
		truth, covered := time.Duration(-math.Log(1-q)*1e9), 0
		for range runs {
			times := make([]time.Duration, 100)
			for i := range times {
				times[i] = time.Duration(rng.ExpFloat64() * 1e9)
			}
			if v, ok := NewCompletions(times, 0).At(q); ok && v.Lower <= truth && truth <= v.Upper {
				covered++
			}
		}
		if covered < runs*92/100 {
			t.Errorf("%v: %d of %d", q, covered, runs)
		}
	}
}
