package delay

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/tests/testseed"
)

// TestSamplesAreExactHoweverFarApart compares with the given values, also where the difference of two overflows.
func TestSamplesAreExactHoweverFarApart(t *testing.T) {
	rng := rand.New(rand.NewPCG(testseed.Of(t), 3))
	between := func(low, high time.Duration) time.Duration { return low + time.Duration(rng.Int64N(int64(high-low))) }
	for name, draw := range map[string]func(i int) interval{
		"near":          func(int) interval { return interval{between(-ms, 2*time.Second), between(0, 4*time.Second)} },
		"bounds differ": func(i int) interval { return interval{between(0, ms), time.Duration(i) * time.Second} },
		"values differ": func(i int) interval { return interval{between(0, ms) - time.Duration(i)*time.Second, ms} },
		"limits of 32 bits": func(i int) interval {
			return interval{time.Duration([]int64{0, math.MaxInt32, math.MinInt32}[i%3]), math.MaxUint32}
		},
		"beyond 32 bits": func(i int) interval {
			return interval{time.Duration([]int64{0, math.MaxInt32 + 1, math.MinInt32 - 1}[i%3]), 0}
		},
		"overflow": func(i int) interval { return interval{time.Duration([]int64{math.MaxInt64, math.MinInt64}[i%2]), 0} },
	} {
		t.Run(name, func(t *testing.T) {
			var s samples
			for range 3 { // the same memory
				s.reset()
				var want []interval
				for i := range 100 {
					v := draw(i)
					want = append(want, v)
					s.add(v)
				}
				if got := slices.Collect(s.all()); !slices.Equal(got, want) {
					t.Fatalf("kept %v, want %v", got, want)
				}
				s.sort()
				byValue := slices.SortedFunc(slices.Values(want), func(a, b interval) int { return cmp.Compare(a.value, b.value) })
				for i, v := range byValue {
					if got := s.value(uint64(i) + 1); got != v.value {
						t.Fatalf("rank %d is %d, want %d", i+1, got, v.value)
					}
				}
			}
		})
	}
}

// TestBoundsOfWindowsWithAFarPacket: the packet that does not fit into 8 bytes changes neither the median nor its
// bound.
func TestBoundsOfWindowsWithAFarPacket(t *testing.T) {
	rng := rand.New(rand.NewPCG(testseed.Of(t), 4))
	for at := range 41 {
		var near, far Window
		for i := range 41 {
			d := sample.Delay{Value: 30*ms + time.Duration(rng.Int64N(int64(ms))), Bound: time.Duration(rng.Int64N(int64(ms))), Reason: sample.OK}
			near.Add(d)
			if i == at {
				far.Add(sample.Delay{Value: 90 * time.Second, Bound: 0, Reason: sample.OK})
				near.Add(sample.Delay{Value: 2 * time.Second, Bound: 0, Reason: sample.OK})
			}
			far.Add(d)
		}
		show := func(w *Window) string {
			s := w.Snapshot()
			d, ok := s.Quantile(0.5)
			return fmt.Sprint(s.Min, d, ok, s.Bound())
		}
		if got, want := show(&far), show(&near); got != want {
			t.Fatalf("packet %d far: %s, want %s", at, got, want)
		}
	}
}

func TestMemoryOfAFarPacketIsGivenBack(t *testing.T) {
	var w Window
	window := func(first time.Duration) {
		w.Add(ok(first))
		for range 20 {
			w.Add(ok(30 * ms))
		}
		w.Reset()
	}
	window(30 * ms)
	quiet := memory(&w)
	window(90 * time.Second)
	window(30 * ms)
	if got := memory(&w); got != quiet {
		t.Errorf("%d bytes, %d before the far packet", got, quiet)
	}
	for range 2 {
		window(90 * time.Second)
	}
	if allocs := testing.AllocsPerRun(100, func() { window(90 * time.Second) }); allocs != 0 {
		t.Errorf("%v allocations for each window with a far packet, want 0", allocs)
	}
}
