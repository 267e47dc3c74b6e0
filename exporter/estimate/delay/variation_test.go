package delay

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oneway.example/tests/testseed"
)

func TestIPDVIsSignedAndOnlyOfConsecutiveNumbers(t *testing.T) {
	var v Variation
	for i, c := range []struct {
		seq   uint64
		delay time.Duration
		want  time.Duration
		ok    bool
	}{
		{1, 10 * ms, 0, false},         // nothing before it
		{2, 13 * ms, 3 * ms, true},     //
		{3, 11 * ms, -2 * ms, true},    // faster: negative
		{5, 20 * ms, 0, false},         // 4 was lost
		{6, 20 * ms, 0, true},          // a defined zero
		{8, 25 * ms, 0, false},         // 7 is outstanding
		{7, 60 * ms, 0, false},         // and was overtaken
		{9, 25 * ms, 0, false},         // its neighbor 8 is not the previous arrival
		{10, -25 * ms, -50 * ms, true}, // below zero: another clock; the difference is valid
	} {
		got, ok := v.Add(c.seq, c.delay)
		if got != c.want || ok != c.ok {
			t.Errorf("step %d: Add(%d, %v) = %v %v, want %v %v", i, c.seq, c.delay, got, ok, c.want, c.ok)
		}
	}
}

func TestVariationIsFreeOfAConstantClockOffset(t *testing.T) {
	var here, there Variation
	rng := rand.New(rand.NewPCG(testseed.Of(t), 4))
	for seq := range uint64(1000) {
		d := time.Duration(rng.Int64N(int64(20 * ms)))
		a, _ := here.Add(seq, d)
		b, _ := there.Add(seq, d-37*time.Second)
		if a != b {
			t.Fatalf("packet %d: %v without, %v with the offset", seq, a, b)
		}
	}
	a, _ := here.Jitter()
	b, _ := there.Jitter()
	if a != b {
		t.Errorf("jitter %v without, %v with the offset", a, b)
	}
}

// The reference is RFC 3550 appendix A.8 as printed, in whole nanoseconds of arrival times and timestamps.
func TestJitterIsThatOfRFC3550(t *testing.T) {
	seed := testseed.Of(t)
	rng := rand.New(rand.NewPCG(seed, 5))
	var v Variation
	if j, ok := v.Jitter(); ok {
		t.Errorf("jitter %v without packets", j)
	}
	var transit int64
	var jitter float64
	for seq := range uint64(5000) {
		if rng.IntN(10) == 0 {
			continue // a lost packet does not interrupt it
		}
		sent := int64(seq) * int64(20*ms)
		arrival := sent + rng.Int64N(int64(30*ms))
		d := (arrival - sent) - transit
		transit = arrival - sent
		v.Add(seq, time.Duration(arrival-sent))
		if seq == 0 || v.pairs == 0 {
			continue
		}
		if d < 0 {
			d = -d
		}
		jitter += 1.0 / 16 * (float64(d) - jitter)
	}
	got, ok := v.Jitter()
	if !ok || math.Abs(float64(got)-jitter) > 1 {
		t.Errorf("jitter %v %v, want %v", got, ok, time.Duration(jitter))
	}
}

func TestBreakKeepsAClockStepOutOfVariationAndJitter(t *testing.T) {
	var v Variation
	v.Add(1, 10*ms)
	v.Add(2, 11*ms)
	before, _ := v.Jitter()
	v.Break()
	if d, ok := v.Add(3, time.Hour); ok {
		t.Errorf("IPDV %v across a step", d)
	}
	if after, _ := v.Jitter(); after != before {
		t.Errorf("jitter %v before, %v after the step", before, after)
	}
	v.Reset()
	if _, ok := v.Jitter(); ok {
		t.Error("Reset kept the jitter")
	}
}

func TestPDVIsDelayMinusTheSmallestOfTheWindow(t *testing.T) {
	var p PDV
	in := []arrival{{1, 30 * ms}, {2, 20 * ms}, {4, 55 * ms}, {3, 20 * ms}}
	for _, a := range in {
		if !p.Add(a.seq, a.delay) {
			t.Fatal("no space for four")
		}
	}
	var got []arrival
	for seq, d := range p.Drain() {
		got = append(got, arrival{seq, d})
	}
	want := []arrival{{1, 10 * ms}, {2, 0}, {4, 35 * ms}, {3, 0}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(arrival{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for range p.Drain() {
		t.Error("drained twice")
	}
	p.Reset()
}

// TestFullPDVBeginsAWindow: with a minimum that decreases within the window, its parts would have different
// references.
func TestFullPDVBeginsAWindow(t *testing.T) {
	var p PDV
	p.Add(0, 10*ms)
	seq := uint64(1)
	for p.Add(seq, 30*ms) {
		seq++
	}
	if p.Add(seq+1, -time.Hour) {
		t.Error("a full window accepted a packet")
	}
	count := 0
	for s, d := range p.Drain() {
		if want := 20 * ms; s > 0 && d != want {
			t.Fatalf("packet %d: %v, want %v", s, d, want)
		}
		count++
	}
	if count != PDVLimit {
		t.Errorf("%d held, want %d", count, PDVLimit)
	}
	p.Add(9999, 40*ms)
	p.Add(10000, 25*ms)
	for s, d := range p.Drain() {
		if want := 15 * ms; s == 9999 && d != want {
			t.Errorf("%v in the next window, want %v", d, want)
		}
	}
}

func TestPDVAgreesWithTheWholeWindowAtAnyOffset(t *testing.T) {
	rng := rand.New(rand.NewPCG(testseed.Of(t), 7))
	for _, offset := range []time.Duration{0, -37 * time.Second, time.Hour} {
		var p PDV
		var delays []time.Duration
		for seq := range uint64(500) {
			d := offset + time.Duration(rng.Int64N(int64(20*ms)))
			delays = append(delays, d)
			p.Add(seq, d)
		}
		low := slices.Min(delays)
		for seq, d := range p.Drain() {
			if want := delays[seq] - low; d != want {
				t.Fatalf("offset %v, packet %d: %v, want %v", offset, seq, d, want)
			}
		}
	}
}

func TestPDVOfInvalidTimestampsIsNotNegative(t *testing.T) {
	var p PDV
	p.Add(1, math.MinInt64)
	p.Add(2, math.MaxInt64)
	for seq, d := range p.Drain() {
		if d < 0 {
			t.Errorf("packet %d: %v", seq, d)
		}
	}
}

func TestStoppedDrainDiscardsTheRest(t *testing.T) {
	var p PDV
	p.Add(1, ms)
	p.Add(2, ms)
	for range p.Drain() {
		break
	}
	for range p.Drain() {
		t.Error("packets left after Drain")
	}
}

func TestVariationAndPDVDoNotAllocateInTheSteadyState(t *testing.T) {
	var v Variation
	var p PDV
	var seq uint64
	var sum time.Duration
	window := func() {
		for range 1000 {
			seq++
			d := time.Duration(seq*7919) % (20 * ms)
			v.Add(seq, d)
			p.Add(seq, d)
		}
		for _, d := range p.Drain() {
			sum += d
		}
		p.Reset()
	}
	window()
	if allocs := testing.AllocsPerRun(100, window); allocs != 0 {
		t.Errorf("%v allocations a window", allocs)
	}
	if sum <= 0 {
		t.Error("no variation returned")
	}
}

func BenchmarkVariation(b *testing.B) {
	b.ReportAllocs()
	var v Variation
	var seq uint64
	for b.Loop() {
		seq++
		v.Add(seq, time.Duration(seq*7919)%(20*ms))
	}
}
