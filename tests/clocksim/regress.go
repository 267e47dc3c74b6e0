package clocksim

import "math"

// line is a weighted least-squares fit of y over x.
type line struct {
	intercept, slope     float64
	interceptSD, slopeSD float64
	variance             float64 // of the samples, without the weights
}

// fit fits a line; weights are variances: a larger one reduces a sample's influence. It needs at least three samples at
// different x.
func fit(x, y, weights []float64) line {
	var sumW, sumX, sumY float64
	for i := range x {
		sumW += 1 / weights[i]
		sumX += x[i] / weights[i]
		sumY += y[i] / weights[i]
	}
	mean := sumX / sumW
	var xx, xy float64
	for i := range x {
		d := x[i] - mean
		xx += d * d / weights[i]
		xy += d * y[i] / weights[i]
	}
	l := line{slope: xy / xx}
	l.intercept = sumY/sumW - l.slope*mean
	var square float64
	for i := range x {
		r := l.residual(x[i], y[i])
		square += r * r / weights[i]
	}
	n := float64(len(x))
	square /= n - 2
	l.slopeSD = math.Sqrt(square / xx)
	l.interceptSD = math.Hypot(math.Sqrt(square/sumW), mean*l.slopeSD)
	l.variance = square * n / sumW
	return l
}

func (l line) residual(x, y float64) float64 { return y - l.intercept - l.slope*x }

// runs counts the runs of equal sign.
func runs(residuals []float64) int {
	n := 1
	for i := 1; i < len(residuals); i++ {
		if residuals[i]*residuals[i-1] <= 0 {
			n++
		}
	}
	return n
}

// criticalRuns is the number of runs that n independent residuals exceed in 95 of 100 cases (Wald and Wolfowitz 1940,
// in the normal approximation); up to 7 are never rejected.
func criticalRuns(n int) int {
	if n < 8 {
		return 0
	}
	changes := float64(n - 1)
	return 1 + int(math.Round(changes/2-1.65*math.Sqrt(changes)/2))
}

// student is the 99.95 % quantile of Student's distribution.
func student(freedom int) float64 {
	table := [...]float64{636.6, 31.6, 12.92, 8.61, 6.869, 5.959, 5.408, 5.041, 4.781, 4.587}
	if freedom <= len(table) {
		return table[max(1, freedom)-1]
	}
	// Abramowitz and Stegun 26.7.5, with the normal quantile.
	const z = 3.2905
	z2, v := z*z, float64(freedom)
	return z * (1 + (z2+1)/(4*v) + (5*z2*z2+16*z2+3)/(96*v*v) +
		(3*z2*z2*z2+19*z2*z2+17*z2-15)/(384*v*v*v))
}

// chiSquare is the 90 % quantile of the chi-square distribution (Wilson and
// Hilferty 1931).
func chiSquare(freedom int) float64 {
	k := float64(freedom)
	root := 1 - 2/(9*k) + 1.2816*math.Sqrt(2/(9*k))
	return k * root * root * root
}
