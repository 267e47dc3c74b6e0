package historyreport

import (
	"fmt"
	"slices"
	"time"

	"oneway.example/exporter/core/localday"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/estimate/history"
	"oneway.example/exporter/estimate/orderstat"
)

// Options are the settings of an analysis.
type Options struct {
	history.Options
	// Loss is the difference of loss that does not matter; 0: history.DefaultShareMargin.
	Loss float64
	// Busy are the local hours of weekdays that Analyze compares with the other hours: the first one, and the one after the last. Both 0: it
	// does not compare them.
	Busy [2]int
	// End is the end of this week.
	End time.Time
	// Zone is of times in the text.
	Zone *time.Location
}

func (o *Options) busy(hour int) bool {
	first, next := o.Busy[0], o.Busy[1]
	if first <= next {
		return hour >= first && hour < next
	}
	return hour >= first || hour < next // past midnight
}

// split names two parts of a history, in the text and as metric.AboutL, and tells the part of a sample: 1, 2, or 0 for neither.
type split struct {
	about, name string
	part        func(s history.Sample) int
}

// splits are the parts of a history that are compared.
func (o *Options) splits() []split {
	day := history.DayOf(o.End.In(o.Zone))
	either := func(first bool) int {
		if first {
			return 1
		}
		return 2
	}
	return []split{
		{"weekend", "weekdays against weekends and holidays", func(s history.Sample) int { return either(s.Kind == localday.Weekday) }},
		{"last_week", "last 7 days against the 7 days before", func(s history.Sample) int {
			switch {
			case s.Day >= day-7 && s.Day < day:
				return 1
			case s.Day >= day-14 && s.Day < day-7:
				return 2
			}
			return 0
		}},
		{"busy_hours", fmt.Sprintf("busy hours (%d..%d h) of weekdays against their other hours", o.Busy[0], o.Busy[1]), func(s history.Sample) int {
			if s.Kind != localday.Weekday {
				return 0
			}
			return either(o.busy(s.Hour))
		}},
	}
}

// divide are the two parts of samples.
func divide[T any](all []T, sample func(T) history.Sample, s split) (a, b []T) {
	for _, one := range all {
		switch s.part(sample(one)) {
		case 1:
			a = append(a, one)
		case 2:
			b = append(b, one)
		}
	}
	return a, b
}

// Analyze says what a history shows.
func Analyze(s Series, m Measure, o Options) History {
	h := History{Labels: s.Labels, Measure: m.Name, Unit: unitName(m.Unit), Comparisons: []Comparison{}, Changes: []Change{}, Months: s.Months}
	if len(s.Counted) > 0 {
		h.counted(s.Counted, m, o)
		return h
	}
	h.describe(s.Samples)
	if t, ok := history.HoursOfDay(s.Samples, o.Options); ok {
		t.Verdict = withhold(t.Verdict, len(s.Samples), len(s.Withheld))
		h.HoursOfDay = hoursOfDay(t)
	}
	for _, one := range o.splits() {
		same := func(x history.Sample) history.Sample { return x }
		a, b := divide(s.Samples, same, one)
		withheldA, withheldB := divide(s.Withheld, same, one)
		if c, ok := history.Compare(a, b, m.Better, o.Options); ok {
			c.Verdict = withhold(withhold(c.Verdict, len(a), len(withheldA)), len(b), len(withheldB))
			h.compared(one, comparisonOf(one.name, m, c, 1))
		}
	}
	if t, ok := history.TrendOf(s.Samples, o.Options); ok {
		t.Verdict = withhold(t.Verdict, len(s.Samples), len(s.Withheld))
		h.Trend = trendOf(t, m)
	}
	for _, c := range history.Changes(s.Samples) {
		h.Changes = append(h.Changes, changeOf(c, m, o.Zone))
	}
	return h
}

// fewWithheld is the share of hours without an upper limit up to which the others have a verdict: they move a rank by as much.
const fewWithheld = 0.05

// withhold is the verdict of samples beside hours that are left out since their value has no upper limit: those may be the worst.
func withhold(v history.Verdict, samples, withheld int) history.Verdict {
	if float64(withheld) <= fewWithheld*float64(samples+withheld) {
		return v
	}
	return history.Verdict{Outcome: history.Unknown, Reason: history.ManyWithheld}
}

func (h *History) compared(of split, c Comparison) {
	c.about = of.about
	h.Comparisons = append(h.Comparisons, c)
}

func unitName(u unit.Unit) string {
	if u == unit.Count {
		return "number"
	}
	return string(u)
}

// describe fills counts and medians.
func (h *History) describe(samples []history.Sample) {
	values, bounds := make([]float64, len(samples)), make([]float64, len(samples))
	for i, s := range samples {
		values[i], bounds[i] = s.Value, s.Bound
	}
	slices.Sort(values)
	slices.Sort(bounds)
	h.Median, h.Bound = orderstat.Median(values), orderstat.Median(bounds)
	h.Counts, h.First, h.Last = countsOf(history.Count(samples)), samples[0].Time, samples[0].Time
	for _, s := range samples {
		if s.Time.Before(h.First) {
			h.First = s.Time
		}
		if s.Time.After(h.Last) {
			h.Last = s.Time
		}
	}
	h.First, h.Last = h.First.UTC(), h.Last.UTC()
}

// counted fills the result of a share: comparisons only, since hours have few events.
func (h *History) counted(all []history.Counted, m Measure, o Options) {
	samples := make([]history.Sample, len(all))
	events, whole, undecided := 0.0, 0.0, 0.0
	for i, c := range all {
		samples[i] = c.Sample
		events, whole, undecided = events+c.Events, whole+c.Whole, undecided+c.Undecided
	}
	h.describe(samples)
	if h.Median = 0; whole > 0 {
		h.Median, h.Undecided = events/whole, undecided/whole
	}
	for _, one := range o.splits() {
		a, b := divide(all, func(c history.Counted) history.Sample { return c.Sample }, one)
		if c, ok := history.CompareShares(a, b, o.Loss, o.Options); ok {
			h.compared(one, sharesOf(one.name, m, c, 1))
		}
	}
}

