package delay

import (
	"cmp"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	diff "github.com/google/go-cmp/cmp"

	"oneway.example/tests/testseed"
)

func TestIPDVIsSignedAndOnlyOfConsecutiveNumbers(t *testing.T) {
	v := Variation{Reach: 1}
	v.Reserve()
	for i, c := range []struct {
		seq   uint64
		delay time.Duration
		want  []time.Duration
	}{
		{1, 10 * ms, nil},                                // nothing before it
		{2, 13 * ms, []time.Duration{3 * ms}},            //
		{3, 11 * ms, []time.Duration{-2 * ms}},           // faster: negative
		{5, 20 * ms, nil},                                // 4 was lost
		{6, 20 * ms, []time.Duration{0}},                 // a defined zero
		{8, 25 * ms, nil},                                // 7 is outstanding
		{7, 60 * ms, []time.Duration{40 * ms, -35 * ms}}, // and was overtaken: its own, and the one of 8
		{9, 25 * ms, []time.Duration{0}},                 //
		{10, -25 * ms, []time.Duration{-50 * ms}},        // below zero: another clock; the difference is valid
	} {
		got, n := v.Add(c.seq, c.delay)
		if !slices.Equal(got[:n], c.want) {
			t.Errorf("step %d: Add(%d, %v) = %v, want %v", i, c.seq, c.delay, got[:n], c.want)
		}
	}
}

// Reordering does not choose which delays are compared: overtaken packets have the largest delays.
func TestIPDVOfReorderedPacketsIncludesAllNeighbors(t *testing.T) {
	rng := rand.New(rand.NewPCG(testseed.Of(t), 6))
	delays := make([]time.Duration, 5000)
	order := make([]uint64, len(delays))
	for i := range delays {
		if order[i] = uint64(i); rng.IntN(5) == 0 {
			delays[i] = time.Duration(rng.Int64N(int64(2 * time.Second)))
		}
	}
	delays[20] = 4 * time.Second // by 200 packets, more than any later one
	sent := func(seq uint64) time.Duration { return time.Duration(seq) * 20 * ms }
	slices.SortFunc(order, func(a, b uint64) int { return cmp.Compare(sent(a)+delays[a], sent(b)+delays[b]) })
	v := Variation{Reach: 200}
	v.Reserve()
	var got, want []time.Duration
	for _, seq := range order {
		ipdvs, n := v.Add(seq, delays[seq])
		got = append(got, ipdvs[:n]...)
	}
	for i := range delays[1:] {
		want = append(want, delays[i+1]-delays[i])
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%d IPDVs, want those of all %d pairs", len(got), len(want))
	}
}

// Without Reserve the first one is missing.
func TestIPDVOfOvertakenPacketsIsCompleteAfterTheFirstOnes(t *testing.T) {
	v := Variation{Reach: 30}
	missing := 0
	for i := range uint64(2000) { // one of 40 is overtaken by 30
		seq := i
		if at := i % 40; at < 30 {
			seq = i + 1
		} else if at == 30 {
			seq = i - 30
		}
		_, n := v.Add(seq, ms)
		missing -= n
	}
	if missing += 1999; missing > 2 {
		t.Errorf("%d of 1999 are missing", missing)
	}
}

// A remote end may number its replies as it likes.
func TestNumbersFarBehindTakeNoMemory(t *testing.T) {
	v := Variation{Reach: 1000}
	for _, seq := range []uint64{1 << 63, 5, 1<<63 - PDVLimit, 1 << 40, 0} {
		if _, n := v.Add(seq, ms); n > 0 {
			t.Errorf("number %d has a neighbor", seq)
		}
	}
	if v.recent != nil {
		t.Errorf("%d packets are kept", len(v.recent))
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
		if seq == 0 || !v.paired {
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
	if d, n := v.Add(3, time.Hour); n > 0 {
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
	want := []arrival{{1, 10 * ms}, {2, 0}, {3, 0}, {4, 35 * ms}} // by number, not in the order of arrival
	if wrong := diff.Diff(want, got, diff.AllowUnexported(arrival{})); wrong != "" {
		t.Errorf("(-want +got):\n%s", wrong)
	}
	for range p.Drain() {
		t.Error("drained twice")
	}
	p.Reset()
}

// The error of a delay changes while a clock is slewed; the PDV is wrong by at most twice the bound of both.
func TestPDVOfASlewedClockIsWithinTwiceTheBound(t *testing.T) {
	rng := rand.New(rand.NewPCG(testseed.Of(t), 7))
	const bound = 10 * ms
	for range 200 {
		var measured, truth PDV
		offset, rate := time.Duration(0), 0.0
		for seq := range uint64(200) {
			if seq%50 == 0 { // chronyd slews by up to 83,333 ppm
				rate = (2*rng.Float64() - 1) * 0.083
			}
			offset = min(max(offset+time.Duration(rate*float64(100*ms)), -bound), bound)
			d := time.Duration(rng.Int64N(int64(30 * ms)))
			measured.Add(seq, d+offset)
			truth.Add(seq, d)
		}
		right := maps.Collect(truth.Drain())
		for seq, v := range measured.Drain() {
			if (v - right[seq]).Abs() > 2*bound {
				t.Fatalf("packet %d: %v, the true one is %v", seq, v, right[seq])
			}
		}
	}
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
