package history

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"oneway.example/tests/testseed"
)

// losses is a history of hours with a share of lost packets that changes from day to day.
func losses(rng *rand.Rand, days int, share float64) (all []Counted) {
	for d := range days {
		today := share * (0.5 + rng.Float64())
		for h := range 24 {
			c := Counted{Sample: At(monday.Add(time.Duration(24*d+h)*time.Hour), 0), Whole: 3600}
			for range 3600 / 36 { // in bursts
				if rng.Float64() < today {
					c.Events += 36
				}
			}
			all = append(all, c)
		}
	}
	return all
}

func TestSharesOfTwoConditions(t *testing.T) {
	seed, n := testseed.Of(t), 10**histories
	covered, wrong := 0, 0
	for i := range n {
		rng := rand.New(rand.NewPCG(seed, uint64(16e6+i)))
		v, ok := CompareShares(losses(rng, 14, 0.02), losses(rng, 14, 0.01), 0, Options{})
		if !ok {
			t.Fatal("no comparison")
		}
		if v.Difference.Low <= 0.01 && v.Difference.High >= 0.01 {
			covered++
		}
		if v, _ := CompareShares(losses(rng, 14, 0.01), losses(rng, 14, 0.01), 0, Options{}); v.Verdict.Outcome == Differs {
			wrong++
		}
	}
	if float64(covered) < (0.935-tolerance(0.95, n))*float64(n) || float64(wrong) > (0.05+tolerance(0.05, n))*float64(n) {
		t.Errorf("of %d: %d intervals contain the truth, %d false differences", n, covered, wrong)
	}
}

// TestChanceWithinTheDaysIsFound: days are alike, and hours have bursts: all of the squares is chance. In equal hours nothing is.
func TestChanceWithinTheDaysIsFound(t *testing.T) {
	const days, burst = 400, 36
	rng := rand.New(rand.NewPCG(5, 5))
	var bursts, even []Counted
	for d := range days {
		for h := range 24 {
			one := Counted{Sample: At(monday.Add(time.Duration(24*d+h)*time.Hour), 0), Whole: 3600}
			one.Events = 36 * (1 + 0.5*float64(d%2)) // equal in a day
			even = append(even, one)
			one.Events = 0
			for at := rng.ExpFloat64(); at < 0.2; at += rng.ExpFloat64() {
				one.Events += burst
			}
			bursts = append(bursts, one)
		}
	}
	for name, c := range map[string]struct {
		all         []Counted
		least, most float64
	}{"bursts": {bursts, 0.8, 1.2}, "even": {even, -1e-9, 1e-9}} {
		_, z, _ := scoresOf(c.all)
		squares := 0.0
		for _, v := range z.scores {
			squares += v * v
		}
		if share := z.noise / squares; share < c.least || share > c.most {
			t.Errorf("%s: %.3f of the squares is chance, want %v to %v", name, share, c.least, c.most)
		}
	}
	// Days in pairs, with as much chance as common part: without the chance they are more alike.
	s := dayScores{}
	for d := range 60 {
		s.day, s.v = append(s.day, d), append(s.v, float64(d/10%2*2-1)+2*(rng.Float64()-0.5)*math.Sqrt(3))
	}
	known := s
	known.noise = 60
	without, _ := longRun(s)
	if with, _ := longRun(known); with < 1.1*without {
		t.Errorf("variance %v with the chance known, %v without, want more", with, without)
	}
}

// TestSharesOfCorrelatedDays: bursts in a few hours hide how alike neighboring days are.
func TestSharesOfCorrelatedDays(t *testing.T) {
	seed, n := testseed.Of(t), 10**histories
	for _, days := range []int{28, 90} {
		for _, rho := range []float64{0.4, 0.6} {
			covered := 0
			for i := range n {
				rng := rand.New(rand.NewPCG(seed, uint64(18e6+i)))
				v, ok := CompareShares(alike(rng, days, rho), alike(rng, days, rho), 0, Options{})
				if !ok {
					t.Fatal("no comparison")
				}
				if v.Difference.Low <= 0 && v.Difference.High >= 0 {
					covered++
				}
			}
			if float64(covered) < (0.935-tolerance(0.95, n))*float64(n) {
				t.Errorf("%d days with a correlation of %.1f: %d of %d intervals contain the truth", days, rho, covered, n)
			}
		}
	}
}

