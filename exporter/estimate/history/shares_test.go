package history

import (
	"math/rand/v2"
	"testing"
	"time"

	"oneway.example/tests/testseed"
)

// losses is a history of hours with a share of lost packets that changes from day to day.
func losses(rng *rand.Rand, days int, share float64) (all []Counted) {
	for d := range days {
		today := share * (0.5 + rng.Float64())
		for h := range 24 {
			c := Counted{Sample: At(monday.Add(time.Duration(24*d+h)*time.Hour), 0), Whole: 3600}
			for range 3600 / 36 { // in bursts
				if rng.Float64() < today {
					c.Events += 36
				}
			}
			all = append(all, c)
		}
	}
	return all
}

func TestSharesOfTwoConditions(t *testing.T) {
	seed, n := testseed.Of(t), 10**histories
	covered, wrong := 0, 0
	for i := range n {
		rng := rand.New(rand.NewPCG(seed, uint64(16e6+i)))
		v, ok := CompareShares(losses(rng, 14, 0.02), losses(rng, 14, 0.01), 0, Options{})
		if !ok {
			t.Fatal("no comparison")
		}
		if v.Difference.Low <= 0.01 && v.Difference.High >= 0.01 {
			covered++
		}
		if v, _ := CompareShares(losses(rng, 14, 0.01), losses(rng, 14, 0.01), 0, Options{}); v.Verdict.Outcome == Differs {
			wrong++
		}
	}
	if float64(covered) < (0.935-tolerance(0.95, n))*float64(n) || float64(wrong) > (0.05+tolerance(0.05, n))*float64(n) {
		t.Errorf("of %d: %d intervals contain the truth, %d false differences", n, covered, wrong)
	}
}

func TestSharesWithoutLossAreEqualOnlyWithEnoughPackets(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	few := losses(rng, 1, 0)[:1]
	few[0].Whole = 100
	if v, ok := CompareShares(few, few, 0, Options{}); !ok || v.Verdict.Outcome != Unknown || v.P != 1 {
		t.Errorf("100 packets: %+v", v)
	}
	if v, ok := CompareShares(losses(rng, 14, 0), losses(rng, 14, 0), 0, Options{}); !ok || v.Verdict.Outcome != Equal || v.Verdict.Within != DefaultShareMargin {
		t.Errorf("a million packets: %+v", v)
	}
	if v, ok := CompareShares(nil, few, 0, Options{}); ok {
		t.Errorf("nothing: %+v", v)
	}
}
