package historyreport

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

// now is when verdicts are computed.
var now = time.Unix(1779500000, 0)

// lint is an error of what Prometheus' linter finds.
func lint(t *testing.T, text []byte) {
	t.Helper()
	problems, err := promlint.New(strings.NewReader(string(text))).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("%v %v in\n%s", problems, err, text)
	}
}

func TestTrendsAreExposed(t *testing.T) {
	low := -0.5
	h := History{
		Labels: map[string]string{"instance": "seoul:9861", "path": "berlin", "direction": "forward"}, Measure: "delay",
		HoursOfDay:  &HoursOfDay{Largest: Interval{0.25, &low, nil}, Verdict: Verdict{Outcome: "differs"}},
		Comparisons: []Comparison{{about: "weekend", Relative: &Interval{Value: 0}, Verdict: Verdict{Outcome: "equal"}}, {about: "last_week", Verdict: Verdict{Outcome: "unknown", MoreDays: 3}}},
		Trend:       &Trend{Verdict: Verdict{Outcome: "unknown"}},
	}
	text, err := TrendsMetrics([]History{h}, now)
	if err != nil {
		t.Fatal(err)
	}
	lint(t, text)
	const labels = `{agent="seoul:9861",path="berlin",direction="forward",measure="delay",about="`
	for _, want := range []string{
		"oneway_trend_outcome" + labels + `hours"} 1`, "oneway_trend_outcome" + labels + `weekend"} 0`, "oneway_trend_outcome" + labels + `trend"} 2`,
		"oneway_trend_difference_ratio" + labels + `hours"} 0.25`, "oneway_trend_difference_low_ratio" + labels + `hours"} -0.5`,
		"oneway_trend_timestamp_seconds" + labels + `hours"} 1.7795e+09`, "oneway_trend_needed_seconds" + labels + `last_week"} 259200`,
	} {
		if !strings.Contains(string(text), want+"\n") {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	for _, not := range []string{"oneway_trend_difference_high_ratio", `oneway_trend_difference_ratio` + labels + `last_week`} {
		if strings.Contains(string(text), not) {
			t.Errorf("%s in\n%s", not, text)
		}
	}
	// Two codecs are two series; of two histories with the same labels the later one counts.
	other, later := h, h
	other.Labels = map[string]string{"instance": "seoul:9861", "path": "berlin", "direction": "forward", "codec": "G.729"}
	later.Last, later.HoursOfDay = time.Unix(1, 0), &HoursOfDay{Verdict: Verdict{Outcome: "equal"}}
	text, err = TrendsMetrics([]History{h, other, later}, now)
	lint(t, text)
	if n := strings.Count(string(text), `about="hours"}`); err != nil || !strings.Contains(string(text), "oneway_trend_outcome"+labels+`hours"} 0`) || n != 7 {
		t.Errorf("%v, %d series of hours in\n%s", err, n, text)
	}
}

func TestComparisonsAreExposedWithTheLimitsOfTheirVerdict(t *testing.T) {
	m, _ := MeasureByName("loss")
	narrow, wide := -0.1, -0.2
	text, err := CompareMetrics(m, []Comparison{
		{Name: "a against b", share: true, Difference: Interval{0.01, &narrow, nil}, Corrected: &Interval{0.01, &wide, nil}, Verdict: Verdict{Outcome: "differs"}},
		{Name: "a against c", share: true, Difference: Interval{0.02, nil, nil}, Verdict: Verdict{Outcome: "equal"}},
	}, now)
	if err != nil {
		t.Fatal(err)
	}
	lint(t, text)
	for _, want := range []string{
		`oneway_compare_difference_low_ratio{conditions="a against b",measure="loss"} -0.2`, `oneway_compare_difference_ratio{conditions="a against c",measure="loss"} 0.02`,
		`oneway_compare_timestamp_seconds{conditions="a against c",measure="loss"} 1.7795e+09`, `oneway_compare_outcome{conditions="a against c",measure="loss"} 0`,
	} {
		if !strings.Contains(string(text), want+"\n") {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}

// TestEveryPartOfAHistoryHasALabel: the label about tells the series apart.
func TestEveryPartOfAHistoryHasALabel(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range (&Options{End: time.Unix(0, 0), Zone: time.UTC}).splits() {
		if s.about == "" || seen[s.about] {
			t.Errorf("%s has the label %q", s.name, s.about)
		}
		seen[s.about] = true
	}
}