// alike is a history of hours with a loss of 0.2 % in bursts of 36 packets, three times as many from 18 to 22 h, whose days are as correlated as rho.
func alike(rng *rand.Rand, days int, rho float64) (all []Counted) {
	const spread, sent, burst = 0.6, 3600, 36
	day := newCorrelated(rng, rho, spread, false)
	for d := range days {
		today := 0.002 * math.Exp(day.next()-spread*spread/2) * sent / burst
		for h := range 24 {
			c := Counted{Sample: At(monday.Add(time.Duration(24*d+h)*time.Hour), 0), Whole: sent}
			mean := today
			if h >= 18 && h < 22 {
				mean *= 3
			}
			for at := rng.ExpFloat64(); at < mean; at += rng.ExpFloat64() {
				c.Events += burst
			}
			all = append(all, c)
		}
	}
	return all
}

// TestPacketsWithoutAnOutcomeMayBeLost: of half of the hours of A a tenth, as where the remote host is off.
func TestPacketsWithoutAnOutcomeMayBeLost(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	a, b := losses(rng, 28, 0.0003), losses(rng, 28, 0.0003)
	if v, _ := CompareShares(a, b, 0, Options{}); v.Verdict.Outcome != Equal {
		t.Errorf("with all outcomes: %+v, want equal", v)
	}
	for i := range a {
		if i%2 == 0 {
			a[i].Undecided = a[i].Whole / 10
		}
	}
	v, _ := CompareShares(a, b, 0, Options{})
	if v.Verdict.Outcome != Unknown || v.Verdict.Reason != ManyUndecided || math.Abs(v.UndecidedA-0.05) > 1e-9 || v.Difference.High < 0.05 || v.Difference.Low < -0.001 {
		t.Errorf("without: %+v, want that it cannot be told", v)
	}
	if v, _ := CompareShares(b, a, 0, Options{}); v.Verdict.Reason != ManyUndecided || v.Difference.Low > -0.05 {
		t.Errorf("the other way round: %+v", v)
	}
	if v, _ := CompareShares(losses(rng, 28, 0.2), a, 0, Options{}); v.Verdict.Outcome != Differs || v.Verdict.AtLeast > 0.15 {
		t.Errorf("20 %% against 0.03 to 5.03 %%: %+v, want a difference of 15 %% at most", v)
	}
}

// TestOutagesWithoutAnOutcomeShowNoMoreThanLosses: A loses 0.5 % always, B in outages, one in two or in four days, whose packets are lost or have no
// outcome.
func TestOutagesWithoutAnOutcomeShowNoMoreThanLosses(t *testing.T) {
	const days, whole, share = 30, 36000, 0.005
	seed, n := testseed.Of(t), 3**histories
	for _, outages := range []float64{0.5, 0.25} {
		for _, undecided := range []bool{false, true} {
			missed, differs := 0, 0
			for i := range n {
				rng := rand.New(rand.NewPCG(seed, uint64(19e6+i)))
				var a, b []Counted
				for d := range days {
					out := rng.IntN(24)
					if rng.Float64() >= outages {
						out = -1
					}
					for h := range 24 {
						c := Counted{Sample: At(monday.Add(time.Duration(24*d+h)*time.Hour), 0), Whole: whole, Events: share * whole * (0.9 + 0.2*rng.Float64())}
						a = append(a, c)
						if c.Events = 0; h == out {
							c.Events = share * 24 / outages * whole
						}
						if undecided {
							c.Events, c.Undecided = 0, c.Events
						}
						b = append(b, c)
					}
				}
				for _, ends := range [][2][]Counted{{a, b}, {b, a}} {
					v, ok := CompareShares(ends[0], ends[1], 0, Options{})
					if !ok {
						t.Fatal("no comparison")
					}
					if v.Difference.Low > 0 || v.Difference.High < 0 {
						missed++
					}
					if v.Verdict.Outcome == Differs {
						differs++
					}
				}
			}
			if most := (0.05 + tolerance(0.05, n)) * float64(2*n); float64(missed) > most || float64(differs) > most {
				t.Errorf("%.2f outages a day, undecided %v: of %d intervals %d are without the truth, %d differ", outages, undecided, 2*n, missed, differs)
			}
		}
	}
}

