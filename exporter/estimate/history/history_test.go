package history

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"oneway.example/exporter/core/localday"
	"oneway.example/tests/testseed"
)

func TestVerdictOfAnInterval(t *testing.T) {
	infinite := math.Inf(1)
	for _, c := range []struct {
		e     Estimate
		bound float64
		want  Verdict
	}{
		{Estimate{0.02, -0.03, 0.08}, 0, Verdict{Outcome: Equal, Within: 0.1}},
		{Estimate{0.05, 0.02, 0.08}, 0, Verdict{Outcome: Equal, Within: 0.1}}, // a difference that does not matter
		{Estimate{0.2, 0.15, 0.25}, 0, Verdict{Outcome: Differs, AtLeast: 0.15}},
		{Estimate{-0.2, -0.25, -0.15}, 0, Verdict{Outcome: Differs, AtLeast: 0.15}},
		{Estimate{0.05, -0.2, 0.3}, 0.2, Verdict{Outcome: Unknown, Reason: WideBound}},
		{Estimate{0.05, -0.1, 0.2}, 0, Verdict{Outcome: Unknown, Reason: FewDays}},
		{Estimate{0.05, -infinite, infinite}, 0, Verdict{Outcome: Unknown, Reason: FewDays}},
	} {
		got := judge(c.e, c.e, c.bound, 20, 10, Options{}, 0.1)
		if (got.MoreDays > 0) != (got.Reason == FewDays) {
			t.Errorf("%+v: %+v", c.e, got)
		}
		if got.MoreDays = 0; got != c.want {
			t.Errorf("%+v: %+v, want %+v", c.e, got, c.want)
		}
	}
	strict := judge(Estimate{0.2, 0.05, 0.35}, Estimate{0.2, -0.05, 0.45}, 0, 20, 10, Options{Comparisons: 20}, 0.1)
	if strict.Outcome != Unknown {
		t.Errorf("one of many comparisons: %+v", strict)
	}
	// The interval of 95 % excludes 0: that many days are enough for it, and not for the limits of all comparisons.
	if one := judge(Estimate{0.2, 0.05, 0.35}, Estimate{0.2, -0.05, 0.45}, 0, 20, 10, Options{}, 0.1); strict.MoreDays <= one.MoreDays || strict.MoreDays < 5 {
		t.Errorf("one of many comparisons needs %d more days, one comparison %d", strict.MoreDays, one.MoreDays)
	}
	if never := judge(Estimate{0.1, -3, 3.2}, Estimate{0.1, -3, 3.2}, 0, 20, 10, Options{}, 0.1); never.MoreDays != MostDays {
		t.Errorf("at the margin: %+v", never)
	}
	// Ten years are searched to their end.
	if late := moreDays(10, func(f float64) float64 { return (10*f - 10) / 2 / 3000 }); late != 3000 {
		t.Errorf("%d days, want 3000", late)
	}
}

func TestOrderAndInvalidValuesDoNotMatter(t *testing.T) {
	rng := rand.New(rand.NewPCG(testseed.Of(t), 14e6))
	s := scenarios()["effects, 28 days"].samples(rng)
	mixed := slices.Clone(s)
	mixed = append(mixed, At(monday, math.NaN()), At(monday, math.Inf(1)), Sample{Time: monday, Value: 1, Hour: 24}, Sample{Time: monday, Value: 1, Bound: -1})
	rng.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
	a, _ := HoursOfDay(s, Options{Seed: 3})
	b, _ := HoursOfDay(mixed, Options{Seed: 3})
	if a.Epsilon != b.Epsilon || a.Largest != b.Largest || a.Verdict != b.Verdict || a.Counts != b.Counts {
		t.Errorf("%+v\n%+v", a, b)
	}
	if c, _ := HoursOfDay(s, Options{Seed: 4}); a.Largest == c.Largest || math.Abs(a.Largest.High-c.Largest.High) > 0.1 {
		t.Errorf("another seed: %+v, %+v", a.Largest, c.Largest)
	}
	x, _ := TrendOf(s, Options{})
	y, _ := TrendOf(mixed, Options{})
	if x != y || !slices.Equal(Changes(s), Changes(mixed)) {
		t.Errorf("%+v\n%+v", x, y)
	}
}

