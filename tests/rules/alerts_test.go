package rules

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"oneway.example/tests/expr"
)

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

func alerts(t *testing.T) []expr.Rule {
	t.Helper()
	rules, err := expr.Rules(root)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(rules, func(r expr.Rule) bool { return r.Alert == "" })
}

func TestEveryAlertHasItsSeverityAndText(t *testing.T) {
	for _, a := range alerts(t) {
		if !strings.HasPrefix(a.Alert, "Oneway") {
			t.Errorf("%s: its name does not begin with Oneway", a.Alert)
		}
		if !slices.Contains([]string{"critical", "warning", "info"}, a.Labels["severity"]) {
			t.Errorf("%s: severity %q", a.Alert, a.Labels["severity"])
		}
		if !slices.Contains([]string{"agent", "clock", "path"}, a.Labels["component"]) {
			t.Errorf("%s: component %q, which alertmanager.yml inhibits by", a.Alert, a.Labels["component"])
		}
		if owd, ok := a.Labels["owd"]; ok && owd != "absolute" {
			t.Errorf("%s: owd %q, want absolute or none", a.Alert, owd)
		}
		if a.Annotations["summary"] == "" || a.Annotations["description"] == "" {
			t.Errorf("%s: no summary or no description", a.Alert)
		}
	}
}

// A rule that is only tested to fire may fire always, and one that is only tested to
// be silent may never fire.
func TestEveryAlertIsSeenFiringAndSilent(t *testing.T) {
	firing, silent := map[string]bool{}, map[string]bool{}
	for _, name := range files(t, "*.yml") {
		u := readUnitTests(t, name)
		for _, e := range u.expectations() {
			if fires, ok := e.Rest["exp_alerts"].([]any); ok && len(fires) > 0 {
				firing[e.Alert] = true
			} else {
				silent[e.Alert] = true
			}
		}
	}
	for _, a := range alerts(t) {
		if !firing[a.Alert] || !silent[a.Alert] {
			t.Errorf("%s: seen firing: %v, seen silent: %v", a.Alert, firing[a.Alert], silent[a.Alert])
		}
	}
}
