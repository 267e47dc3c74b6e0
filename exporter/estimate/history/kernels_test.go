package history

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"oneway.example/exporter/estimate/orderstat"
	"oneway.example/tests/testseed"
)

// kernels are values of other programs; testdata/kernels.py writes them.
type kernels struct {
	Cases []struct {
		X, Y, Times, P []float64
		Groups         [][]float64
		Holm           []float64
		KruskalH       float64 `json:"kruskal_h"`
		TheilSen       float64 `json:"theil_sen"`
		HodgesLehmann  float64 `json:"hodges_lehmann"`
		Pseudomedian   float64
		U              float64 `json:"mann_whitney_u"`
		Student        float64 `json:"student_975"`
	}
}

func agree(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(b)) }

func TestKernelsHaveTheValuesOfOtherPrograms(t *testing.T) {
	text, err := os.ReadFile("testdata/kernels.json")
	if err != nil {
		t.Fatal(err)
	}
	var k kernels
	if err := json.Unmarshal(text, &k); err != nil || len(k.Cases) < 5 {
		t.Fatal(err, len(k.Cases))
	}
	for i, c := range k.Cases {
		h, epsilon, ok := KruskalWallis(c.Groups)
		n := float64(len(slices.Concat(c.Groups...)))
		if !ok || !agree(h, c.KruskalH) || !agree(epsilon, c.KruskalH/(n-1)) {
			t.Errorf("%d: H %v (%v), want %v", i, h, epsilon, c.KruskalH)
		}
		if v, ok := HodgesLehmann(c.X, c.Y); !ok || !agree(v, c.HodgesLehmann) {
			t.Errorf("%d: Hodges-Lehmann %v, want %v", i, v, c.HodgesLehmann)
		}
		if v, ok := Pseudomedian(c.X); !ok || !agree(v, c.Pseudomedian) {
			t.Errorf("%d: pseudomedian %v, want %v", i, v, c.Pseudomedian)
		}
		var days []daily
		for j, x := range c.X {
			days = append(days, daily{day: int(c.Times[j]), value: x})
		}
		if v := orderstat.Median(slopesOf(days, 0)); !agree(v, c.TheilSen) {
			t.Errorf("%d: Theil-Sen %v, want %v", i, v, c.TheilSen)
		}
		share := 0.0 // of pairs with x below y
		for _, p := range placements(c.Y, orderstat.Sorted(c.X)) {
			share += p / float64(len(c.Y))
		}
		if want := 1 - c.U/float64(len(c.X)*len(c.Y)); !agree(share, want) {
			t.Errorf("%d: share of pairs %v, want %v", i, share, want)
		}
		if v := student(0.975, float64(len(c.X)-1)); !agree(v, c.Student) {
			t.Errorf("%d: Student's t %v, want %v", i, v, c.Student)
		}
		for j, v := range Holm(c.P) {
			if !agree(v, c.Holm[j]) {
				t.Errorf("%d: Holm %v of %v, want %v", i, v, c.P[j], c.Holm[j])
			}
		}
	}
}

// Bisection finds the values that all pairs have, sorted.
func TestEachOrderStatisticOfPairsIsFound(t *testing.T) {
	rng := rand.New(rand.NewPCG(testseed.Of(t), 1))
	for round := range 200 {
		a, b := make([]float64, 1+rng.IntN(12)), make([]float64, 1+rng.IntN(12))
		for _, all := range [][]float64{a, b} {
			for i := range all {
				all[i] = float64(rng.IntN(8))
				if round%2 == 0 {
					all[i] = rng.NormFloat64()
				}
			}
		}
		slices.Sort(a)
		slices.Sort(b)
		var differ, means []float64
		for i, x := range a {
			for _, y := range b {
				differ = append(differ, x-y)
			}
			for _, y := range a[i:] {
				means = append(means, (x+y)/2)
			}
		}
		for _, c := range []struct {
			pairs pairs
			all   []float64
		}{{differences{a, b}, orderstat.Sorted(differ)}, {walsh{a}, orderstat.Sorted(means)}} {
			if c.pairs.size() != len(c.all) {
				t.Fatalf("size %d, want %d", c.pairs.size(), len(c.all))
			}
			for k, want := range c.all {
				if got := kth(c.pairs, k+1); got != want {
					t.Fatalf("%T of %v and %v: value %d is %v, want %v", c.pairs, a, b, k+1, got, want)
				}
			}
			if got := pairQuantile(c.pairs, 0.5); !agree(got, orderstat.Median(c.all)) {
				t.Fatalf("median %v, want %v", got, orderstat.Median(c.all))
			}
		}
	}
}

func TestQuantilesBeyondThePairsAreUnknown(t *testing.T) {
	p := differences{[]float64{1, 2}, []float64{0}}
	if low, high := pairQuantile(p, -0.1), pairQuantile(p, 1.1); !math.IsInf(low, -1) || !math.IsInf(high, 1) {
		t.Errorf("%v, %v", low, high)
	}
	if _, ok := HodgesLehmann(nil, []float64{1}); ok {
		t.Error("a difference without values")
	}
	if _, ok := Pseudomedian(nil); ok {
		t.Error("a pseudomedian without values")
	}
	for _, groups := range [][][]float64{nil, {{1, 2}}, {{1}, {1}}, {{}, {}}} {
		if h, _, ok := KruskalWallis(groups); ok {
			t.Errorf("H of %v is %v", groups, h)
		}
	}
}

// With correlation rho of neighboring days the variance of the mean of many days is (1 + rho) / (1 - rho) times larger.
func TestInflationIsTheSumOverAllPairsOfDays(t *testing.T) {
	day := []int{1, 2, 3, 7, 8, 20}
	for _, rho := range []float64{0.2, 0.5, 0.9} {
		sum := 0.0
		for _, a := range day {
			for _, b := range day {
				sum += math.Pow(rho, math.Abs(float64(a-b)))
			}
		}
		if got := inflation(day, evenly, rho); !agree(got, sum/6) {
			t.Errorf("rho %v: %v, want %v", rho, got, sum/6)
		}
	}
	many := make([]int, 5000)
	for i := range many {
		many[i] = i
	}
	if got := inflation(many, evenly, 0.5); math.Abs(got-3) > 0.01 {
		t.Errorf("%v, want 3", got)
	}
}
