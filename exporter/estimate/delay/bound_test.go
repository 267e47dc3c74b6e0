package delay

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/tests/testseed"
)

func TestBoundOfEqualPacketsIsTheirs(t *testing.T) {
	var w Window
	for range 100 {
		w.Add(sample.Delay{Value: ms, Bound: 5 * us, Reason: sample.OK})
	}
	if got := w.Snapshot().Bound(); got != 5*us {
		t.Errorf("bound %v, want 5 us", got)
	}
	w.Reset()
	if got := w.Snapshot().Bound(); got != 0 {
		t.Errorf("bound of an empty window is %v", got)
	}
	w.Add(sample.Delay{Value: ms, Bound: us, Reason: sample.OK})
	if s := w.Snapshot(); s.Bound() != us || s.Count != 1 || s.Min != ms {
		t.Errorf("after Reset: %+v", s)
	}
}

// TestFewWideBoundsDoNotWidenTheWindows: a short pause of the host must not widen the bound.
func TestFewWideBoundsDoNotWidenTheWindows(t *testing.T) {
	var w Window
	for i := range 300 {
		d := sample.Delay{Value: 30*ms + time.Duration(i)*us/10, Bound: 90 * us, Reason: sample.OK}
		if i%60 == 7 {
			d.Bound, d.TXUncertainty, d.Value = 4*ms, 4*ms, d.Value+ms
		}
		w.Add(d)
	}
	if got := w.Snapshot().Bound(); got < 90*us || got > 90*us+10*us {
		t.Errorf("bound %v, want little more than 90 us and the width of a bucket", got)
	}
	for _, n := range []int{100, 300} {
		w.Reset()
		for i := range n { // 40 %, with ends far below and above
			d := sample.Delay{Value: 30 * ms, Bound: 90 * us, Reason: sample.OK}
			if i%5 < 2 {
				d.Bound, d.TXUncertainty = 20*ms, 20*ms
			}
			w.Add(d)
		}
		if got := w.Snapshot().minBound(); got != 90*us {
			t.Errorf("bound of the smallest of %d, 40 %% held by the host: %v, want 90 us", n, got)
		}
	}
	var two Window
	for i := range 2 { // both may be the ordinary one
		two.Add(sample.Delay{Value: 30 * ms, Bound: 90*us + time.Duration(i)*ms, TXUncertainty: time.Duration(i) * ms, Reason: sample.OK})
	}
	if got := two.Snapshot().Bound(); got != 1090*us {
		t.Errorf("bound of two packets %v, want that of the widest, 1.09 ms", got)
	}
}

// TestPacketsOfABadClockAreNotExcluded: a wide bound alone does not exclude a packet.
func TestPacketsOfABadClockAreNotExcluded(t *testing.T) {
	for _, wide := range []int{5, 40} {
		var w Window
		for i := range 100 {
			d := sample.Delay{Value: 30 * ms, Bound: 90 * us, Reason: sample.OK}
			if i < wide { // they took 26 ms, by a clock with an error of 4 ms and a bound of 5 ms
				d.Bound = 5 * ms
			}
			w.Add(d)
		}
		if s := w.Snapshot(); s.Min-26*ms > s.Bound() {
			t.Errorf("%d wide: min %v, bound %v, want 26 ms within it", wide, s.Min, s.Bound())
		}
	}
}

// TestTruthLiesWithinTheBound draws true delays and adds errors of at most each one's bound, sometimes all of it in
// one direction.
func TestTruthLiesWithinTheBound(t *testing.T) {
	seed := testseed.Of(t)
	for round := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, round))
		n, lost := 1+rng.IntN(200), rng.IntN(20)
		if round < 10 {
			n = ExactLimit + 1 + rng.IntN(1000) // the histogram's buckets, 0.8 ms wide here
		}
		wideShare, lean := rng.Float64()*0.2, rng.IntN(3)
		var w Window
		w.AddDecided(n, lost)
		truth, txUncertainty := make([]time.Duration, n), make([]bool, n)
		stood := 0
		for i := range truth {
			truth[i] = 100*ms + time.Duration(rng.Int64N(int64(ms)))
			d := sample.Delay{Bound: 50 * us, Reason: sample.OK}
			if rng.Float64() < wideShare {
				d.Bound = time.Duration(rng.Int64N(int64(5 * ms)))
				if rng.IntN(2) == 0 {
					d.TXUncertainty = d.Bound
				}
			}
			if txUncertainty[i] = d.TXUncertainty > d.Bound/2; txUncertainty[i] {
				stood++
			}
			off := time.Duration(rng.Int64N(2*int64(d.Bound)+1)) - d.Bound
			switch lean {
			case 0:
				off = d.Bound
			case 1:
				off = -d.Bound
			}
			d.Value = truth[i] + off
			w.Add(d)
		}
		s := w.Snapshot()
		// The true smallest delay may be of any packet that is not left out.
		least, most := time.Duration(1<<62), time.Duration(1<<62)
		for i, d := range truth {
			most = min(most, d)
			if !txUncertainty[i] || 2*stood >= n {
				least = min(least, d)
			}
		}
		if b := s.Bound(); s.Min-least > b || most-s.Min > b {
			t.Fatalf("round %d: the smallest of %d is %v, true value %v to %v, bound %v", round, n, s.Min, least, most, b)
		}
		slices.Sort(truth)
		median, ok := s.Quantile(0.5)
		if rank := (n + lost + 1) / 2; ok != (rank <= n) {
			t.Fatalf("round %d: rank %d of %d, defined %v", round, rank, n, ok)
		} else if ok {
			if off := (median - truth[rank-1]).Abs(); off > s.Bound() || median < s.Min || median > s.Max {
				t.Fatalf("round %d: the median of %d is off by %v, bound %v", round, n, off, s.Bound())
			}
		}
	}
}

func BenchmarkBound(b *testing.B) {
	var w Window
	for i := range 3000 {
		w.Add(sample.Delay{Value: 30*ms + time.Duration(i*i%997)*us, Bound: 90*us + time.Duration(i%50), Reason: sample.OK})
	}
	b.ReportAllocs()
	for b.Loop() {
		w.Snapshot().Bound()
	}
}