func hoursOfDay(t history.TimeOfDay) *HoursOfDay {
	d := HoursOfDay{Epsilon: intervalOf(t.Epsilon), Largest: intervalOf(t.Largest), Observed: t.Observed, Lowest: t.Lowest, Highest: t.Highest, Verdict: verdictOf(t.Verdict)}
	d.Text = fmt.Sprintf("time of day: explains %s, largest difference between hours %s: %s", ratioText(t.Epsilon), ratioText(t.Largest), d.Verdict.Text)
	if t.Verdict.Outcome == history.Differs {
		d.Text += fmt.Sprintf(", lowest at %d h, highest at %d h", t.Lowest, t.Highest)
	}
	return &d
}

func comparisonOf(name string, m Measure, c history.Comparison, comparisons int) Comparison {
	better := intervalOf(c.BetterA)
	d := Comparison{
		Name: name, A: countsOf(c.A), B: countsOf(c.B), MedianA: c.MedianA, MedianB: c.MedianB,
		Difference: intervalOf(c.Difference), BetterA: &better, Pairs: c.Pairs, P: c.P, Verdict: verdictOf(c.Verdict),
	}
	relative := ""
	if c.RelativeKnown {
		r := intervalOf(c.Relative)
		d.Relative, relative = &r, ", "+ratioText(c.Relative)+d.correct(c.Corrected, comparisons)
	}
	d.Text = fmt.Sprintf("%s: %s and %s, difference %s%s: %s", name, m.Unit.Format(c.MedianA), m.Unit.Format(c.MedianB), valueText(m.Unit, c.Difference), relative, d.Verdict.Text)
	return d
}

// shareText is a share, with the largest that it may be where that is another number.
func shareText(m Measure, share, undecided float64) string {
	least, most := m.Unit.Format(share), m.Unit.Format(share+undecided)
	if least == most {
		return least
	}
	return least + " to " + most
}

func sharesOf(name string, m Measure, c history.Shares, comparisons int) Comparison {
	d := Comparison{
		Name: name, A: countsOf(c.A), B: countsOf(c.B), MedianA: c.ShareA, MedianB: c.ShareB, UndecidedA: c.UndecidedA, UndecidedB: c.UndecidedB,
		Difference: intervalOf(c.Difference), P: c.P, Verdict: verdictOf(c.Verdict), share: true,
	}
	d.Text = fmt.Sprintf("%s: %s and %s, difference %s: %s", name, shareText(m, c.ShareA, c.UndecidedA), shareText(m, c.ShareB, c.UndecidedB), ratioText(c.Difference)+d.correct(c.Corrected, comparisons), d.Verdict.Text)
	return d
}

// correct adds the interval that holds for all comparisons together, where there are several, and returns its words.
func (d *Comparison) correct(e history.Estimate, comparisons int) string {
	if comparisons < 2 {
		return ""
	}
	corrected := intervalOf(e)
	d.Corrected = &corrected
	return fmt.Sprintf(", for all %d comparisons together %s..%s %%", comparisons, percent(e.Low), percent(e.High))
}

func trendOf(t history.Trend, m Measure) *Trend {
	d := Trend{Slope: intervalOf(t.Slope), Total: intervalOf(t.Total), Verdict: verdictOf(t.Verdict)}
	d.Text = fmt.Sprintf("trend: %s a month, %s in %s: %s", valueText(m.Unit, t.Slope), ratioText(t.Total), unit.Counted(t.Span, "day", "days"), d.Verdict.Text)
	return &d
}

func changeOf(c history.Change, m Measure, zone *time.Location) Change {
	d := Change{Time: c.Time.UTC(), Before: c.Before, After: c.After, WithinBound: c.WithinBound}
	d.Text = fmt.Sprintf("changed at %s: from %s to %s", c.Time.In(zone).Format(clockTime), m.Unit.Format(c.Before), m.Unit.Format(c.After))
	if r, ok := c.Relative(); ok {
		d.Text += fmt.Sprintf(" (%s %%)", percent(r))
	}
	if c.WithinBound {
		d.Text += ", which the error bounds of the clocks can explain"
	}
	return d
}

// Lines are the sentences of a history, the first one with its name and counts.
func (h *History) Lines(name string, m Measure) (lines []string) {
	level := m.Unit.Format(h.Median)
	if h.Bound > 0 {
		level = m.Unit.FormatBound(h.Median, h.Bound)
	}
	what := "median " + level
	if m.Share() {
		what = shareText(m, h.Median, h.Undecided) + " of all packets"
	}
	lines = append(lines, fmt.Sprintf("%s, %s: %s, n = %d on %s, %s", name, m.Words, what, h.Samples, unit.Counted(h.Days, "day", "days"), unit.Counted(h.MissingHours, "missing hour", "missing hours")))
	if h.HoursOfDay != nil {
		lines = append(lines, h.HoursOfDay.Text)
	} else if !m.Share() {
		lines = append(lines, "time of day: cannot tell: fewer than two hours have samples of four days")
	}
	for _, c := range h.Comparisons {
		lines = append(lines, c.Text)
	}
	if h.Trend != nil {
		lines = append(lines, h.Trend.Text)
	}
	for _, c := range h.Changes {
		lines = append(lines, c.Text)
	}
	if h.Trend != nil && len(h.Changes) == 0 {
		lines = append(lines, "no change of the level is shown")
	}
	return append(lines, h.monthLines(m)...)
}
