package history

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/localday"
	"oneway.example/exporter/estimate/orderstat"
	"oneway.example/tests/testseed"
)

// histories is the number of made histories of each scenario. With 1000 (make simulate-history) the claims of testdata/simulation.txt are
// asserted; fewer have a tolerance that one in a million of seeds exceeds.
var histories = flag.Int("histories", 40, "made histories of each scenario")

// tolerance is 5 deviations of a share of n histories; with 1000 it is 0: the claim itself.
func tolerance(share float64, n int) float64 {
	if n >= 1000 {
		return 0
	}
	return 5*math.Sqrt(share*(1-share)/float64(n)) + 1/float64(n)
}

func drawsOf(n int) int {
	if n >= 1000 {
		return 1000
	}
	return 200
}

// busyHours are the hours 18 to 21, of weekdays.
func busyHours(hour int, k localday.DayType) float64 {
	if k == localday.Weekday && hour >= 18 && hour < 22 {
		return 0.2
	}
	return 0
}

// scenarios are correlated between hours and between days, with long tails, outliers and gaps.
func scenarios() map[string]generator {
	rough := generator{level: 20, hourSD: 0.06, hourRho: 0.6, daySD: 0.04, dayRho: 0.4, tailed: true, outlier: 0.01, gaps: 0.05}
	quiet, effects, long := rough, rough, rough
	quiet.days, effects.days, long.days = 28, 28, 90
	effects.effect = func(hour int, k localday.DayType) float64 {
		v := busyHours(hour, k)
		if k == localday.Weekend {
			v -= 0.08
		}
		return v
	}
	effects.drift = 0.03
	long.effect, long.drift = effects.effect, -0.02
	long.tailed, long.dayRho = false, 0.5
	return map[string]generator{"quiet, 28 days": quiet, "effects, 28 days": effects, "effects, 90 days": long}
}

// truth has the values that intervals must contain, from a history of many days without drift.
type truth struct{ epsilon, largest, slope, weekend, better float64 }

func (m generator) truth(rng *rand.Rand) truth {
	v := truth{slope: m.drift * m.level}
	if v.better = 0.5; m.effect == nil {
		return v
	}
	m.days, m.drift, m.gaps = 7*1200, 0, 0
	s := m.samples(rng)
	groups := make([][]float64, hours)
	for _, one := range s {
		groups[one.Hour] = append(groups[one.Hour], one.Value)
	}
	_, v.epsilon, _ = KruskalWallis(groups)
	low, high := math.Inf(1), 0.0
	for _, g := range groups {
		middle := orderstat.Median(orderstat.Sorted(g))
		low, high = min(low, middle), max(high, middle)
	}
	v.largest = (high - low) / medianOf(s)
	a, b := byKind(s)
	x, y := sortedValues(logs(a), 0), sortedValues(logs(b), 0)
	v.weekend = math.Expm1(pairQuantile(differences{x, y}, 0.5))
	v.better = 0
	for _, p := range placements(y, x) {
		v.better += p / float64(len(y))
	}
	return v
}

func byKind(samples []Sample) (weekday, weekend []Sample) {
	for _, s := range samples {
		if s.Kind == localday.Weekday {
			weekday = append(weekday, s)
		} else {
			weekend = append(weekend, s)
		}
	}
	return weekday, weekend
}

func byHalf(samples []Sample) (first, second []Sample) {
	middle := (samples[0].Day + samples[len(samples)-1].Day + 1) / 2
	for i, s := range samples {
		if s.Day >= middle {
			return samples[:i], samples[i:]
		}
	}
	return samples, nil
}

// tally counts how often intervals contain their truth, and verdicts that differ.
type tally struct {
	covered, differs map[string]int
}

func (c *tally) add(name string, e Estimate, truth float64, v Outcome) {
	if truth >= e.Low && truth <= e.High {
		c.covered[name]++
	} else {
		c.covered[name] += 0
	}
	if v == Differs {
		c.differs[name]++
	}
}

// rival is a second condition in the same hours, with its own noise.
func rival(samples []Sample, m generator, rng *rand.Rand) []Sample {
	m.level, m.effect, m.drift, m.gaps, m.outlier = 10, nil, 0, 0, 0
	noise := map[int64]float64{}
	for _, s := range m.samples(rng) {
		noise[s.Time.Unix()] = s.Value - m.level
	}
	all := slices.Clone(samples)
	for i := range all {
		all[i].Value += noise[all[i].Time.Unix()]
	}
	return all
}

