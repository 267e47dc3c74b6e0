package delay

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
	"unsafe"

	"oneway.example/exporter/core/sample"
	"oneway.example/tests/testseed"
)

const (
	us = time.Microsecond
	ms = time.Millisecond
)

func ok(d time.Duration) sample.Delay {
	return sample.Delay{Value: d, Bound: 10 * us, Reason: sample.OK}
}

// quantile is the reference: sort all sent packets, lost ones last.
func quantile(received []time.Duration, lost int, q float64) (time.Duration, bool) {
	all := slices.Clone(received)
	slices.Sort(all)
	for i, d := range all {
		if float64(i+1)/float64(len(all)+lost) >= q-1e-12 {
			return d, true
		}
	}
	return 0, false
}

func TestQuantilesAgreeWithSortingEverything(t *testing.T) {
	seed := testseed.Of(t)
	for name, draw := range map[string]func(*rand.Rand) time.Duration{
		"narrow":       func(r *rand.Rand) time.Duration { return 30*ms + time.Duration(r.Int64N(int64(ms))) },
		"exponential":  func(r *rand.Rand) time.Duration { return time.Duration(r.ExpFloat64() * float64(20*ms)) },
		"log uniform":  func(r *rand.Rand) time.Duration { return time.Duration(math.Exp(r.Float64() * 43)) },
		"around zero":  func(r *rand.Rand) time.Duration { return time.Duration(r.NormFloat64() * float64(50*us)) },
		"all negative": func(r *rand.Rand) time.Duration { return -37*time.Second + time.Duration(r.Int64N(int64(ms))) },
		"sub-ns steps": func(r *rand.Rand) time.Duration { return time.Duration(r.Int64N(40) - 20) },
	} {
		rng := rand.New(rand.NewPCG(seed, 1))
		var w Window
		for round := range 4 { // the same window again after a Reset
			w.Reset()
			var values []time.Duration
			n := 1 + rng.IntN(2000)
			if round == 2 {
				n = ExactLimit - 1 + rng.IntN(3) // around the size at which the histogram begins
			}
			for range n {
				d := draw(rng)
				values = append(values, d)
				w.Add(ok(d))
			}
			lost := rng.IntN(len(values))
			w.AddDecided(len(values), lost)
			compare(t, name, w.Snapshot(), values, lost)
		}
	}
}

func compare(t *testing.T, name string, s Snapshot, values []time.Duration, lost int) {
	t.Helper()
	if s.Min != slices.Min(values) || s.Max != slices.Max(values) {
		t.Errorf("%s: min %v max %v, want exactly %v %v", name, s.Min, s.Max, slices.Min(values), slices.Max(values))
	}
	if s.Count != uint64(len(values)) || s.Lost != uint64(lost) {
		t.Errorf("%s: %d values and %d lost, want %d and %d", name, s.Count, s.Lost, len(values), lost)
	}
	for _, q := range []float64{0, 0.001, 0.05, 0.25, 0.5, 0.75, 0.9, 0.99, 1} {
		got, gotOK := s.Quantile(q)
		want, wantOK := quantile(values, lost, q)
		limit := 0.0
		if s.Count > ExactLimit {
			limit = math.Abs(float64(want-s.of.many.origin))*0.008 + 8
		}
		if gotOK != wantOK || math.Abs(float64(got-want)) > limit || gotOK && (got < s.Min || got > s.Max) {
			t.Errorf("%s: quantile %v of %d+%d: %v %v, want %v %v", name, q, len(values), lost, got, gotOK, want, wantOK)
		}
	}
}

// RFC 7679 section 5.1: percentiles of received packets only would be 10 ms here at any q.
func TestLostPacketsAreInfinitelyLate(t *testing.T) {
	var w Window
	for range 95 {
		w.Add(ok(10 * ms))
	}
	w.AddDecided(95, 5)
	s := w.Snapshot()
	if d, defined := s.Quantile(0.95); !defined || d != 10*ms {
		t.Errorf("0.95: %v %v", d, defined)
	}
	if d, defined := s.Quantile(0.951); defined {
		t.Errorf("0.951: %v, but that packet was lost", d)
	}
	if d, defined := s.Quantile(1); defined {
		t.Errorf("1: %v, but that packet was lost", d)
	}
}