func TestTooFewSamplesHaveNoResult(t *testing.T) {
	few := generator{days: 3, level: 20, hourSD: 0.1}.samples(rand.New(rand.NewPCG(1, 1)))
	if v, ok := HoursOfDay(few, Options{}); ok {
		t.Errorf("hours of 3 days: %+v", v)
	}
	if v, ok := TrendOf(few, Options{}); ok {
		t.Errorf("trend of 3 days: %+v", v)
	}
	if v, ok := Compare(few, nil, Lower, Options{}); ok {
		t.Errorf("against nothing: %+v", v)
	}
	one, ok := Compare(few[:24], few[24:48], Lower, Options{})
	if !ok || one.Verdict.Outcome != Unknown || !math.IsInf(one.Difference.High, 1) || one.Verdict.MoreDays == 0 {
		t.Errorf("a day against another: %+v", one)
	}
	var equal []Sample
	for d := range 10 {
		for h := range 24 {
			equal = append(equal, At(monday.Add(time.Duration(24*d+h)*time.Hour), 0))
		}
	}
	if v, ok := HoursOfDay(equal, Options{}); ok {
		t.Errorf("equal values: %+v", v)
	}
	if v, ok := Compare(equal[:120], equal[120:], Lower, Options{}); !ok || v.Verdict.Reason != NoRelative {
		t.Errorf("zeros: %+v", v)
	}
	for i := range equal {
		equal[i].Value = float64(1 + i%5/4)
	}
	if v, ok := Compare(equal[:120], equal[120:], Lower, Options{}); !ok || v.Verdict.Reason != Tied {
		t.Errorf("mostly equal values: %+v", v)
	}
}

func TestCountsHaveDaysAndMissingHours(t *testing.T) {
	s := generator{days: 10, level: 20, hourSD: 0.1}.samples(rand.New(rand.NewPCG(1, 1)))
	s = slices.Delete(s, 30, 60)
	if c := Count(s); c != (Counts{Samples: 210, Days: 10, MissingHours: 30}) {
		t.Errorf("%+v", c)
	}
}

func TestDaysAreDatesOfTheZone(t *testing.T) {
	zone := time.FixedZone("", 9*3600)
	at := time.Date(2026, time.March, 1, 2, 0, 0, 0, zone) // 28 February in UTC
	if s := At(at, 1); s.Hour != 2 || s.Day != DayOf(at.UTC())+1 || s.Kind != localday.Weekend {
		t.Errorf("%+v", s)
	}
}

// Samples of hours that are missing on most days, a single hour, runs of an hour in a week: no panic, and intervals contain their value.
func TestSparseHistories(t *testing.T) {
	rng := rand.New(rand.NewPCG(testseed.Of(t), 15e6))
	for round := range 300 {
		m := generator{days: 1 + rng.IntN(40), level: 20, hourSD: 0.1, gaps: rng.Float64(), each: time.Duration(1+rng.IntN(30)) * time.Hour}
		s := m.samples(rng)
		if v, ok := HoursOfDay(s, Options{Draws: 100}); ok && (!ordered(v.Epsilon) || !ordered(v.Largest)) {
			t.Fatalf("round %d, %+v: %+v", round, m, v)
		}
		if v, ok := TrendOf(s, Options{}); ok && !ordered(v.Slope) {
			t.Fatalf("round %d, %+v: %+v", round, m, v)
		}
		Changes(s)
		if len(s) < 2 {
			continue
		}
		k := 1 + rng.IntN(len(s)-1)
		if v, ok := Compare(s[:k], s[k:], Lower, Options{}); !ok || !ordered(v.Difference) || !ordered(v.BetterA) {
			t.Fatalf("round %d, %+v: %+v", round, m, v)
		}
	}
}

func ordered(e Estimate) bool { return e.Low <= e.Value && e.Value <= e.High }
