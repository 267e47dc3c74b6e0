package report

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"oneway.example/tests/testseed"
)

// A reduced series is bounded, ordered, made of the same points, and keeps the least and the largest value.
func TestReducedSeriesKeepsItsPeaks(t *testing.T) {
	rng := rand.New(rand.NewPCG(testseed.Of(t), 5))
	for range 500 {
		var series Series
		at := rng.Float64()
		for range 1 + rng.IntN(2000) {
			at += 0.001 + 0.02*rng.Float64()
			series.Add(at, float64(rng.IntN(1000)))
		}
		most := 4 + rng.IntN(300)
		got := series.reduced(most)
		if len(got.X) > most || len(got.X) != len(got.Y) || slices.Max(got.Y) != slices.Max(series.Y) || slices.Min(got.Y) != slices.Min(series.Y) {
			t.Fatalf("%d of %d points, at most %d", len(got.X), len(series.X), most)
		}
		for i, x := range got.X {
			of := slices.Index(series.X, x)
			if i > 0 && x <= got.X[i-1] || of < 0 || series.Y[of] != got.Y[i] {
				t.Fatalf("point %d is %v, %v", i, x, got.Y[i])
			}
		}
	}
}

// Points without order, of one X, at the ends of a float or not finite do not break the limit.
func TestReducedSeriesOfAnyValuesIsBounded(t *testing.T) {
	rng := rand.New(rand.NewPCG(testseed.Of(t), 6))
	some := []float64{0, math.Copysign(0, -1), 1, -1, math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64, math.NaN(), math.Inf(1), math.Inf(-1)}
	for round := range 200 {
		var series Series
		for range rng.IntN(3000) {
			series.Add(some[rng.IntN(1+round%len(some))], some[rng.IntN(len(some))])
		}
		series.X = append(series.X, 7)
		got := series.reduced(100)
		if len(got.X) > 100 || len(got.X) != len(got.Y) || !finite(slices.Max(append(got.Y, 0))) || slices.ContainsFunc(got.X, func(v float64) bool { return !finite(v) }) {
			t.Fatalf("%d points, %v", len(got.X), got.X)
		}
	}
}

func BenchmarkReduce(b *testing.B) {
	var series Series
	for i := range 100_000 {
		series.Add(float64(i)/100, float64(i*7919%1009))
	}
	for b.Loop() {
		series.reduced(maxPoints)
	}
}