func TestSharesWithoutLossAreEqualOnlyWithEnoughPackets(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	few := losses(rng, 1, 0)[:1]
	few[0].Whole = 100
	if v, ok := CompareShares(few, few, 0, Options{}); !ok || v.Verdict.Outcome != Unknown || v.P != 1 {
		t.Errorf("100 packets: %+v", v)
	}
	if v, ok := CompareShares(losses(rng, 14, 0), losses(rng, 14, 0), 0, Options{}); !ok || v.Verdict.Outcome != Equal || v.Verdict.Within != DefaultShareMargin {
		t.Errorf("a million packets: %+v", v)
	}
	if v, ok := CompareShares(nil, few, 0, Options{}); ok {
		t.Errorf("nothing: %+v", v)
	}
}

// TestConditionsOfFewDaysShowNothing: each day has a level of its own, with a deviation of 10 %, and no condition has another level. A is seen for four
// hours of one day and B in all other hours of ten, or both for so many hours.
func TestConditionsOfFewDaysShowNothing(t *testing.T) {
	seed, n := testseed.Of(t), 4**histories
	for _, c := range []struct{ hoursA, hoursB, within int }{{4, 240, 1}, {8, 240, 2}, {25, 25, 0}, {26, 26, 0}, {25, 240, 0}, {48, 48, 0}} {
		values, losses := 0, 0
		for i := range n {
			rng := rand.New(rand.NewPCG(seed, uint64(20e6+i)))
			history := func(first, hours int) (samples []Sample, shares []Counted) {
				level := 0.0
				for h := range hours {
					if h%24 == 0 {
						level = 1 + 0.1*rng.NormFloat64()
					}
					s := At(monday.Add(time.Duration(24*first+h)*time.Hour), 0)
					s.Value = 20 * level * (1 + 0.002*rng.NormFloat64())
					samples = append(samples, s)
					shares = append(shares, Counted{Sample: s, Whole: 36000, Events: 36000 * 0.02 * level * (1 + 0.002*rng.NormFloat64())})
				}
				return samples, shares
			}
			a, lostA := history(0, c.hoursA)
			b, lostB := history(100, c.hoursB)
			if c.within > 0 { // A is the evenings of the first days of B
				a, lostA = nil, nil
				var restB []Sample
				var restLost []Counted
				for j := range b {
					if h := j % 24; j < 24*c.within && h >= 18 && h < 22 {
						a, lostA = append(a, b[j]), append(lostA, lostB[j])
					} else {
						restB, restLost = append(restB, b[j]), append(restLost, lostB[j])
					}
				}
				b, lostB = restB, restLost
			}
			if v, ok := Compare(a, b, Lower, Options{}); ok && v.Verdict.Outcome == Differs {
				values++
			}
			if v, ok := CompareShares(lostA, lostB, 0, Options{}); ok && v.Verdict.Outcome == Differs {
				losses++
			}
		}
		if most := (0.05 + tolerance(0.05, n)) * float64(n); float64(values) > most || float64(losses) > most {
			t.Errorf("%d hours against %d, within %d days: of %d histories %d differ, and %d in loss", c.hoursA, c.hoursB, c.within, n, values, losses)
		}
	}
}