func TestMedianIsUndefinedWhenHalfIsLostAndOneMore(t *testing.T) {
	var w Window
	w.Add(ok(ms))
	w.AddDecided(1, 1)
	if d, defined := w.Snapshot().Quantile(0.5); !defined || d != ms {
		t.Errorf("one of two: %v %v", d, defined)
	}
	w.AddDecided(0, 1)
	if d, defined := w.Snapshot().Quantile(0.5); defined {
		t.Errorf("one of three: %v", d)
	}
}

func TestEmptyWindowHasNoQuantile(t *testing.T) {
	var w Window
	w.AddDecided(0, 5)
	w.AddDecided(0, -2)
	s := w.Snapshot()
	if d, defined := s.Quantile(0); defined || s.Lost != 3 {
		t.Errorf("%v %v, %d lost", d, defined, s.Lost)
	}
	if _, defined := (Snapshot{}).Quantile(0.5); defined {
		t.Error("the zero Snapshot has a median")
	}
}

func TestQuantileOutOfRangeIsUndefined(t *testing.T) {
	var w Window
	w.Add(ok(ms))
	for _, q := range []float64{-0.1, 1.1, math.NaN(), math.Inf(1)} {
		if d, defined := w.Snapshot().Quantile(q); defined {
			t.Errorf("%v: %v", q, d)
		}
	}
}

func TestNegativeDelayIsKept(t *testing.T) {
	var w Window
	w.Add(ok(-3 * ms))
	w.Add(ok(ms))
	w.Add(ok(2 * ms))
	s := w.Snapshot()
	if s.Count != 3 || s.Min != -3*ms {
		t.Errorf("%+v", s)
	}
	if d, _ := s.Quantile(0.3); d != -3*ms {
		t.Errorf("lowest third %v", d)
	}
}

func TestDelayOfUntrustedClockHasNoValue(t *testing.T) {
	var w Window
	for _, reason := range sample.Reasons() {
		w.Add(sample.Delay{Value: time.Hour, Bound: time.Hour, Reason: reason})
	}
	s := w.Snapshot()
	if s.Count != 1 {
		t.Errorf("%+v", s)
	}
}

func TestExtremeDurationsAreCounted(t *testing.T) {
	for _, d := range []time.Duration{math.MinInt64, math.MinInt64 + 1, -1, 0, 1, 1<<floorBits - 1, 1 << floorBits, math.MaxInt64} {
		var h histogram
		h.add(d)
		got := h.at(1)
		if math.Abs(float64(got)-float64(d)) > math.Abs(float64(d))*0.008+8 {
			t.Errorf("%d is kept as %d", d, got)
		}
	}
}

// memory is the size of a window with everything it points to.
func memory(w *Window) (bytes uintptr) {
	bytes = unsafe.Sizeof(*w) + uintptr(cap(w.exact.near))*8 + uintptr(cap(w.exact.far))*unsafe.Sizeof(interval{})
	if w.ends != nil {
		bytes += uintptr(cap(w.ends.lows)+cap(w.ends.highs)) * 8
	}
	count := func(s *axisHalf) {
		for _, o := range s {
			if o != nil {
				bytes += unsafe.Sizeof(*o)
			}
		}
	}
	if w.many == nil {
		return bytes
	}
	bytes += unsafe.Sizeof(*w.many)
	count(&w.many.values.positive)
	if negative := w.many.values.negative; negative != nil {
		bytes += unsafe.Sizeof(*negative)
		count(negative)
	}
	return bytes
}

