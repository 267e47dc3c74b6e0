package loss

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"oneway.example/exporter/estimate/seqwin"
	"oneway.example/tests/testseed"
)

func TestWindowWithoutDecisionsHasNoRatio(t *testing.T) {
	var w Window
	if p, ok := w.Ratio(); ok {
		t.Errorf("ratio %v of an empty window", p)
	}
	if r, ok := w.BurstRatio(); ok {
		t.Errorf("burst ratio %v of an empty window", r)
	}
}

func TestBurstRatioIsUndefinedWithoutLossAndWithNothingElse(t *testing.T) {
	for _, d := range []Delta{{Decided: 10}, {Decided: 10, Lost: 10, Bursts: 1}} {
		var w Window
		w.Add(d)
		if r, ok := w.BurstRatio(); ok {
			t.Errorf("%+v: burst ratio %v", d, r)
		}
	}
}

func TestRatiosOfAKnownWindow(t *testing.T) {
	var w Window
	w.Add(Delta{Decided: 60, Lost: 6, Bursts: 2})
	w.Add(Delta{Decided: 40, Lost: 4, Bursts: 0}) // continues the second burst
	if p, ok := w.Ratio(); !ok || p != 0.1 {
		t.Errorf("ratio %v %v, want 0.1", p, ok)
	}
	// Mean run 10/2 over the 1/(1-0.1) of random loss.
	if r, ok := w.BurstRatio(); !ok || math.Abs(r-4.5) > 1e-12 {
		t.Errorf("burst ratio %v %v, want 4.5", r, ok)
	}
	w.Reset()
	if _, ok := w.Ratio(); ok || w.Decided() != 0 || w.Lost() != 0 || w.Bursts() != 0 {
		t.Error("values left after Reset")
	}
}

func TestBurstBegunInAnEarlierWindowCountsAsOne(t *testing.T) {
	var w Window
	w.Add(Delta{Decided: 10, Lost: 5, Bursts: 0})
	if r, ok := w.BurstRatio(); !ok || r != 2.5 || w.Bursts() != 1 {
		t.Errorf("burst ratio %v %v, %d bursts", r, ok, w.Bursts())
	}
}

func TestMoreLostThanDecidedIsNoRatioAboveOne(t *testing.T) {
	var w Window
	w.Add(Delta{Decided: 1, Lost: 1 << 40, Bursts: 1})
	if p, _ := w.Ratio(); p != 1 {
		t.Errorf("ratio %v", p)
	}
}

// Independent losses have BurstR 1, and the two-state Markov chain of G.107 clause 7.5 has 1/(p+q); the reference
// is the ratio of the drawn losses. The mean of the third chain's 4,000 runs has a standard deviation of 1.4 %,
// that of the others less: 10 % is seven of them, which fewer than one of 1e11 seeds exceeds.
func TestBurstRatioOfRandomAndMarkovLoss(t *testing.T) {
	seed := testseed.Of(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, c := range []struct{ p, q float64 }{{0.1, 0.9}, {0.05, 0.45}, {0.02, 0.18}} {
		lost := false
		stream := make([]bool, 200000)
		for i := range stream {
			if lost {
				lost = rng.Float64() >= c.q
			} else {
				lost = rng.Float64() < c.p
			}
			stream[i] = !lost
		}
		sum, _ := watch(t, stream, 1000, 256, rng)
		var w Window
		w.Add(sum)
		drawn := runs(stream)
		count := float64(total(drawn))
		want := count / float64(len(drawn)) * (1 - count/float64(len(stream)))
		if r, ok := w.BurstRatio(); !ok || math.Abs(r/want-1) > 1e-9 {
			t.Errorf("p %v q %v: burst ratio %v %v, want %v", c.p, c.q, r, ok, want)
		}
		if chain := 1 / (c.p + c.q); math.Abs(want/chain-1) > 0.1 {
			t.Errorf("p %v q %v: the drawn losses have a burst ratio of %v, want %v", c.p, c.q, want, chain)
		}
	}
}

// TestRunThatCrossesABorderIsOneInEitherWindow: a continued run and a new one must not count as a single long run.
func TestRunThatCrossesABorderIsOneInEitherWindow(t *testing.T) {
	stream := slices.Repeat([]bool{true}, 300)
	for _, n := range []int{96, 97, 98, 99, 100, 101, 150, 200, 201} {
		stream[n] = false
	}
	var w seqwin.Window
	var tracker Tracker
	var bursts, lost []uint64
	var ratios []float64
	for border, n := 100, 0; border <= 300; border += 100 {
		for ; n < border; n++ {
			if stream[n] {
				w.Add(uint64(n), 0)
			}
		}
		w.Finish(uint64(n), 0)
		var window Window
		window.Add(tracker.Update(w.Counts()))
		ratio, _ := window.BurstRatio()
		bursts, lost, ratios = append(bursts, window.Bursts()), append(lost, window.Lost()), append(ratios, ratio)
	}
	if !slices.Equal(bursts, []uint64{1, 2, 1}) || !slices.Equal(lost, []uint64{4, 3, 2}) {
		t.Errorf("%v runs of %v lost in the three windows, want 1, 2 and 1 of 4, 3 and 2", bursts, lost)
	}
	if want := 1.5 * 0.97; math.Abs(ratios[1]-want) > 1e-9 {
		t.Errorf("burst ratio %v, want %v", ratios[1], want)
	}
}

func TestLossesOfTheHostAreExcluded(t *testing.T) {
	var w Window
	d := Delta{Decided: 100, Lost: 10, Bursts: 2, Completed: []int{6, 4}}
	d.Exclude(7)
	w.Add(d)
	if p, _ := w.Ratio(); w.Lost() != 3 || w.Decided() != 93 || p != 3.0/93 {
		t.Errorf("%d lost of %d", w.Lost(), w.Decided())
	}
	if r, ok := w.BurstRatio(); ok {
		t.Errorf("burst ratio %v of losses in unknown runs", r)
	}
	d = Delta{Decided: 5, Lost: 2}
	d.Exclude(9)
	if d.Lost != 0 || d.Decided != 3 {
		t.Errorf("%+v", d)
	}
}
