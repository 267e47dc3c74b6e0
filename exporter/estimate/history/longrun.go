package history

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// Variance of a sum over days that are alike from day to day.
//
// A statistic is, to first order, its value plus the sum of scores of its samples (Hampel's influence function). The scores of a day
// are added (a day is a block; the estimator of clustered data). Days are taken for an autoregressive process of first order: the
// variance of their sum is the variance of independent days, times
//
//	1/n sum over all pairs of days of rho^|distance|
//
// where rho is the correlation of neighboring days, corrected for its bias (Kendall 1954: -(1 + 3 rho)/n; with a trend removed
// -(2 + 4 rho)/n). Other shapes of autocorrelation count by the estimator with Bartlett's weights (Newey and West 1987), if
// it is larger.

// dayScores are sums of scores by day, ascending in day; the mean of v is 0.
type dayScores struct {
	day []int
	v   []float64
	// noise is the part of the squares of v that is chance within the days, as far as it is known: it has no correlation between days, and hides the
	// correlation of the rest.
	noise float64
}

// byDay returns the sums of a map.
func byDay(sums map[int]float64, noise float64) dayScores {
	s := dayScores{day: slices.Sorted(maps.Keys(sums)), noise: noise}
	for _, d := range s.day {
		s.v = append(s.v, sums[d])
	}
	return s
}

// even makes the scores of days as wide as if all days had equal parts of the samples: the scores are of the mean of all, so that the one of a day
// with most of them is too small. In the mean of independent days their squares then sum to (n-1)/n of the variance, as with equal parts. Of one day
// alone nothing is known: its score is 0. It reports whether there are more.
func even(scores, parts map[int]float64) bool {
	whole, squares, left := 0.0, 0.0, 0.0
	for _, part := range parts {
		whole += part
	}
	for _, part := range parts {
		squares += part / whole * part / whole
	}
	for _, part := range parts {
		w := part / whole
		left += w * w * (1 - 2*w + squares)
	}
	if n := float64(len(parts)); left > 0 && n > 1 {
		wider := math.Sqrt(squares / left * (n - 1) / n)
		for d := range scores {
			scores[d] *= wider
		}
		return true
	}
	return false
}

// neighbors has the sums of products of days and of neighboring days.
type neighbors struct {
	squares, products float64
	days, pairs       int
}

func (m *neighbors) add(s dayScores) {
	for i, v := range s.v {
		m.squares += v * v
		m.days++
		if i > 0 && s.day[i]-s.day[i-1] == 1 {
			m.products += v * s.v[i-1]
			m.pairs++
		}
	}
}

// mostCorrelated is the largest correlation of neighboring days that is told from a trend.
const mostCorrelated = 0.95

// expected is the correlation of neighboring days that is assumed before there is data, and its weight in pairs of days: a few days know their
// correlation badly, and one that is estimated too low makes intervals too narrow.
const expected, expectedPairs = 0.4, 12.0

// rho is the correlation of neighboring days of so many series, from each of them so many parameters were removed (mean, trend); 0 and
// above.
func (m *neighbors) rho(series, parameters int) float64 {
	if m.pairs == 0 || m.squares == 0 {
		return expected
	}
	r := (m.observed(series, parameters)*float64(m.pairs) + expected*expectedPairs) / (float64(m.pairs) + expectedPairs)
	return min(max(r, 0), mostCorrelated)
}

// observed is rho by the days alone, without its bias; there are pairs.
func (m *neighbors) observed(series, parameters int) float64 {
	r := m.products / float64(m.pairs) / (m.squares / float64(m.days))
	p := float64(parameters)
	return r + (p+(2+p)*max(r, 0))*float64(series)/float64(m.days)
}

// caution is the number of standard deviations that are added to the correlation of the days of one series, as far as it comes from data: an
// interval loses more by a correlation that is estimated too low than by one that is too high. A slope has twice as many: its variance
// has the correlation of all days between the first one and the last one.
const caution, slopeCaution = 0.5, 1.0

// cautious is rho of one series, with caution.
func (m *neighbors) cautious() float64 { return m.careful(m.rho(1, 1), caution) }

// cautiousOfSlope is the same of a series without its slope. What is expected does not make it less than the days show.
func (m *neighbors) cautiousOfSlope() float64 {
	rho := m.rho(1, 2)
	if m.pairs > 0 && m.squares > 0 {
		rho = min(max(rho, m.observed(1, 2)), mostCorrelated)
	}
	return m.careful(rho, slopeCaution)
}

func (m *neighbors) careful(rho, deviations float64) float64 {
	pairs := float64(max(1, m.pairs))
	return min(mostCorrelated, rho+deviations*pairs/(pairs+expectedPairs)*math.Sqrt((1-rho*rho)/pairs))
}

// inflation is the factor by which correlation between days increases the variance of the weighted sum; at least 1.
func inflation(day []int, weight func(i int) float64, rho float64) float64 {
	if rho == 0 {
		return 1
	}
	sum, squares, carried := 0.0, 0.0, 0.0
	for i := range day {
		w := weight(i)
		if i > 0 {
			carried *= math.Pow(rho, float64(day[i]-day[i-1]))
		}
		sum += w*w + 2*w*carried
		squares += w * w
		carried += w
	}
	if squares == 0 {
		return 1
	}
	return max(1, sum/squares)
}

func evenly(int) float64 { return 1 }

// longRun is the variance of the sum of scores whose mean was removed, and the degrees of freedom of that variance.
func longRun(s dayScores) (variance, df float64) {
	var m neighbors
	m.add(s)
	if m.days < 2 {
		return math.Inf(1), 1
	}
	n := float64(m.days)
	factor := max(inflation(s.day, evenly, m.cautious()), bartlett(s))
	if noise := min(s.noise, m.squares); noise > 0 {
		without := m
		without.squares -= noise
		factor = max(factor, (noise+without.squares*inflation(s.day, evenly, without.cautious()))/m.squares)
	}
	factor = min(factor, n/2)
	return m.squares * n / (n - factor) * factor, max(1, n/factor-1)
}

// fewestBartlett is the number of days from which Bartlett's estimator is not mostly chance.
const fewestBartlett = 30

// bartlett is the factor of Newey and West, with the lag of Andrews' rule of thumb; at least 1.
func bartlett(s dayScores) float64 {
	n := len(s.day)
	lags := int(math.Ceil(1.3 * math.Cbrt(float64(n))))
	squares := 0.0
	for _, v := range s.v {
		squares += v * v
	}
	if squares == 0 || n < fewestBartlett {
		return 1
	}
	sum := squares
	for i := range s.day {
		for j := i + 1; j < n; j++ {
			lag := s.day[j] - s.day[i]
			if lag > lags {
				break
			}
			sum += 2 * (1 - float64(lag)/float64(lags+1)) * s.v[i] * s.v[j]
		}
	}
	return max(1, sum/squares)
}

// sortByTime sorts samples.
func sortByTime(samples []Sample) {
	if !slices.IsSortedFunc(samples, earlier) {
		slices.SortStableFunc(samples, earlier)
	}
}

func earlier(a, b Sample) int { return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Day, b.Day)) }
