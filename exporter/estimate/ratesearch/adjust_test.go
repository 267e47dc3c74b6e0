package ratesearch

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const ms = time.Millisecond

// reference is the decision of udpst's algorithm B, written from the flow chart of TR-471 section 5.2.1: row, slow
// count, and the feedback.
func reference(row, slow, high, last, errors int, delay time.Duration) (int, int) {
	const delta, threshold, tolerated = 10, 3, 10
	if errors <= tolerated && delay < 30*ms {
		if row < high && slow < threshold {
			if row+delta > high {
				row = high
			} else {
				row += delta
			}
			slow = 0
		} else if row < last {
			row++
		}
	} else if errors > tolerated || delay > 90*ms {
		slow++
		if row < high && slow == threshold {
			if row > 3*delta {
				row -= 3 * delta
			} else {
				row = 0
			}
		} else if row > 0 {
			row--
		}
	}
	return row, slow
}

func TestDecisionsAreThoseOfTheReferenceInEveryState(t *testing.T) {
	a, err := NewAdjustment(AdjustmentOptions{Duration: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	last := len(a.rows) - 1
	for _, row := range []int{0, 1, 9, 10, 29, 30, 31, 500, 990, 991, 999, 1000, 1001, 1089, last} {
		for slow := range 6 {
			for _, errors := range []int{0, 10, 11, 500} {
				for _, delay := range []time.Duration{0, 30*ms - 1, 30 * ms, 90 * ms, 90*ms + 1, time.Second} {
					a.row, a.slow = row, slow
					a.Observe(Feedback{Packets: 1000, Lost: errors, DelayVariation: delay})
					wantRow, wantSlow := reference(row, slow, 1000, last, errors, delay)
					if a.row != wantRow || a.slow != wantSlow {
						t.Fatalf("row %d, slow %d, %d errors, %v: %d and %d, want %d and %d", row, slow, errors, delay, a.row, a.slow, wantRow, wantSlow)
					}
				}
			}
		}
	}
}

func TestStandardTableGoesFromHalfAMegabitToTenGigabit(t *testing.T) {
	a, err := NewAdjustment(AdjustmentOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[int]float64{}
	for _, row := range []int{0, 1, 2, 999, 1000, 1001, 1090} {
		got[row] = a.rows[row] / mbit
	}
	want := map[int]float64{0: 0.5, 1: 1, 2: 2, 999: 999, 1000: 1000, 1001: 1100, 1090: 10_000}
	if diff := cmp.Diff(want, got); diff != "" || len(a.rows) != 1091 || a.high != 1000 {
		t.Errorf("%d rows, threshold %d (-want +got):\n%s", len(a.rows), a.high, diff)
	}
}

func TestTableKeepsToItsBounds(t *testing.T) {
	for name, c := range map[string]struct {
		o           AdjustmentOptions
		rows, high  int
		first, last float64
	}{
		"a slow link":    {AdjustmentOptions{Max: 153e3 / 8}, 100, 99, 1530.0 / 8, 153e3 / 8},
		"long steps":     {AdjustmentOptions{Max: 1e9 / 8, Interval: time.Second}, 100, 99, 1e7 / 8, 1e9 / 8},
		"from half":      {AdjustmentOptions{Min: 0.5e6, Max: 1e6}, 51, 50, 0.5e6, 1e6},
		"to 250 Mb/s":    {AdjustmentOptions{Max: 250 * mbit}, 251, 250, mbit / 2, 250 * mbit},
		"to 2 Gb/s":      {AdjustmentOptions{Max: 2000 * mbit}, 1011, 1000, mbit / 2, 2000 * mbit},
		"one rate":       {AdjustmentOptions{Min: 1000, Max: 1000}, 1, 0, 1000, 1000},
		"above 1 Gb/s":   {AdjustmentOptions{Min: 1500 * mbit, Max: 2000 * mbit}, 6, 0, 1500 * mbit, 2000 * mbit},
		"between a row ": {AdjustmentOptions{Max: 100.5 * mbit}, 102, 101, mbit / 2, 100.5 * mbit},
	} {
		a, err := NewAdjustment(c.o)
		if err != nil {
			t.Fatal(name, err)
		}
		if n := len(a.rows); n != c.rows || a.high != c.high || math.Abs(a.rows[0]/c.first-1) > 1e-9 || a.rows[n-1] != c.last {
			t.Errorf("%s: %d rows from %v to %v, threshold %d; want %+v", name, n, a.rows[0], a.rows[n-1], a.high, c)
		}
		for i := 1; i < len(a.rows); i++ {
			if a.rows[i] <= a.rows[i-1] {
				t.Errorf("%s: row %d is %v after %v", name, i, a.rows[i], a.rows[i-1])
			}
		}
	}
}

func TestSearchFindsTheLinksRate(t *testing.T) {
	const seeds = 100
	for name, c := range map[string]struct {
		w simulation
		o AdjustmentOptions
	}{
		"standard, 200 Mb/s":       {simulation{rate: 200 * mbit, queue: 2e6}, AdjustmentOptions{}},
		"standard, 950 Mb/s":       {simulation{rate: 950 * mbit, queue: 5e6, jitter: 5 * ms}, AdjustmentOptions{}},
		"standard, small queue":    {simulation{rate: 100 * mbit, queue: 64_000}, AdjustmentOptions{}},
		"wibro down, steps of 1 s": {simulation{rate: 10 * mbit, queue: 1.1e6, emptied: true}, AdjustmentOptions{Max: 12 * mbit, Interval: time.Second, Duration: 30 * time.Second}},
		"wibro up, steps of 1 s":   {simulation{rate: 2.5 * mbit, queue: 110_000, emptied: true}, AdjustmentOptions{Max: 5 * mbit, Interval: time.Second, Duration: 30 * time.Second}},
		"wifi, steps of 1 s":       {simulation{rate: 4.3 * mbit, queue: 64_000, jitter: 2 * ms, loss: 0.001, emptied: true}, AdjustmentOptions{Max: 12 * mbit, Interval: time.Second, Duration: 30 * time.Second}},
		"evdo up, steps of 1 s":    {simulation{rate: 0.153 * mbit, queue: 20_000, jitter: 20 * ms, emptied: true}, AdjustmentOptions{Max: 0.5 * mbit, Interval: time.Second, Duration: 30 * time.Second}},
	} {
		worst := 0.0
		for seed := range uint64(seeds) {
			w := c.w
			a, err := NewAdjustment(c.o)
			if err != nil {
				t.Fatal(err)
			}
			w.run(a, seed)
			got, ok := a.Maximum()
			if !ok {
				t.Fatalf("%s: no rate found", name)
			}
			worst = max(worst, math.Abs(got/w.rate-1))
		}
		t.Logf("%-26s within %.2f %% over %d seeds", name, 100*worst, seeds)
		if worst > 0.02 {
			t.Errorf("%s: off by %.2f %%", name, 100*worst)
		}
	}
}

func TestSearchEndsAfterItsTimeAndIgnoresLaterFeedback(t *testing.T) {
	a, err := NewAdjustment(AdjustmentOptions{Max: mbit, Duration: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	w := simulation{rate: mbit, queue: 1e4}
	if n := w.run(a, 1); n != 20 {
		t.Errorf("%d steps, want 20", n)
	}
	a.Observe(Feedback{Received: 1e9})
	if got, _ := a.Maximum(); got > 2*mbit {
		t.Errorf("counted feedback after the end: %v", got)
	}
}

func TestAllLossReducesTheRateToTheLowest(t *testing.T) {
	a, err := NewAdjustment(AdjustmentOptions{Max: mbit})
	if err != nil {
		t.Fatal(err)
	}
	first, _ := a.Next()
	a.Observe(Feedback{Packets: 100, Received: 1, DelayVariation: 0})
	for {
		s, more := a.Next()
		if !more {
			break
		}
		first = s
		a.Observe(Feedback{Packets: 1, Lost: 1, DelayVariation: -1})
	}
	if first.Rate != mbit/100 {
		t.Errorf("ended at %v", first.Rate)
	}
}

func TestUnknownDelayDoesNotChangeTheRate(t *testing.T) {
	a, err := NewAdjustment(AdjustmentOptions{})
	if err != nil {
		t.Fatal(err)
	}
	a.Observe(Feedback{Packets: 10, Received: 5, DelayVariation: -1})
	if s, _ := a.Next(); s.Rate != mbit/2 {
		t.Errorf("went to %v", s.Rate)
	}
}

func TestBadOptionsAreRefused(t *testing.T) {
	nan := math.NaN()
	for name, o := range map[string]AdjustmentOptions{
		"upside down":     {Min: 2, Max: 1},
		"below zero":      {Min: -1},
		"not a number":    {Max: nan},
		"min no number":   {Min: nan},
		"infinite":        {Max: math.Inf(1)},
		"negative step":   {Interval: -1},
		"longer than all": {Interval: time.Minute, Duration: time.Second},
		"thresholds":      {Lower: time.Second},
	} {
		if _, err := NewAdjustment(o); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

func BenchmarkObserve(b *testing.B) {
	a, err := NewAdjustment(AdjustmentOptions{Duration: math.MaxInt64})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		a.Observe(Feedback{Packets: 100, Lost: 20})
	}
}
