package vmlab

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"oneway.example/tests/flaky"
	"oneway.example/tests/vmlab/alerting"
)

func TestScenarioWithFaultsRunsOnceMore(t *testing.T) {
	result := func(name string, faults ...string) *Result {
		return &Result{Scenario: Scenario{Name: name, Alert: "Alert"}, Judgment: &Judgment{}, Faults: faults}
	}
	for name, c := range map[string]struct {
		first []*Result
		again map[string][]string // the faults of the second run
		flaky []string
		want  error
	}{
		"no fault":             {[]*Result{result("a"), result("b")}, nil, nil, nil},
		"a fault by chance":    {[]*Result{result("a", "late"), result("b")}, map[string][]string{"a": nil}, []string{"a"}, nil},
		"a fault that remains": {[]*Result{result("a", "late"), result("b", "late")}, map[string][]string{"a": nil, "b": {"late"}}, []string{"a"}, ErrFaults},
	} {
		t.Run(name, func(t *testing.T) {
			kept, err := flaky.Open(t.TempDir(), "vmlab")
			if err != nil {
				t.Fatal(err)
			}
			results, err := RerunFailed(func(s Scenario) (*Result, error) {
				faults, expected := c.again[s.Name]
				if !expected {
					t.Errorf("%s runs again", s.Name)
				}
				return result(s.Name, faults...), nil
			}, c.first, kept)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, r := range results {
				if r.Flaky {
					names = append(names, r.Scenario.Name)
				}
			}
			if !slices.Equal(names, c.flaky) || len(kept.Files) != len(c.flaky) || len(results) != len(c.first)+len(c.again) {
				t.Errorf("flaky %v in %d results, files %v, want %v", names, len(results), kept.Files, c.flaky)
			}
			expect := expectations(alerting.Clock{}, results)
			if len(expect) != len(results)-len(names) {
				t.Errorf("alerts of %d results are expected, want those of %d", len(expect), len(results)-len(names))
			}
			for _, e := range expect {
				if e.Lasting != slices.Contains(c.flaky, e.Name) { // the alert of the first time may still fire
					t.Errorf("%s: lasting %v", e.Name, e.Lasting)
				}
			}
			var text strings.Builder
			if err := Print(&text, results, false); !errors.Is(err, c.want) && !strings.Contains(text.String(), "coverage") {
				t.Errorf("%v, want %v:\n%s", err, c.want, &text)
			}
			if got := strings.Count(text.String(), "FLAKY "); got != len(c.flaky) {
				t.Errorf("%d lines, want %d:\n%s", got, len(c.flaky), &text)
			}
		})
	}
}
