package tcp

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"oneway.example/tests/testseed"
)

// A reduced series is bounded, ordered, made of the same points, and keeps the least and the largest value.
func TestReducedSeriesKeepsItsPeaks(t *testing.T) {
	rng := rand.New(rand.NewPCG(testseed.Of(t), 5))
	for range 500 {
		var series []Point
		at := time.Duration(rng.IntN(1e9))
		for range 1 + rng.IntN(2000) {
			at += time.Duration(1 + rng.IntN(20e6))
			series = append(series, Point{at, float64(rng.IntN(1000))})
		}
		most := 4 + rng.IntN(300)
		got := Reduce(series, most)
		value := func(a, b Point) int { return int(a.Value - b.Value) }
		if len(got) > most || slices.MaxFunc(got, value).Value != slices.MaxFunc(series, value).Value || slices.MinFunc(got, value).Value != slices.MinFunc(series, value).Value {
			t.Fatalf("%d of %d points, at most %d", len(got), len(series), most)
		}
		for i, p := range got {
			if i > 0 && p.At <= got[i-1].At || !slices.Contains(series, p) {
				t.Fatalf("point %d is %v", i, p)
			}
		}
	}
	if got := Reduce(nil, 100); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

func BenchmarkReduce(b *testing.B) {
	series := make([]Point, 100_000)
	for i := range series {
		series[i] = Point{time.Duration(i) * 10 * ms, float64(i * 7919 % 1009)}
	}
	for b.Loop() {
		Reduce(series, 1000)
	}
}