func (m generator) simulate(seed uint64, n int) tally {
	want := m.truth(rand.New(rand.NewPCG(seed, 1)))
	flat := m // halves of it differ by nothing but chance
	flat.drift = 0
	c := tally{map[string]int{}, map[string]int{}}
	for i := range n {
		s := m.samples(rand.New(rand.NewPCG(seed, uint64(2+i))))
		o := Options{Seed: uint64(i), Draws: drawsOf(n)}
		if t, ok := HoursOfDay(s, o); ok {
			c.add("epsilon squared", t.Epsilon, want.epsilon, Unknown)
			c.add("largest difference of hours", t.Largest, want.largest, t.Verdict.Outcome)
		}
		if t, ok := TrendOf(s, o); ok {
			c.add("trend", t.Slope, want.slope, t.Verdict.Outcome)
		}
		s = flat.samples(rand.New(rand.NewPCG(seed, uint64(2+i))))
		weekday, weekend := byKind(s)
		if v, ok := Compare(weekday, weekend, Lower, o); ok {
			c.add("weekday, relative", v.Relative, want.weekend, v.Verdict.Outcome)
			c.add("weekday, probability", v.BetterA, want.better, Unknown)
		}
		first, second := byHalf(s)
		if v, ok := Compare(first, second, Lower, o); ok {
			c.add("halves, relative", v.Relative, 0, v.Verdict.Outcome)
			c.add("halves, probability", v.BetterA, 0.5, Unknown)
		}
		if v, ok := Compare(rival(s, flat, rand.New(rand.NewPCG(seed+1, uint64(i)))), s, Lower, o); ok && v.Pairs > 0 {
			c.add("pairs, difference", v.Difference, 0, v.Verdict.Outcome)
			c.add("pairs, probability", v.BetterA, 0.5, Unknown)
		}
	}
	return c
}

// TestIntervalsContainTheTruth is the claim of the package: each interval of 95 % contains the truth in at least 93.5 % of made histories, and at
// most 5 % of verdicts find a difference where there is no effect.
func TestIntervalsContainTheTruth(t *testing.T) {
	seed, n := testseed.Of(t), *histories
	var report strings.Builder
	all := scenarios()
	for _, name := range slices.Sorted(keysOf(all)) {
		c := all[name].simulate(seed, n)
		for _, interval := range slices.Sorted(keysOf(c.covered)) {
			share, wrong := float64(c.covered[interval])/float64(n), float64(c.differs[interval])/float64(n)
			fmt.Fprintf(&report, "%-18s %-28s contains %.3f", name, interval, share)
			if share < 0.935-tolerance(0.95, n) {
				t.Errorf("%s, %s: %.3f of the intervals contain the truth, want 0.935", name, interval, share)
			}
			quiet := all[name].effect == nil || strings.HasPrefix(interval, "halves") || strings.HasPrefix(interval, "pairs")
			if quiet && !strings.Contains(interval, "probability") && interval != "epsilon squared" {
				fmt.Fprintf(&report, "  differs %.3f", wrong)
				if wrong > 0.05+tolerance(0.05, n) {
					t.Errorf("%s, %s: %.3f of the verdicts differ without an effect", name, interval, wrong)
				}
			}
			report.WriteString("\n")
		}
	}
	t.Logf("seed %d, %d histories\n%s", seed, n, report.String())
	record(t, fmt.Sprintf("Intervals, seed %d, %d histories, %d draws", seed, n, drawsOf(n)), report.String())
}