func TestMemoryOfAWindowIsBounded(t *testing.T) {
	rng := rand.New(rand.NewPCG(testseed.Of(t), 2))
	for n, limit := range map[int]uintptr{20: 1 << 10, 100: 3 << 10, ExactLimit: 2 << 20, 3 * ExactLimit: 8 << 10} {
		var w Window
		for range n {
			w.Add(ok(2*ms + time.Duration(rng.ExpFloat64()*float64(20*ms))))
		}
		w.Snapshot().Bound()
		if bytes := memory(&w); bytes > limit {
			t.Errorf("%d bytes for %d packets, want at most %d", bytes, n, limit)
		}
	}
}

func TestMemoryOfAnOutlierIsGivenBack(t *testing.T) {
	var h histogram
	octaves := func() (n int) {
		for _, s := range []*axisHalf{&h.positive, h.negative} {
			if s == nil {
				continue
			}
			for _, o := range s {
				if o != nil {
					n++
				}
			}
		}
		return n
	}
	h.add(30 * ms)
	quiet := octaves()
	h.add(-10 * time.Second)
	h.add(10 * time.Second)
	for range idleWindows + 1 {
		h.reset()
		h.add(30 * ms)
	}
	if got := octaves(); got != quiet {
		t.Errorf("%d octaves, %d before the outlier", got, quiet)
	}
	if d := h.at(1); (d - 30*ms).Abs() > halfBucket(30*ms) {
		t.Errorf("median %v", d)
	}
}

// TestQuantilesHoldWhateverTheUnknownDelaysAre: the packets with an unknown delay are faster than all others, slower, lost, or any
// of these.
func TestQuantilesHoldWhateverTheUnknownDelaysAre(t *testing.T) {
	seed := testseed.Of(t)
	var defined [3]int
	for round := range uint64(4000) {
		rng := rand.New(rand.NewPCG(seed, round))
		n, share := 1+rng.IntN(500), rng.Float64()*rng.Float64()/2
		if round < 10 {
			n = 2*ExactLimit + rng.IntN(1000)
		}
		received, undecided, lost := 0, 0, rng.IntN(1+n/20)
		slow, wide := time.Duration(rng.Int64N(int64(20*ms))), time.Duration(1+rng.Int64N(int64(20*ms)))
		var truth []time.Duration
		var w Window
		for range n {
			d := 20*ms + time.Duration(rng.Int64N(int64(wide)))
			if rng.Float64() < share { // its delay is unknown
				switch kind := rng.IntN(3); {
				case round%4 == 0 || round%4 == 3 && kind == 0:
					d = ms
				case round%4 == 1 || kind == 1:
					d += wide + slow
				case undecided < n: // lost, or not even sent in this direction
					undecided++
					if rng.IntN(2) == 0 {
						truth = append(truth, math.MaxInt64)
					}
					continue
				}
				received++
			} else {
				received++
				w.Add(ok(d + time.Duration(rng.Int64N(int64(20*us))) - 10*us))
			}
			truth = append(truth, d)
		}
		w.AddDecided(received, lost)
		slices.Sort(truth)
		s := w.SnapshotOf(Open{Undecided: uint64(undecided)})
		for i, q := range []float64{0.5, 0.95, 0.99} {
			got, finite := s.Quantile(q)
			if !finite {
				continue
			}
			defined[i]++
			if want, known := quantile(truth, lost, q); !known || (got-want).Abs() > s.Bound(q) {
				t.Fatalf("round %d: quantile %v of %d is %v with the bound %v, true value %v (finite %v); %d of unknown delay, %d lost", round, q, n, got, s.Bound(q), want, known, s.Unknown(), lost)
			}
		}
	}
	for i, n := range defined {
		if n < 100 {
			t.Errorf("quantile %d is defined in %d of 4000 windows only", i, n)
		}
	}
}

