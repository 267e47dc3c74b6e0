package voice

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oneway.example/tests/testseed"
)

func TestFixedBufferPlaysPacketsWithinItsDepth(t *testing.T) {
	p := FixedPlayout(40 * msec)
	for seq, pdv := range []time.Duration{0, 40 * msec, 40*msec + 1, 90 * msec, 10 * msec, 41 * msec} {
		if got, want := p.Add(uint64(seq), pdv), pdv <= 40*msec; got != want {
			t.Errorf("packet %d, %v: in time %v", seq, pdv, got)
		}
	}
	want := Buffered{Played: 3, Late: 3, LateBursts: 2, Delay: 40 * msec}
	if diff := cmp.Diff(want, p.Snapshot()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	p.Reset()
	if diff := cmp.Diff(Buffered{Delay: 40 * msec}, p.Snapshot()); diff != "" {
		t.Errorf("after Reset (-want +got):\n%s", diff)
	}
}

func TestLatePacketsWithAGapBetweenAreTwoBursts(t *testing.T) {
	p := FixedPlayout(0)
	for _, seq := range []uint64{5, 6, 8, 10, 11} {
		p.Add(seq, msec)
	}
	if b := p.Snapshot(); b.Late != 5 || b.LateBursts != 3 {
		t.Errorf("%+v", b)
	}
}

// The reference is the recurrence of the doc comment over all packets.
func TestAdaptiveBufferFollowsTheDocumentedRecurrence(t *testing.T) {
	seed := testseed.Of(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	p := AdaptivePlayout(0)
	var mean, deviation, sum float64
	late := uint64(0)
	const count = 3000
	for i := range count {
		n := rng.ExpFloat64() * 1e7
		n = math.Trunc(n)
		if i == 0 {
			mean = n
		}
		point := math.Max(1e7, math.Trunc(mean+4*deviation))
		if n > point {
			late++
		}
		sum += point
		gain := math.Max(1-0.998002, 1/float64(i+1))
		before := mean
		mean += gain * (n - before)
		deviation += gain * (math.Abs(n-before) - deviation)
		p.Add(uint64(i), time.Duration(n))
	}
	b := p.Snapshot()
	if b.Late != late || b.Played != count-late {
		t.Errorf("%d late, want %d", b.Late, late)
	}
	if math.Abs(float64(b.Delay)-sum/count) > 10 {
		t.Errorf("mean delay %v, want %v", b.Delay, time.Duration(sum/count))
	}
}

func TestAdaptiveBufferLosesLittleOfExponentialJitter(t *testing.T) {
	rng := rand.New(rand.NewPCG(testseed.Of(t), 1))
	p := AdaptivePlayout(0)
	for i := range uint64(20000) {
		if i == 2000 {
			p.Reset() // the estimate stays
		}
		p.Add(i, time.Duration(rng.ExpFloat64()*float64(10*msec)))
	}
	b := p.Snapshot()
	// Mean 10 ms, mean deviation 20/e = 7.4 ms: the point is near 39.4 ms, which an exponential variable exceeds
	// with e^-3.94 = 1.9 %.
	ratio := float64(b.Late) / float64(b.Late+b.Played)
	if ratio < 0.01 || ratio > 0.035 || b.Delay < 34*msec || b.Delay > 46*msec {
		t.Errorf("late %.4f, delay %v", ratio, b.Delay)
	}
}

func TestAdaptiveBufferOfASteadyPathHoldsTheLeast(t *testing.T) {
	p := AdaptivePlayout(0)
	for i := range uint64(100) {
		if !p.Add(i, 0) {
			t.Fatalf("packet %d is late", i)
		}
	}
	if b := p.Snapshot(); b.Delay != 10*msec || b.Late != 0 {
		t.Errorf("%+v", b)
	}
}

func TestAdaptiveBufferIgnoresSmallDelaysOfAQuietPath(t *testing.T) {
	p := AdaptivePlayout(0)
	for i := range uint64(1000) {
		if !p.Add(i, time.Duration(i%100)*10*time.Microsecond) {
			t.Fatalf("packet %d is late by less than a frame", i)
		}
	}
}

func TestAdaptiveBufferDoesNotExceedItsLimit(t *testing.T) {
	p := AdaptivePlayout(100 * msec)
	for i := range uint64(1000) {
		p.Add(i, time.Duration(i%2)*time.Second)
	}
	if b := p.Snapshot(); b.Delay > 100*msec || b.Late < 450 {
		t.Errorf("%+v", b)
	}
}

func TestBufferNames(t *testing.T) {
	for want, p := range map[string]*Playout{
		"fixed_60ms": FixedPlayout(60 * msec), "adaptive": AdaptivePlayout(0), "fixed_0s": FixedPlayout(-msec),
	} {
		if got := p.Name(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestPlayoutAddDoesNotAllocate(t *testing.T) {
	for _, p := range []*Playout{FixedPlayout(40 * msec), AdaptivePlayout(time.Second)} {
		var seq uint64
		if allocs := testing.AllocsPerRun(1000, func() {
			seq++
			p.Add(seq, time.Duration(seq*7919)%(60*msec))
			_ = p.Snapshot()
		}); allocs != 0 {
			t.Errorf("%s: %v allocations", p.Name(), allocs)
		}
	}
}

func BenchmarkAdaptiveAdd(b *testing.B) {
	b.ReportAllocs()
	p := AdaptivePlayout(time.Second)
	var seq uint64
	for b.Loop() {
		seq++
		p.Add(seq, time.Duration(seq*7919)%(60*msec))
	}
}
