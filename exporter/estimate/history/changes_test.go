package history

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"oneway.example/tests/testseed"
)

// steady is a history of two months with little noise.
var steady = generator{days: 60, level: 20, hourSD: 0.03, hourRho: 0.5, daySD: 0.015, dayRho: 0.3, outlier: 0.01, gaps: 0.02, effect: busyHours}

func TestStepOfTenPercentIsDatedWithinSixHours(t *testing.T) {
	seed, n := testseed.Of(t), *histories
	dated, found, one := 0, 0, 0
	for i := range n {
		rng := rand.New(rand.NewPCG(seed, uint64(6e6+i)))
		m := steady
		m.step, m.stepAt = 0.1, 24*12+rng.IntN(24*36)
		all := Changes(m.samples(rng))
		if len(all) == 1 {
			one++
		}
		at := monday.Add(time.Duration(m.stepAt) * time.Hour)
		for _, c := range all {
			if off := c.Time.Sub(at).Abs(); off <= 6*time.Hour {
				dated++
			}
			if relative, ok := c.Relative(); c.Time.Sub(at).Abs() <= 3*24*time.Hour && ok && math.Abs(relative-0.1) < 0.04 {
				found++
			}
		}
	}
	text := fmt.Sprintf("found %d, within 6 h %d, no other one in %d of %d\n", found, dated, one, n)
	record(t, fmt.Sprintf("Step of 10 %%, 60 days, seed %d", seed), text)
	if least := (0.95 - tolerance(0.95, n)) * float64(n); float64(dated) < least || float64(found) < least || float64(one) < least {
		t.Error(text)
	}
}

func TestQuietHistoriesHaveNoChange(t *testing.T) {
	seed, n := testseed.Of(t), *histories
	for _, days := range []int{28, 90} {
		m := scenarios()["quiet, 28 days"]
		m.days, m.dayRho = days, 0.5
		wrong := 0
		for i := range n {
			if len(Changes(m.samples(rand.New(rand.NewPCG(seed, uint64(7e6+i)))))) > 0 {
				wrong++
			}
		}
		record(t, fmt.Sprintf("Changes of %d quiet days, seed %d", days, seed), fmt.Sprintf("in %d of %d\n", wrong, n))
		if float64(wrong) > (0.05+tolerance(0.05, n))*float64(n) {
			t.Errorf("%d days: a change in %d of %d", days, wrong, n)
		}
	}
}

func TestSeveralStepsAreAllFoundAndNoMoreThanFive(t *testing.T) {
	m := steady
	m.days = 240
	s := m.samples(rand.New(rand.NewPCG(testseed.Of(t), 8e6)))
	for i := range s {
		s[i].Value += 4 * float64((s[i].Day-s[0].Day)/30%2) // seven steps
	}
	if all := Changes(s); len(all) != MostChanges {
		t.Errorf("%d changes: %+v", len(all), all)
	}
	for i := range s {
		s[i].Value -= 4 * float64((s[i].Day-s[0].Day)/30%2)
		if day := s[i].Day - s[0].Day; day >= 80 && day < 160 {
			s[i].Value += 4
		}
	}
	all := Changes(s)
	if len(all) != 2 || all[0].After < all[0].Before || all[1].After > all[1].Before || DayOf(all[0].Time)-s[0].Day != 80 || DayOf(all[1].Time)-s[0].Day != 160 {
		t.Errorf("%+v", all)
	}
	if again := Changes(nil); again != nil {
		t.Errorf("of nothing: %+v", again)
	}
}

// The slow change of a season makes days alike. Two routes in it, twelve days apart, are two steps at their own hours, not one between them.
func TestStepsOfAPathThatChangesSlowly(t *testing.T) {
	seed, n := testseed.Of(t), *histories
	right := 0
	for i := range n {
		rng := rand.New(rand.NewPCG(seed, uint64(9e6+i)))
		m := generator{days: 120, level: 100, hourSD: 0.004, hourRho: 0.5, daySD: 0.001, dayRho: 0.3}
		first := 24*20 + rng.IntN(24*20)
		s := m.samples(rng)
		for j := range s {
			hour := s[j].Time.Sub(monday).Hours()
			s[j].Value += 2 * math.Sin(2*math.Pi*hour/24/365)
			if hour >= float64(first) {
				s[j].Value += 11
			}
			if hour >= float64(first+12*24) {
				s[j].Value += 8
			}
		}

		both := 0
		for _, c := range Changes(s) {
			at := c.Time.Sub(monday).Hours()
			if math.Abs(at-float64(first)) <= 6 || math.Abs(at-float64(first+12*24)) <= 6 {
				both++
			}
		}
		if both == 2 {
			right++
		}
	}
	text := fmt.Sprintf("both found within 6 h in %d of %d\n", right, n)
	record(t, fmt.Sprintf("Steps of 11 and 8 %% in a season, seed %d", seed), text)
	if float64(right) < (0.95-tolerance(0.95, n))*float64(n) {
		t.Error(text)
	}
}

// The effects of hours and kinds of days are not taken over a step: the levels before and after it are the path's.
func TestStepInTheMiddleLeavesTheLevels(t *testing.T) {
	seed, n := testseed.Of(t), *histories
	wrong, largest := 0, 0.0
	for i := range n {
		rng := rand.New(rand.NewPCG(seed, uint64(10e6+i)))
		m := steady
		m.days, m.level, m.step, m.effect = 49, 100, 0.2, nil
		m.stepAt = 24*20 + rng.IntN(24*9)
		all := Changes(m.samples(rng))
		if len(all) != 1 {
			wrong++
			continue
		}
		off := max(math.Abs(all[0].Before-100), math.Abs(all[0].After-120))
		if largest = max(largest, off); off > 2 {
			wrong++
		}
	}
	text := fmt.Sprintf("another level or number of steps in %d of %d, largest error of a level %.1f %%\n", wrong, n, largest)
	record(t, fmt.Sprintf("Levels of a step of 20 %% in the middle, seed %d", seed), text)
	if float64(wrong) > (0.05+tolerance(0.05, n))*float64(n) {
		t.Error(text)
	}
}

// A clock fault makes the bound wide: the step may be the clocks'.
func TestStepWithinTheErrorBoundsIsMarked(t *testing.T) {
	m := steady
	m.step, m.stepAt = 0.1, 24*30
	s := m.samples(rand.New(rand.NewPCG(testseed.Of(t), 9e6)))
	for i := range s {
		if s[i].Bound = 0.1; s[i].Time.Sub(monday) >= 30*24*time.Hour {
			s[i].Bound = 5
		}
	}
	if all := Changes(s); len(all) != 1 || !all[0].WithinBound {
		t.Errorf("%+v", all)
	}
	for i := range s {
		s[i].Bound = 0.1
	}
	if all := Changes(s); len(all) != 1 || all[0].WithinBound {
		t.Errorf("%+v", all)
	}
}
