package history

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Outcome is a verdict's.
type Outcome string

// The outcomes.
const (
	// Differs: the whole interval is on one side of zero, and not within the margin.
	Differs Outcome = "differs"
	// Equal: the whole interval is within the margin.
	Equal Outcome = "equal"
	// Unknown: the samples do not show which.
	Unknown Outcome = "unknown"
)

// Reason is why the outcome is Unknown.
type Reason string

// The reasons.
const (
	// FewDays: more days make the interval narrower.
	FewDays Reason = "too few days"
	// WideBound: the error bound of the samples alone is wider than the margin, or the difference is within it. No number of days helps.
	WideBound Reason = "the error bound of the values is too wide"
	// ManyUndecided: the same of packets without an outcome. No number of days helps.
	ManyUndecided Reason = "too many packets have no outcome"
	// ManyWithheld: hours whose value has no upper limit, the worst ones perhaps, are left out. No number of days helps.
	ManyWithheld Reason = "too many hours have no upper limit of the value"
	// NoRelative: the median is not above zero, so that nothing is relative to it.
	NoRelative Reason = "the median is not above zero"
	// Tied: more than half of the values are equal, so that medians show nothing.
	Tied Reason = "more than half of the values are equal"
)

// Verdict is what an interval of a relative difference shows.
type Verdict struct {
	Outcome Outcome
	// AtLeast is the smallest difference of Differs, of either sign: a ratio above 0. It is 0 where the difference has a sign, but no limit.
	AtLeast float64
	// Within is the margin of Equal.
	Within float64
	// Hours is the length of the parts of the day for which Equal holds: 1 is single hours. Of TimeOfDay only.
	Hours int
	// MoreDays is the number of days after which half of such histories have an outcome, at the same number of samples a day; 0 without
	// Unknown, or where no number helps. MostDays: as many, or more.
	MoreDays int
	Reason   Reason
}

// judge returns the verdict of a relative difference with its interval, which includes the error bounds; strict are the limits for Differs, which
// hold for so many comparisons.
// The part of the half-widths that comes from the bounds does not shrink with days; the other one has so many degrees of freedom.
func judge(e Estimate, strict Estimate, bound, df float64, days int, o Options, margin float64) Verdict {
	switch {
	case e.Low >= -margin && e.High <= margin:
		return Verdict{Outcome: Equal, Within: margin}
	case strict.Low > 0:
		return Verdict{Outcome: Differs, AtLeast: strict.Low}
	case strict.High < 0:
		return Verdict{Outcome: Differs, AtLeast: -strict.High}
	case bound >= margin && bound >= math.Abs(e.Value):
		return Verdict{Outcome: Unknown, Reason: WideBound}
	}
	v := Verdict{Outcome: Unknown, Reason: FewDays}
	half := (e.High-e.Low)/2 - bound
	if math.IsInf(half, 0) || math.IsNaN(half) {
		half = 2 * margin // of so few samples that they have no interval
	}
	half /= student(0.975, df) / z975
	v.MoreDays = moreDays(days, func(f float64) float64 {
		later := half / z975 / math.Sqrt(f)
		return decided(e.Value, half/z975, later*student(0.975, df*f), later*student(1-0.025/o.comparisons(), df*f), f, bound, margin)
	})
	return v
}

// decided is the probability that a history of f times the days has an outcome, if the true difference is the estimated one, shrunk towards
// 0 by its own variance (James and Stein 1961): most of a small difference is chance. Its deviation is known, and the half-widths of the later
// interval, and of the later limits for Differs.
func decided(value, deviation, later, strict, f, bound, margin float64) float64 {
	truth := 0.0
	if math.Abs(value) > deviation {
		truth = value * (1 - deviation*deviation/(value*value))
	}
	spread := deviation / math.Sqrt(f)
	inside := margin - later - bound // Equal: the estimate is within these
	outside := strict + bound        // Differs: it is beyond these
	if inside > outside {
		return 1
	}
	p := normal((-outside-truth)/spread) + 1 - normal((outside-truth)/spread)
	if inside > 0 {
		p += normal((inside-truth)/spread) - normal((-inside-truth)/spread)
	}
	return p
}

// MostDays limits the search for the number of days: ten years.
const MostDays = 3650

// moreDays is the smallest number of additional days that make the probability at least one half; at least 1.
func moreDays(days int, probability func(f float64) float64) int {
	if days < 1 {
		days = 1
	}
	low, high := 0, 1
	for probability(float64(days+high)/float64(days)) < 0.5 {
		if high == MostDays {
			return MostDays
		}
		low, high = high, min(2*high, MostDays)
	}
	for high-low > 1 {
		if middle := (low + high) / 2; probability(float64(days+middle)/float64(days)) < 0.5 {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// z975 is the normal quantile of a two-sided interval of 95 %.
const z975 = 1.959963984540054

func normal(z float64) float64 { return distuv.UnitNormal.CDF(z) }

// student is the quantile p of Student's t with so many degrees of freedom, at least 1.
func student(p, df float64) float64 {
	return distuv.StudentsT{Sigma: 1, Nu: max(1, df)}.Quantile(p)
}

// tail is the two-sided probability of a value of Student's t.
func tail(t, df float64) float64 {
	return 2 * distuv.StudentsT{Sigma: 1, Nu: max(1, df)}.CDF(-math.Abs(t))
}