// TestFewUnknownDelaysHideNoQuantile: two packets of 500 are undecided.
func TestFewUnknownDelaysHideNoQuantile(t *testing.T) {
	var w Window
	for i := range 498 {
		w.Add(ok(30*ms + time.Duration(i)*us))
	}
	w.AddDecided(498, 0)
	s := w.SnapshotOf(Open{Undecided: 2})
	for _, q := range []float64{0.5, 0.95, 0.99} {
		if d, known := s.Quantile(q); !known || (d-30*ms-time.Duration(500*q)*us).Abs() > 3*us {
			t.Errorf("quantile %v is %v (%v)", q, d, known)
		}
	}
	if _, known := s.Quantile(1); known || s.Bound(0.95) < 11*us || s.Bound(0.95) > 15*us {
		t.Errorf("the largest is known: %v; bound %v, want little more than 10 us", known, s.Bound(0.95))
	}
}

// TestDelaysThatFollowAreNotUnknown: two of the received packets of each window have their delay in the next one; the receiver's
// count is behind, then ahead.
func TestDelaysThatFollowAreNotUnknown(t *testing.T) {
	var w Window
	for i, c := range []struct {
		received, delays int
		undefined        int
		waiting, unknown uint64
	}{{12, 10, 0, 2, 0}, {10, 10, 0, 2, 0}, {10, 12, 0, 0, 0}, {8, 10, 0, 0, 0}, {12, 10, 0, 0, 0}, {10, 7, 1, 2, 1}, {10, 9, 0, 2, 1}} {
		w.AddDecided(c.received, 0)
		for range c.delays {
			w.Add(ok(ms))
		}
		for range c.undefined {
			w.AddUndefined()
		}
		if s := w.SnapshotOf(Open{Waiting: c.waiting}); s.Unknown() != c.unknown || s.Received != uint64(c.delays)+c.unknown {
			t.Errorf("window %d: %d unknown of %d, want %d", i, s.Unknown(), s.Received, c.unknown)
		}
		w.Next(c.waiting)
	}
}

func TestAddDoesNotAllocateInTheSteadyState(t *testing.T) {
	var w Window
	rng := rand.New(rand.NewPCG(testseed.Of(t), 2))
	step := func() {
		for range 100 {
			w.Add(ok(16*ms + time.Duration(rng.Int64N(int64(40*ms)))))
		}
		w.AddDecided(0, 1)
		w.Reset()
	}
	step()
	if allocs := testing.AllocsPerRun(1000, step); allocs != 0 {
		t.Errorf("%v allocations a window, want 0", allocs)
	}
}

func BenchmarkAdd(b *testing.B) {
	b.ReportAllocs()
	var w Window
	d := ok(30 * ms)
	for b.Loop() {
		d.Value += 1009
		if d.Value > 60*ms {
			d.Value = 30 * ms
		}
		w.Add(d)
	}
}

func BenchmarkQuantile(b *testing.B) {
	b.ReportAllocs()
	var w Window
	rng := rand.New(rand.NewPCG(1, 2))
	for range 10000 {
		w.Add(ok(time.Duration(rng.ExpFloat64() * float64(20*ms))))
	}
	for b.Loop() {
		w.Snapshot().Quantile(0.5)
	}
}

// TestBreakKeepsEarlierLosses: 60 of 100 packets were lost before a clock was stepped.
func TestBreakKeepsEarlierLosses(t *testing.T) {
	var w Window
	w.AddDecided(20, 50)
	for range 10 {
		w.AddOverdue()
		w.Add(ok(ms))
	}
	w.Break()
	w.AddDecided(30, 0)
	for i := range 30 {
		w.Add(ok(20*ms + time.Duration(i)))
	}
	s := w.Snapshot()
	if d, known := s.Quantile(0.5); known {
		t.Errorf("the median of 100 packets, of which 60 were lost, is %v", d)
	}
	if d, known := s.Quantile(0.25); !known || d != 20*ms+18 || s.Min != 20*ms {
		t.Errorf("smallest %v, quantile 0.25 %v (%v); want 20 ms, and the 19th of the 30 after the step", s.Min, d, known)
	}
}
