package history

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"oneway.example/tests/testseed"
)

// withBound sets the bound and adds an error to each sample.
func withBound(samples []Sample, bound float64, wrong func(s Sample) float64) []Sample {
	all := slices.Clone(samples)
	for i, s := range all {
		all[i].Value += wrong(s)
		all[i].Bound = bound
	}
	return all
}

// The clocks are wrong by their whole bound, in the direction that does most harm: no verdict is about the path.
func TestClocksAloneMakeNoDifference(t *testing.T) {
	m := generator{days: 42, level: 20, hourSD: 0.03, hourRho: 0.5, daySD: 0.02, dayRho: 0.3}
	s := m.samples(rand.New(rand.NewPCG(testseed.Of(t), 10e6)))
	const bound = 3
	evening := func(s Sample) float64 {
		if s.Hour >= 18 && s.Hour < 22 {
			return 0.9 * bound
		}
		return -0.9 * bound
	}
	if exact, _ := HoursOfDay(withBound(s, 0, evening), Options{}); exact.Verdict.Outcome != Differs {
		t.Errorf("without a bound: %+v", exact.Verdict)
	}
	if v, _ := HoursOfDay(withBound(s, bound, evening), Options{}); v.Verdict.Outcome != Unknown || v.Verdict.Reason != WideBound || v.Verdict.MoreDays != 0 || v.Largest.Low > 0 {
		t.Errorf("hours of the day: %+v, %+v", v.Verdict, v.Largest)
	}
	late := func(s Sample) float64 {
		if s.Time.Sub(monday) >= 21*24*time.Hour {
			return bound
		}
		return -bound
	}
	for name, bad := range map[string][]Sample{"bound": withBound(s, bound, late), "exact": withBound(s, 0, late)} {
		a, b := byHalf(bad)
		want := Unknown
		if name == "exact" {
			want = Differs
		}
		c, _ := Compare(a, b, Lower, Options{})
		trend, _ := TrendOf(bad, Options{})
		if c.Verdict.Outcome != want || trend.Verdict.Outcome == Differs {
			t.Errorf("%s: halves %+v, trend %+v", name, c.Verdict, trend.Verdict)
		}
		if name == "bound" && (c.Difference.High < 0 || c.Verdict.MoreDays != 0 || trend.Slope.Low > 0) {
			t.Errorf("halves %+v of %+v, trend %+v", c.Verdict, c.Difference, trend.Slope)
		}
	}
}

// The interval contains the difference of the true values, whatever the errors within the bounds are.
func TestDifferenceWithinTheBoundsIsInTheInterval(t *testing.T) {
	seed := testseed.Of(t)
	for round := range 30 {
		rng := rand.New(rand.NewPCG(seed, uint64(11e6+round)))
		m := generator{days: 10, level: 20, hourSD: 0.03, hourRho: 0.5}
		a, b := m.samples(rng), m.samples(rng)
		truth, _ := Compare(a, b, Lower, Options{})
		random := func(Sample) float64 { return 2*rng.Float64() - 1 }
		if round%3 == 0 {
			random = func(Sample) float64 { return 1 }
		}
		v, _ := Compare(withBound(a, 1, random), withBound(b, 1, func(Sample) float64 { return -1 }), Lower, Options{})
		if d := truth.Difference.Value; d < v.Difference.Low || d > v.Difference.High {
			t.Errorf("round %d: %v is not in %+v", round, d, v.Difference)
		}
	}
}

func TestPairsOfTheSameHourCancelWhatBothHave(t *testing.T) {
	rng := rand.New(rand.NewPCG(testseed.Of(t), 12e6))
	m := generator{days: 10, level: 20, hourSD: 0.3, hourRho: 0.5, daySD: 0.1}
	b := m.samples(rng)
	a := withBound(b, 0, func(Sample) float64 { return 1 + 0.1*rng.NormFloat64() })
	c, ok := Compare(a, b, Higher, Options{})
	if !ok || c.Pairs != len(b) || math.Abs(c.Difference.Value-1) > 0.1 || c.Difference.High-c.Difference.Low > 0.2 || c.BetterA.Value < 0.99 {
		t.Errorf("%+v", c)
	}
	for i := range b {
		b[i].Time = b[i].Time.AddDate(0, 1, 0)
		b[i].Day += 31
	}
	if c, _ := Compare(a, b, Higher, Options{}); c.Pairs != 0 || c.Difference.High-c.Difference.Low < 0.5 || c.Verdict.Outcome == Differs {
		t.Errorf("in other hours: %+v", c)
	}
}

// WPI's table: means of 48 runs, 341 +- 27 and 360 +- 19 kb/s (95 %), so deviations of 95 and 67.
func TestWeekdayAndWeekendOfWPIShowNoDifference(t *testing.T) {
	seed := testseed.Of(t)
	differs, sum := 0, 0.0
	const n = 200
	for i := range n {
		rng := rand.New(rand.NewPCG(seed, uint64(13e6+i)))
		weekday := generator{days: 1, level: 341, hourSD: 27 / 1.96 * math.Sqrt(48) / 341, each: 30 * time.Minute}.samples(rng)
		weekend := generator{days: 1, level: 360, hourSD: 19 / 1.96 * math.Sqrt(48) / 360, each: 30 * time.Minute}.samples(rng)
		for j := range weekend {
			weekend[j].Time, weekend[j].Day = weekend[j].Time.AddDate(0, 0, 3), weekend[j].Day+3
		}
		c, ok := Compare(weekday, weekend, Higher, Options{})
		if !ok {
			t.Fatal("no comparison")
		}
		sum += c.Difference.Value / n
		if c.Verdict.Outcome == Differs {
			differs++
		}
	}
	if differs > 0 || sum > -10 || sum < -28 {
		t.Errorf("%d of %d differ, mean %.1f, want about -19", differs, n, sum)
	}
}

// Where all samples agree, the probability is exactly 1 or 0, whatever their number is, and its interval is unknown.
func TestAllSamplesAgree(t *testing.T) {
	rng := rand.New(rand.NewPCG(testseed.Of(t), 14e6))
	for days := 2; days < 60; days += 3 {
		slow := generator{days: days, level: 20, hourSD: 0.01}.samples(rng)
		fast := withBound(slow, 0, func(Sample) float64 { return -10 })
		for _, c := range []struct {
			name  string
			moved int // days
		}{{"pairs", 0}, {"other hours", 100}} {
			for i := range fast {
				fast[i].Time, fast[i].Day = fast[i].Time.AddDate(0, 0, c.moved), fast[i].Day+c.moved
			}
			if v, _ := Compare(fast, slow, Lower, Options{}); v.BetterA != (Estimate{1, 0, 1}) {
				t.Errorf("%s of %d days, A is better: %+v", c.name, days, v.BetterA)
			}
			if v, _ := Compare(slow, fast, Lower, Options{}); v.BetterA != (Estimate{0, 0, 1}) {
				t.Errorf("%s of %d days, B is better: %+v", c.name, days, v.BetterA)
			}
		}
	}
}
