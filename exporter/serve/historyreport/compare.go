package historyreport

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/estimate/history"
)

// Side is a condition: its name, and what it has.
type Side struct {
	Name    string
	Samples []history.Sample
	Counted []history.Counted
	// Withheld is the number of hours whose value has no upper limit.
	Withheld int
}

// SideOf has the samples of all series. Several paths in one hour are samples of one condition: the interval is about these paths.
func SideOf(name string, all []Series) Side {
	s := Side{Name: name}
	for _, one := range all {
		s.Samples, s.Counted, s.Withheld = append(s.Samples, one.Samples...), append(s.Counted, one.Counted...), s.Withheld+len(one.Withheld)
	}
	return s
}

// Compare compares pairs of conditions, with Holm's correction for all of them: the outcome differs needs it, and its smallest difference
// holds for all together (Bonferroni). A pair without a sample is left out.
func Compare(pairs [][2]Side, m Measure, o Options) []Comparison {
	o.Comparisons = len(pairs)
	all, p := []Comparison{}, []float64{}
	for _, pair := range pairs {
		name := pair[0].Name + " against " + pair[1].Name
		if m.Share() {
			if c, ok := history.CompareShares(pair[0].Counted, pair[1].Counted, o.Loss, o.Options); ok {
				all, p = append(all, sharesOf(name, m, c, len(pairs))), append(p, c.P)
			}
			continue
		}
		if c, ok := history.Compare(pair[0].Samples, pair[1].Samples, m.Better, o.Options); ok {
			c.Verdict = withhold(withhold(c.Verdict, len(pair[0].Samples), pair[0].Withheld), len(pair[1].Samples), pair[1].Withheld)
			d := comparisonOf(name, m, c, len(pairs))
			d.Text += fmt.Sprintf("; A is better %s, n = %d and %d on %d and %d days", betterText(c.BetterA), c.A.Samples, c.B.Samples, c.A.Days, c.B.Days)
			if c.Pairs > 0 {
				d.Text += fmt.Sprintf(", %d pairs of the same hour", c.Pairs)
			}
			all, p = append(all, d), append(p, c.P)
		}
	}
	if len(pairs) > 1 {
		for i, v := range history.Holm(p) {
			all[i].Adjusted = &v
		}
	}
	return all
}

// betterText says how often A is better. Where all samples agree, the interval is unknown: its limits are 0 and 1.
func betterText(e history.Estimate) string {
	switch e.Value {
	case 0:
		return "in no sample"
	case 1:
		return "in all samples"
	}
	return "with a probability of " + ratioText(e)
}

// ByLabel pairs each value of a label with each other one.
func ByLabel(all []Series, label string) (pairs [][2]Side) {
	by := map[string][]Series{}
	for _, s := range all {
		if v := s.Labels[label]; v != "" {
			by[v] = append(by[v], s)
		}
	}
	values := slices.Sorted(maps.Keys(by))
	for i, a := range values {
		for _, b := range values[i+1:] {
			pairs = append(pairs, [2]Side{SideOf(label+"="+a, by[a]), SideOf(label+"="+b, by[b])})
		}
	}
	return pairs
}

// NoPairs is why ByLabel has no pair: the labels that have two values or more.
func NoPairs(all []Series, label string) error {
	values := map[string]map[string]bool{}
	for _, s := range all {
		for name, v := range s.Labels {
			if values[name] == nil {
				values[name] = map[string]bool{}
			}
			values[name][v] = true
		}
	}
	var several []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if len(values[name]) > 1 && name != metric.Direction {
			several = append(several, name)
		}
	}
	switch {
	case len(values[label]) == 1:
		return notFound("historyreport: all histories have the same value of the label %q; %s", label, severalText(several))
	case len(values[label]) > 1: // of no direction both
		return notFound("historyreport: no two histories of one direction have different values of the label %q; %s", label, severalText(several))
	}
	return notFound("historyreport: no history has the label %q; %s", label, severalText(several))
}

func severalText(names []string) string {
	if len(names) == 0 {
		return "no label has several values"
	}
	return "labels with several values are " + strings.Join(names, ", ")
}