func keysOf[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// results is a file to which the simulations add their tables.
var results = flag.String("results", "", "file to which the simulations add their results")

func record(t *testing.T, title, text string) {
	t.Helper()
	if *results == "" {
		return
	}
	f, err := os.OpenFile(*results, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fmt.Fprintf(f, "%s\n\n%s\n", title, text)
}

// An effect of 20 % in four hours of weekdays is found in two weeks of hourly samples.
func TestBusyHoursAreFoundWithinFourteenDays(t *testing.T) {
	seed, n := testseed.Of(t), min(200, *histories)
	m := generator{days: 14, level: 20, hourSD: 0.05, hourRho: 0.5, daySD: 0.04, dayRho: 0.4, tailed: true, outlier: 0.01, gaps: 0.02, effect: busyHours}
	found, asked := 0, 0
	for i := range n {
		s := m.samples(rand.New(rand.NewPCG(seed, uint64(1e6+i))))
		if v, ok := HoursOfDay(s, Options{Draws: drawsOf(*histories)}); ok && v.Verdict.Outcome == Differs {
			found++
		}
		weekday, _ := byKind(s)
		var busy, rest []Sample
		for _, one := range weekday {
			if one.Hour >= 18 && one.Hour < 22 {
				busy = append(busy, one)
			} else {
				rest = append(rest, one)
			}
		}
		if v, ok := Compare(busy, rest, Lower, Options{}); ok && v.Verdict.Outcome == Differs {
			asked++
		}
	}
	text := fmt.Sprintf("hours of the day differ: %d of %d\nbusy hours against the rest of weekdays differ: %d of %d\n", found, n, asked, n)
	record(t, fmt.Sprintf("Effect of 20 %% in 18 to 22 h of weekdays, 14 days, seed %d", seed), text)
	if least := (0.95 - tolerance(0.97, *histories)) * float64(n); float64(found) < least || float64(asked) < least {
		t.Error(text)
	}
}

// The papers' own measurements: WPI's week of runs every 30 minutes, 360 +- 27 kb/s without an effect of the hour, and Halepovic's two weeks of
// hourly runs of 0.9 +- 0.1 Mb/s; and the same with a fifth less in the evenings of weekdays.
func TestVerdictsAboutThePapersHistories(t *testing.T) {
	seed, n := testseed.Of(t), min(200, *histories)
	evening := generator{days: 14, level: 0.9, hourSD: 0.03, effect: func(h int, k localday.DayType) float64 { return -busyHours(h, k) }}
	var report strings.Builder
	for _, c := range []struct {
		name string
		made generator
		want Outcome
	}{
		{"WPI", generator{days: 7, level: 360, hourSD: 27. / 360, each: 30 * time.Minute}, Equal},
		{"Halepovic", generator{days: 14, level: 0.9, hourSD: 0.1 / 0.9}, Equal},
		{"a fifth less in the evening", evening, Differs},
	} {
		right, strong := 0, 0
		for i := range n {
			s := c.made.samples(rand.New(rand.NewPCG(seed, uint64(2e6+i))))
			v, ok := HoursOfDay(s, Options{Draws: drawsOf(*histories)})
			if ok && v.Verdict.Outcome == c.want {
				right++
			}
			weekday, _ := byKind(s)
			if v, ok := HoursOfDay(weekday, Options{Draws: drawsOf(*histories)}); c.want == Differs && ok && v.Verdict.AtLeast >= 0.15 {
				strong++
			}
		}
		fmt.Fprintf(&report, "%s: %s in %d of %d", c.name, c.want, right, n)
		if c.want == Differs {
			fmt.Fprintf(&report, ", weekdays by at least 15 %% in %d", strong)
		}
		report.WriteString("\n")
		if least := (0.95 - tolerance(0.95, *histories)) * float64(n); float64(right) < least || c.want == Differs && float64(strong) < least {
			t.Errorf("%s: %d of %d verdicts are %s, %d strong", c.name, right, n, c.want, strong)
		}
	}
	record(t, fmt.Sprintf("Histories of the papers, seed %d", seed), report.String())
}

// After Holm's correction at most 5 % of tables of 60 equal cells have a difference.
func TestTablesOfEqualCellsShowNoDifference(t *testing.T) {
	seed, n := testseed.Of(t), *histories
	m := generator{days: 14, level: 20, hourSD: 0.06, hourRho: 0.6, daySD: 0.04, dayRho: 0.4, tailed: true, each: 4 * time.Hour}
	wrong := 0
	for i := range n {
		rng := rand.New(rand.NewPCG(seed, uint64(3e6+i)))
		p := make([]float64, 60)
		for j := range p {
			v, _ := Compare(m.samples(rng), m.samples(rng), Lower, Options{})
			p[j] = v.P
		}
		if slices.Min(Holm(p)) <= 0.05 {
			wrong++
		}
	}
	record(t, fmt.Sprintf("Tables of 60 equal cells, seed %d", seed), fmt.Sprintf("a difference in %d of %d\n", wrong, n))
	if float64(wrong) > (0.05+tolerance(0.05, n))*float64(n) {
		t.Errorf("a difference in %d of %d tables", wrong, n)
	}
}

// The number of days that a verdict needs is right within a factor of 1.5: half of the longer histories have an outcome.
func TestNumberOfDaysIsRightWithinAFactor(t *testing.T) {
	seed, n := testseed.Of(t), max(*histories/10, 30)
	noisy := generator{level: 20, hourSD: 0.15, hourRho: 0.5, daySD: 0.06, dayRho: 0.3}
	var report strings.Builder
	for _, c := range []struct {
		name   string
		days   int
		effect func(int, localday.DayType) float64
		judge  func([]Sample) Verdict
	}{
		{"hours of the day", 10, nil, func(s []Sample) Verdict { v, _ := HoursOfDay(s, Options{Draws: drawsOf(n)}); return v.Verdict }},
		{"halves", 14, nil, func(s []Sample) Verdict { a, b := byHalf(s); v, _ := Compare(a, b, Lower, Options{}); return v.Verdict }},
		{"weekdays", 49, nil, func(s []Sample) Verdict {
			a, b := byKind(s)
			v, _ := Compare(a, b, Lower, Options{Margin: 0.05})
			return v.Verdict
		}},
	} {
		m := noisy
		m.effect = c.effect
		var told []float64
		m.days = c.days
		for i := range n {
			if v := c.judge(m.samples(rand.New(rand.NewPCG(seed, uint64(4e6+i))))); v.Outcome == Unknown {
				told = append(told, float64(c.days+v.MoreDays))
			}
		}
		slices.Sort(told)
		middle := orderstat.Median(told)
		decided := func(days float64) (k int) {
			m.days = int(math.Round(days))
			for i := range n {
				if c.judge(m.samples(rand.New(rand.NewPCG(seed, uint64(5e6+i))))).Outcome != Unknown {
					k++
				}
			}
			return k
		}
		early, late := decided(middle/1.5), decided(1.5*middle)
		fmt.Fprintf(&report, "%s: of %d days %.0f of 100 cannot tell, and need %.0f (quartiles %.0f to %.0f); with a 1.5th of that %.0f of 100 can tell, with 1.5 times %.0f\n", c.name, c.days,
			100*float64(len(told))/float64(n), middle, orderstat.Quantile(told, 0.25), orderstat.Quantile(told, 0.75), 100*float64(early)/float64(n), 100*float64(late)/float64(n))
		slack := 2.5 * math.Sqrt(float64(n)) // 5 deviations of a half
		if n >= 100 {
			slack = 0
		}
		if float64(early) > float64(n)/2+slack || float64(late) < float64(n)/2-slack {
			t.Errorf("%s: %.0f days: %d and %d of %d can tell", c.name, middle, early, late, n)
		}
	}
	t.Log(report.String())
	record(t, fmt.Sprintf("Number of days, seed %d", seed), report.String())
}

// twoLevels is a path that changes between two routes about four times a day, at any hour.
func twoLevels(days int, rng *rand.Rand) []Sample {
	all, longer := make([]Sample, 24*days), rng.IntN(2)
	for h := range all {
		if rng.Float64() < 1./6 {
			longer = 1 - longer
		}
		all[h] = At(monday.Add(time.Duration(h)*time.Hour), 20+8*float64(longer)+0.3*rng.NormFloat64())
	}
	return all
}

// A few days of a path with two levels show no hours: most draws of days have the same medians, and the other ones are no gross values.
func TestTwoLevelsShowNoHoursOfTheDay(t *testing.T) {
	seed, n := testseed.Of(t), *histories
	var report strings.Builder
	for _, days := range []int{4, 5, 7, 10} {
		wrong := 0
		for i := range n {
			s := twoLevels(days, rand.New(rand.NewPCG(seed, uint64(6e6+i))))
			if v, ok := HoursOfDay(s, Options{Draws: drawsOf(n)}); ok && v.Verdict.Outcome == Differs {
				wrong++
			}
		}
		fmt.Fprintf(&report, "%d days: hours of the day differ in %d of %d\n", days, wrong, n)
		if float64(wrong) > (0.05+tolerance(0.05, n))*float64(n) {
			t.Errorf("%d days: the verdict differs in %d of %d histories without an effect", days, wrong, n)
		}
	}
	record(t, fmt.Sprintf("Two levels that change at any hour, seed %d", seed), report.String())
}

// The interval of a trend contains the truth where neighboring days have a correlation of up to 0.8.
func TestTrendOfCorrelatedDays(t *testing.T) {
	seed, n := testseed.Of(t), *histories
	var report strings.Builder
	for _, days := range []int{28, 90, 180} {
		for _, rho := range []float64{0.6, 0.8} {
			m := generator{days: days, level: 20, hourSD: 0.03, hourRho: 0.5, daySD: 0.06, dayRho: rho, each: 4 * time.Hour}
			right := 0
			for i := range n {
				if v, ok := TrendOf(m.samples(rand.New(rand.NewPCG(seed, uint64(7e6+i)))), Options{}); ok && v.Slope.Low <= 0 && v.Slope.High >= 0 {
					right++
				}
			}
			share := float64(right) / float64(n)
			fmt.Fprintf(&report, "%d days, correlation %.1f: contains %.3f\n", days, rho, share)
			if share < 0.935-tolerance(0.95, n) {
				t.Errorf("%d days, correlation %.1f: %.3f of the intervals contain the truth, want 0.935", days, rho, share)
			}
		}
	}
	record(t, fmt.Sprintf("Trend of correlated days, seed %d", seed), report.String())
}
