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
// The limits are of all that the undecided ones may be: each one has the variance of the days in which these are, or are not, events.
//
// The interval is at least three events wide on each side, the upper limit of 95 % of none (Hanley 1983): without any event there is no
// variance to observe.
func CompareShares(a, b []Counted, margin float64, o Options) (Shares, bool) {
	if margin <= 0 {
		margin = DefaultShareMargin
	}
	s := Shares{A: Count(plain(a)), B: Count(plain(b)), UndecidedA: undecided(a), UndecidedB: undecided(b)}
	low, least, ok := differenceOf(a, lost(b))
	high, _, _ := differenceOf(lost(a), b)
	if !ok {
		return Shares{}, false
	}
	s.ShareA, s.ShareB = shareOf(a), shareOf(b)
	all := Count(append(plain(a), plain(b)...)).Days
	limits := func(alpha float64) Estimate {
		return Estimate{s.ShareA - s.ShareB, low.share - max(low.half(alpha), least), high.share + max(high.half(alpha), least)}
	}
	s.Difference, s.Corrected = limits(1-Level), limits((1-Level)/o.comparisons())
	if s.P = 1; low.share > 0 || high.share < 0 || low.share == high.share {
		s.P = max(low.chance(), high.chance())
	}
	if s.Verdict = judge(s.Difference, s.Corrected, (s.UndecidedA+s.UndecidedB)/2, min(low.df, high.df), all, o, margin); s.Verdict.Reason == WideBound {
		s.Verdict.Reason = ManyUndecided
	}
	return s, true
}

// differenceOf is the share of a less the share of b, with the variance of all their days, and three events of the smaller whole; false
// without a whole in either.
func differenceOf(a, b []Counted) (difference tested, least float64, ok bool) {
	sa, za, wholeA := scoresOf(a)
	sb, zb, wholeB := scoresOf(b)
	if !(wholeA > 0 && wholeB > 0) {
		return tested{}, 0, false
	}
	for d := range zb.scores {
		zb.scores[d] = -zb.scores[d]
	}
	variance, df := joint(za, zb)
	return tested{share: sa - sb, deviation: math.Sqrt(variance), df: df}, 3 / min(wholeA, wholeB), true
}

// chance is the probability of a difference as large, of either sign, if there is none.
func (t tested) chance() float64 {
	if t.deviation == 0 {
		return 1
	}
	return tail(t.share/t.deviation, t.df)
}

// lost counts the undecided ones as events. They come in as few days as these.
func lost(all []Counted) []Counted {
	all = slices.Clone(all)
	for i := range all {
		c := &all[i]
		c.Events += c.open()
	}
	return all
}

// open is how many of the whole may be events besides those that are.
func (c *Counted) open() float64 { return min(max(c.Undecided, 0), c.Whole-min(c.Events, c.Whole)) }

// undecided is by how much the share may be larger.
func undecided(all []Counted) float64 { return shareOf(lost(all)) - shareOf(all) }

// shareOf is all events over all wholes; 0 without a whole.
func shareOf(all []Counted) float64 {
	events, whole := sums(all)
	if !(whole > 0) {
		return 0
	}
	return events / whole
}

func sums(all []Counted) (events, whole float64) {
	for _, c := range all {
		if usable(c) {
			events, whole = events+c.Events, whole+c.Whole
		}
	}
	return events, whole
}

// scoresOf are the share, and the scores of each day with the chance within the days: events come in bursts, and in few of the hours.
func scoresOf(all []Counted) (share float64, z *blocks, whole float64) {
	share, z = shareOf(all), newBlocks()
	if _, whole = sums(all); !(whole > 0) {
		return 0, z, 0
	}
	squares, hours := map[int]float64{}, map[int]float64{}
	for _, c := range all {
		if usable(c) {
			score := (c.Events - share*c.Whole) / whole
			z.add(c.Day, score, c.Whole)
			squares[c.Day] += score * score
			hours[c.Day]++
		}
	}
	for _, d := range slices.Sorted(maps.Keys(z.scores)) { // the variance of the sum of n hours is n times the variance of one
		if n := hours[d]; n > 1 {
			z.noise += max(0, squares[d]-z.scores[d]*z.scores[d]/n) * n / (n - 1)
		}
	}
	return share, z, whole
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
