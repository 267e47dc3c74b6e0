package fairness

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/quick"
	"time"

	"oneway.example/tests/testseed"
)

func TestJainsIndexOfKnownShares(t *testing.T) {
	for _, c := range []struct {
		rates []float64
		want  float64
	}{
		{[]float64{3, 3, 3, 3}, 1},
		{[]float64{5, 0, 0, 0}, 0.25},
		{[]float64{1, 1, 0, 0}, 0.5},
		{[]float64{1, 2}, 0.9},
		{[]float64{1e300, 1e300}, 1},
		{[]float64{1e-300}, 1},
	} {
		if got, ok := Jain(c.rates); !ok || math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%v: %v, %v", c.rates, got, ok)
		}
	}
	for _, none := range [][]float64{nil, {0, 0}, {1, -1}, {math.NaN(), 1}} {
		if got, ok := Jain(none); ok {
			t.Errorf("%v: %v", none, got)
		}
	}
}

// The index lies within 1/n and 1, and does not depend on the unit or the order.
func TestJainsIndexHasItsRange(t *testing.T) {
	if err := quick.Check(func(rates []uint32, unit uint16) bool {
		var a, b []float64
		for _, r := range rates {
			a, b = append(a, float64(r)), append(b, float64(r)*(1+float64(unit)))
		}
		slices.Reverse(b)
		x, ok := Jain(a)
		y, same := Jain(b)
		return ok == same && (!ok || x >= 1/float64(len(a))-1e-9 && x <= 1+1e-9 && math.Abs(x-y) < 1e-9)
	}, nil); err != nil {
		t.Error(err)
	}
}

// Flows that take turns are fair over the whole, but not in any window.
func TestIndexOverWindowsShowsShortUnfairness(t *testing.T) {
	turns := [][]float64{{10, 0, 10, 0, 0}, {0, 10, 0, 10, 0, 7}}
	if got, ok := Over([]float64{4, 4}, turns); !ok || got.Whole != 1 || *got.Quartiles != [3]float64{0.5, 0.5, 0.5} || got.Windows != 4 {
		t.Errorf("%+v, %v", got, ok)
	}
	for _, short := range [][][]float64{nil, {{}, {}}, {{1}, {}}, {{0}, {0}}} {
		if got, ok := Over([]float64{1, 2}, short); !ok || math.Abs(got.Whole-0.9) > 1e-12 || got.Quartiles != nil || got.Windows != 0 {
			t.Errorf("%v: %+v, %v", short, got, ok)
		}
	}
	if got, ok := Over([]float64{0, 0}, turns); ok {
		t.Errorf("nothing arrived: %+v", got)
	}
}

func TestSharesOfVariantsAreBesideTheFairOnes(t *testing.T) {
	got, ok := Shares([]string{"vegas", "cubic", "cubic", "cubic"}, []float64{1, 3, 2, 4})
	want := []Share{{"cubic", 3, 0.9, 1.2}, {"vegas", 1, 0.1, 0.4}}
	if !ok || len(got) != 2 {
		t.Fatalf("%+v, %v", got, ok)
	}
	for i := range want {
		if got[i].Variant != want[i].Variant || got[i].Flows != want[i].Flows || math.Abs(got[i].Ratio-want[i].Ratio) > 1e-12 || math.Abs(got[i].OfFair-want[i].OfFair) > 1e-12 {
			t.Errorf("%+v, want %+v", got[i], want[i])
		}
	}
	if _, ok := Shares([]string{"cubic"}, []float64{0}); ok {
		t.Error("shares of nothing")
	}
}

func TestPhasesLeaveOutSecondsWithABorder(t *testing.T) {
	rates := []float64{10, 10, 4, 2, 2, 2, 5, 9, 9}
	got := Around(rates, 2500*time.Millisecond, 6500*time.Millisecond, 0)
	if *got.Before != 10 || *got.During != 2 || *got.After != 9 {
		t.Errorf("%v %v %v", *got.Before, *got.During, *got.After)
	}
	if got := Around(rates, 0, time.Hour, 0); got.Before != nil || got.After != nil || *got.During != 53.0/9 {
		t.Errorf("all the time: %+v", got)
	}
	if got := Around(rates, -time.Second, -time.Millisecond, 0); got.Before != nil || got.During != nil || *got.After != 53.0/9 {
		t.Errorf("before the first second: %+v", got)
	}
	if got := Around(nil, 0, time.Second, 0); got != (Phases{}) {
		t.Errorf("no seconds: %+v", got)
	}
}

// The first second of the long flow, and that of the other, count in no phase.
func TestPhasesLeaveOutTheOmittedPartOfBothFlows(t *testing.T) {
	got := Around([]float64{1, 10, 10, 7, 2, 2, 9}, 3*time.Second, 6*time.Second, time.Second)
	if *got.Before != 10 || *got.During != 2 || *got.After != 9 {
		t.Errorf("%v %v %v", *got.Before, *got.During, *got.After)
	}
	if got := Around([]float64{1, 10, 7}, time.Second, 2*time.Second, 1500*time.Millisecond); got.Before != nil || got.During != nil || *got.After != 7 {
		t.Errorf("phases shorter than the omitted part: %+v", got)
	}
}

func TestCorrelationOfKnownSeries(t *testing.T) {
	// 14 of 16 pairs agree. Fisher's z is 0.973, with a half width of 1.96/sqrt(13).
	x := []float64{1, 1, -1, -1, 1, 1, -1, -1, 1, 1, -1, -1, 1, 1, -1, -1}
	y := []float64{-1, 1, 1, -1, 1, 1, -1, -1, 1, 1, -1, -1, 1, 1, -1, -1}
	got, ok := Correlate(x, y)
	if !ok || math.Abs(got.Value-0.75) > 1e-12 || math.Abs(got.Lower-0.404) > 0.01 || math.Abs(got.Upper-0.908) > 0.01 {
		t.Errorf("%+v, %v", got, ok)
	}
	for _, none := range [][2][]float64{{nil, nil}, {{1, 2, 3}, {3, 2, 1}}, {{1, 1, 1, 1, 1}, {1, 2, 3, 4, 5}}, {{1, 2, 4, 3, 5}, {2, 4, 8, 6, 10}}} {
		if got, ok := Correlate(none[0], none[1]); ok {
			t.Errorf("%v: %+v", none, got)
		}
	}
}

// The interval covers the true correlation of 180 s (the paper's overlap) in about 95 % of the runs, also where rates
// change slowly. Fewer than 90 % of 2000 has a chance below 1e-20 at a coverage of 95 %, below 1e-6 at 92.5 %.
func TestIntervalOfTheCorrelationCoversTheTruth(t *testing.T) {
	rng := rand.New(rand.NewPCG(testseed.Of(t), 3))
	const runs, truth = 2000, -0.71
	for _, memory := range []float64{0, 0.6} {
		covered := 0
		for range runs {
			var x, y []float64
			a, b := 0.0, 0.0
			for i := range 280 {
				e := rng.NormFloat64()
				f := truth*e + math.Sqrt(1-truth*truth)*rng.NormFloat64()
				a, b = memory*a+e, memory*b+f
				if i >= 100 { // the first depend on the start at zero
					x, y = append(x, 1e6+1e5*a), append(y, 3e5+1e4*b)
				}
			}
			if c, ok := Correlate(x, y); ok && c.Lower <= truth && truth <= c.Upper {
				covered++
			}
		}
		t.Logf("memory %v: %d of %d", memory, covered, runs)
		if covered < runs*90/100 {
			t.Errorf("memory %v: the interval covers the truth in %d of %d runs", memory, covered, runs)
		}
	}
}
