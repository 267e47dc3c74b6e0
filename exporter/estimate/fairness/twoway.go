package fairness

import (
	"math"
	"time"
)

// Phases are the mean rates of a flow before, while and after one of the other direction sent (Halepovic 2008
// figure 17 and table 3). A phase without a whole second is nil.
type Phases struct{ Before, During, After *float64 }

// Around computes the phases from the rates of each second, where the other flow sent from begin to end. The first part of
// either flow is omitted, and seconds with a border in them do not count.
func Around(perSecond []float64, begin, end, omit time.Duration) Phases {
	mean := func(from, until time.Duration) *float64 {
		s := Within(perSecond, from, until)
		if len(s) == 0 {
			return nil
		}
		sum := 0.0
		for _, r := range s {
			sum += r
		}
		return new(sum / float64(len(s)))
	}
	const never = math.MaxInt64
	return Phases{mean(omit, begin), mean(begin+omit, end), mean(max(end, omit), never)}
}

// Within returns the rates of those seconds that lie within a time.
func Within(perSecond []float64, from, until time.Duration) []float64 {
	first, end := math.Ceil(max(0, from.Seconds())), math.Floor(until.Seconds())
	if end = min(end, float64(len(perSecond))); first >= end {
		return nil
	}
	return perSecond[int(first):int(end)]
}

// Correlation is Pearson's coefficient of two series, with a confidence interval of 95 %.
type Correlation struct{ Value, Lower, Upper float64 }

// normal975 is the 0.975 quantile of the normal distribution.
const normal975 = 1.959964

// Correlate computes the correlation of the rates of two flows in the same seconds (Halepovic 2008 section 5.3: -0.71).
// The interval is Fisher's, with the number of independent pairs that the series are worth, as a rate resembles that of
// the second before (Bartlett 1935). It needs more than three such pairs, and series that vary.
func Correlate(x, y []float64) (c Correlation, ok bool) {
	n := min(len(x), len(y))
	x, y = x[:n], y[:n]
	if n < 4 {
		return c, false
	}
	r := pearson(x, y)
	// Nearly equal series have z near infinity.
	if math.IsNaN(r) || math.Abs(r) > 1-1e-12 {
		return c, false
	}
	pairs := float64(n)
	if both := pearson(x[1:], x[:n-1]) * pearson(y[1:], y[:n-1]); both > 0 {
		pairs *= (1 - both) / (1 + both)
	}
	if !(pairs > 3.5) {
		return c, false
	}
	z, half := math.Atanh(r), normal975/math.Sqrt(pairs-3)
	return Correlation{r, math.Tanh(z - half), math.Tanh(z + half)}, true
}

// pearson is the coefficient, NaN for series that do not vary.
func pearson(x, y []float64) float64 {
	var mx, my, xx, yy, xy float64
	for i := range x {
		mx, my = mx+x[i]/float64(len(x)), my+y[i]/float64(len(x))
	}
	for i := range x {
		a, b := x[i]-mx, y[i]-my
		xx, yy, xy = xx+a*a, yy+b*b, xy+a*b
	}
	return max(-1, min(1, xy/math.Sqrt(xx)/math.Sqrt(yy)))
}
