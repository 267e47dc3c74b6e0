package history

import (
	"maps"
	"math"
	"slices"
)

// Counted is an hour's, or a run's, number of events in a whole, such as lost packets in sent ones.
type Counted struct {
	Sample        // Value and Bound are not used
	Events, Whole float64
	// Undecided may be events or not: packets of the whole without an outcome, for ever.
	Undecided float64
}

// Shares is the share of condition A against the share of condition B, such as loss.
type Shares struct {
	A, B Counts
	// ShareA and ShareB are all events over all wholes, 0..1.
	ShareA, ShareB float64
	// UndecidedA and UndecidedB are how much larger the shares may be, 0..1.
	UndecidedA, UndecidedB float64
	// Difference is A - B.
	Difference Estimate
	// Corrected is Difference with the limits that hold for all Options.Comparisons together: the outcome Differs needs them.
	Corrected Estimate
	P         float64
	// Verdict has an absolute margin, in the unit of shares.
	Verdict Verdict
}

// DefaultShareMargin is the difference of shares that does not matter: 0.1 % of the packets.
const DefaultShareMargin = 0.001

// CompareShares compares shares; false without a whole in either. Days are the blocks: the scores of a ratio of sums (Cochran 1977,
// section 6.3), with the variance of longrun.go. A margin of 0 is DefaultShareMargin.
//
// The limits are of all that the undecided ones may be.
//
// The interval is at least three events wide on each side, the upper limit of 95 % of none (Hanley 1983): without any event there is no
// variance to observe.
func CompareShares(a, b []Counted, margin float64, o Options) (Shares, bool) {
	if margin <= 0 {
		margin = DefaultShareMargin
	}
	sa, za, noiseA, wholeA := scoresOf(a)
	sb, zb, noiseB, wholeB := scoresOf(b)
	if !(wholeA > 0 && wholeB > 0) {
		return Shares{}, false
	}
	s := Shares{A: Count(plain(a)), B: Count(plain(b)), ShareA: sa, ShareB: sb, UndecidedA: undecided(a) / wholeA, UndecidedB: undecided(b) / wholeB}
	all := Count(append(plain(a), plain(b)...)).Days
	for d := range zb {
		zb[d] = -zb[d]
	}
	variance, df := joint(za, zb, noiseA, noiseB)
	t := tested{deviation: math.Sqrt(variance), df: df}
	least := 3 / min(wholeA, wholeB)
	half := max(t.half(1-Level), least)
	strict := max(t.half((1-Level)/o.comparisons()), least)
	d := sa - sb
	s.Difference = Estimate{d, d - half - s.UndecidedB, d + half + s.UndecidedA}
	if s.P = 1; t.deviation > 0 {
		s.P = tail(d/t.deviation, df)
	}
	s.Corrected = Estimate{d, d - strict - s.UndecidedB, d + strict + s.UndecidedA}
	if s.Verdict = judge(s.Difference, s.Corrected, (s.UndecidedA+s.UndecidedB)/2, df, all, o, margin); s.Verdict.Reason == WideBound {
		s.Verdict.Reason = ManyUndecided
	}
	return s, true
}

func undecided(all []Counted) (sum float64) {
	for _, c := range all {
		if usable(c) {
			sum += min(max(c.Undecided, 0), c.Whole-min(c.Events, c.Whole))
		}
	}
	return sum
}

// scoresOf are the share, the scores of each day, and the chance within the days: events come in bursts, and in few of the hours.
func scoresOf(all []Counted) (share float64, z map[int]float64, noise, whole float64) {
	events := 0.0
	for _, c := range all {
		if usable(c) {
			events, whole = events+c.Events, whole+c.Whole
		}
	}
	z = map[int]float64{}
	if !(whole > 0) {
		return 0, z, 0, 0
	}
	share = events / whole
	squares, hours := map[int]float64{}, map[int]float64{}
	for _, c := range all {
		if usable(c) {
			score := (c.Events - share*c.Whole) / whole
			z[c.Day] += score
			squares[c.Day] += score * score
			hours[c.Day]++
		}
	}
	for _, d := range slices.Sorted(maps.Keys(z)) { // the variance of the sum of n hours is n times the variance of one
		if n := hours[d]; n > 1 {
			noise += max(0, squares[d]-z[d]*z[d]/n) * n / (n - 1)
		}
	}
	return share, z, noise, whole
}

func usable(c Counted) bool {
	return c.Whole > 0 && c.Events >= 0 && !math.IsInf(c.Whole, 0) && !math.IsInf(c.Events, 0)
}

func plain(all []Counted) []Sample {
	var some []Sample
	for _, c := range all {
		if usable(c) {
			some = append(some, c.Sample)
		}
	}
	return some
}
