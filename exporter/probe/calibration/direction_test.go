package calibration

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oneway.example/exporter/estimate/orderstat"
	"oneway.example/tests/testseed"
)

const us = time.Microsecond

// observed makes observations of delays without TX uncertainty.
func observed(delays ...time.Duration) (all []observation) {
	for _, d := range delays {
		all = append(all, observation{delay: d})
	}
	return all
}

func TestErrorsAreMedianAndOuterPercentiles(t *testing.T) {
	// 1..1000 us, shuffled: the 2.5th percentile is 25, the median 500, the 97.5th 975.
	var all []observation
	for i := range 1000 {
		all = append(all, observation{delay: time.Duration(i+1) * us})
	}
	rand.New(rand.NewPCG(testseed.Of(t), 2)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	want := Direction{Count: 1000, Systematic: 400 * us, Random: 475 * us, Largest: 500 * us}
	if diff := cmp.Diff(want, summarize(all, 100*us)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRandomErrorIsThatOfTheFartherSide(t *testing.T) {
	var low, high []observation
	for i := range 1000 {
		d := 10 * us
		if i < 50 { // the outer 5 %
			d = 2 * us
		}
		low = append(low, observation{delay: d})
		high = append(high, observation{delay: 20*us - d})
	}
	for name, all := range map[string][]observation{"low": low, "high": high} {
		if d := summarize(all, 0); d.Random != 8*us || d.Systematic != 10*us {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

func TestNegativeDelaysAreNotClamped(t *testing.T) {
	d := summarize(observed(-3*us, -2*us, -1*us), 1*us)
	if want := (Direction{Count: 3, Systematic: -3 * us, Random: 1 * us, Largest: 1 * us}); d != want {
		t.Errorf("%+v", d)
	}
}

func TestLargestErrorLeavesOutWhatItsOwnBoundCovers(t *testing.T) {
	for name, c := range map[string]struct {
		delay, txUncertainty, want time.Duration
	}{
		"held and covered":     {900 * us, 900 * us, 1 * us},
		"held, yet too little": {900 * us, 800 * us, 890 * us},
		"not held":             {30 * us, 25 * us, 20 * us},
		"early, whatever held": {-40 * us, 900 * us, 50 * us},
	} {
		all := observed(9*us, 10*us, 10*us, 11*us)
		all = append(all, observation{c.delay, c.txUncertainty})
		if d := summarize(all, 0); d.Largest != c.want || d.Systematic != 10*us {
			t.Errorf("%s: %+v, want %v", name, d, c.want)
		}
	}
}

// slowPercentile is the definition of RFC 2330 section 11.3, implemented literally.
func slowPercentile(all []observation, p float64) time.Duration {
	best := time.Duration(1<<63 - 1)
	for _, x := range all {
		n := 0
		for _, y := range all {
			if y.delay <= x.delay {
				n++
			}
		}
		if 100*float64(n) >= p*float64(len(all)) {
			best = min(best, x.delay)
		}
	}
	return best
}

func TestPercentileIsThatOfTheEmpiricalDistribution(t *testing.T) {
	seed := testseed.Of(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		all := make([]observation, 1+rng.IntN(60))
		for i := range all {
			all[i].delay = time.Duration(rng.IntN(30)) - 15
		}
		slices.SortFunc(all, func(a, b observation) int { return int(a.delay - b.delay) })
		for _, p := range []float64{2.5, 50, 97.5} {
			if got, want := orderstat.Quantile(all, p/100).delay, slowPercentile(all, p); got != want {
				t.Fatalf("percentile %v of %v is %v, want %v", p, all, got, want)
			}
		}
	}
}
