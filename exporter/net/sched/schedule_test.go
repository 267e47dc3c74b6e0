package sched

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"oneway.example/tests/testseed"
)

func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := testseed.Of(t)
	return rand.New(rand.NewPCG(seed, 0))
}

func TestLatenessDoesNotShiftPeriodicSlots(t *testing.T) {
	rng := seeded(t)
	for range 20_000 {
		interval, phase, previous := time.Duration(1+rng.IntN(10_000)), time.Duration(int32(rng.Uint32())), time.Duration(int32(rng.Uint32()))
		next := Periodic(interval, phase).Next(previous)
		if gap := next - previous; gap <= 0 || gap > interval || (next-phase)%interval != 0 {
			t.Fatalf("interval %d, phase %d: got slot %d after %d", interval, phase, next, previous)
		}
	}
}

func TestSchedulesAlwaysAdvance(t *testing.T) {
	rng := seeded(t)
	for name, s := range map[string]Schedule{
		"periodic without interval": Periodic(0, 5), "scattered without interval": Scattered(0, 5), "fast scattered": Scattered(7, 5), "poisson without mean": Poisson(-1, rng), "fast poisson": Poisson(2, rng),
	} {
		for at := range time.Duration(1000) {
			if next := s.Next(at); next <= at {
				t.Fatalf("%s: got slot %v after %v", name, next, at)
			}
		}
	}
}

// All places of a link's slot, which divides the interval, are met alike: by Periodic a single one is.
func TestScatteredSlotsMeetAllPhasesOfAPath(t *testing.T) {
	const interval, slot, bins = 100 * time.Millisecond, 10 * time.Millisecond, 10
	rng := seeded(t)
	var met [bins]int
	at, n := time.Duration(rng.Int64N(int64(time.Hour))), 20_000
	begin := at
	s := Scattered(interval, rng.Uint64())
	for range n {
		at = s.Next(at)
		met[at%slot*bins/slot]++
	}
	if mean := (at - begin) / time.Duration(n); (mean - interval).Abs() > interval/1000 {
		t.Errorf("the mean interval is %v, want %v", mean, interval)
	}
	for i, got := range met {
		if want := n / bins; math.Abs(float64(got-want)) > 5*math.Sqrt(float64(want)) {
			t.Errorf("phase %d of %d was met %d times, want about %d", i, bins, got, want)
		}
	}
}

func TestSkipCountsMissedSlots(t *testing.T) {
	s := Periodic(10, 3)
	for _, c := range []struct {
		due, now, next time.Duration
		missed         uint64
	}{
		{13, 13, 23, 0},
		{13, 22, 23, 0},
		{13, 23, 33, 1},
		{13, 32, 33, 1},
		{13, 33, 43, 2},
		{13, 13 + 10_000_000_000, 23 + 10_000_000_000, 1_000_000_000}, // constant time, however late
	} {
		if next, missed := Skip(s, c.due, c.now); next != c.next || missed != c.missed {
			t.Errorf("due %d at %d: got next %d, missed %d; want %d, %d", c.due, c.now, next, missed, c.next, c.missed)
		}
	}
}

// step is a schedule that Skip passes slot by slot.
type step struct{ Schedule }

func TestSkipOfPeriodicSlotsEqualsSkippingOneByOne(t *testing.T) {
	rng := seeded(t)
	for range 200 {
		s := Periodic(time.Duration(1+rng.IntN(500)), time.Duration(rng.IntN(1<<16)))
		due := time.Duration(rng.Uint32())
		now := due + time.Duration(rng.IntN(100_000))
		next, missed := Skip(s, due, now)
		if slow, count := Skip(step{s}, due, now); next != slow || missed != count || next <= now {
			t.Fatalf("%+v, due %d at %d: got %d after %d missed; one by one %d after %d", s, due, now, next, missed, slow, count)
		}
	}
}

func TestRandomPhaseIsUniform(t *testing.T) {
	rng := seeded(t)
	const n, bins = 100_000, 10
	var count [bins]float64
	for range n {
		p := RandomPhase(time.Second, rng)
		if p < 0 || p >= time.Second {
			t.Fatalf("phase %v is outside [0, interval)", p)
		}
		count[p*bins/time.Second]++
	}
	chi := 0.0
	for _, c := range count {
		chi += (c - n/bins) * (c - n/bins) / (n / bins)
	}
	if chi > 45 { // 9 degrees of freedom: fails for fewer than one seed in 1,000,000 (9.2e-7)
		t.Errorf("chi square %.1f, want at most 45", chi)
	}
	if p := RandomPhase(0, rng); p != 0 {
		t.Errorf("phase %v of interval 0, want 0", p)
	}
}

// TestPoissonGapsAreExponential compares the distribution of the gaps with 1-exp(-x), and checks their mean, the
// independence of successive gaps, and the limit.
func TestPoissonGapsAreExponential(t *testing.T) {
	const n, mean = 200_000, time.Millisecond
	s := Poisson(mean, seeded(t))
	gaps := make([]float64, n)
	var at time.Duration
	var sum, product float64
	for i := range gaps {
		next := s.Next(at)
		gaps[i] = float64(next-at) / float64(mean)
		at = next
		sum += gaps[i]
		if gaps[i] > poissonLimit {
			t.Fatalf("gap of %.2f means, want at most the limit", gaps[i])
		}
		if i > 0 {
			product += (gaps[i] - 1) * (gaps[i-1] - 1)
		}
	}
	// All eight bounds are 5.4 standard deviations or more: fails for fewer than one seed in 1,000,000 (8 x 6.7e-8).
	deviation := 5.4 / math.Sqrt(n)
	if d := sum/n - 1; math.Abs(d) > deviation {
		t.Errorf("relative error of the mean %.4f, want at most %.4f", d, deviation)
	}
	if r := product / n; math.Abs(r) > deviation {
		t.Errorf("correlation of successive gaps %.4f, want at most %.4f", r, deviation)
	}
	for _, x := range []float64{0.01, 0.1, 0.5, 1, 2, 4} {
		below := 0.0
		for _, g := range gaps {
			if g <= x {
				below++
			}
		}
		if want := 1 - math.Exp(-x); math.Abs(below/n-want) > deviation/2+1e-6 {
			t.Errorf("P(gap <= %v) = %.4f, want %.4f", x, below/n, want)
		}
	}
}

func TestLongPoissonGapsAreLimited(t *testing.T) {
	for _, c := range []struct {
		exponential float64
		want        time.Duration
	}{{0, 1}, {0.5, 500 * time.Millisecond}, {9.5, 9500 * time.Millisecond}, {10.5, 10 * time.Second}, {1e30, 10 * time.Second}} {
		if got := gap(c.exponential, time.Second); got != c.want {
			t.Errorf("gap of %v means is %v, want %v", c.exponential, got, c.want)
		}
	}
}
