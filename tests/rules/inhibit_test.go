package rules

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// inhibition is one rule of alertmanager.yml.
type inhibition struct {
	Source []string `yaml:"source_matchers"`
	Target []string `yaml:"target_matchers"`
	Equal  []string `yaml:"equal"`
}

func inhibitions(t *testing.T) []inhibition {
	t.Helper()
	text, err := os.ReadFile(deploy + "/alertmanager.yml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Rules []inhibition `yaml:"inhibit_rules"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Rules) == 0 {
		t.Fatal("alertmanager.yml inhibits nothing")
	}
	return file.Rules
}

// named are the alerts of a matcher such as alertname=~"A|B".
func named(matchers []string) []string {
	re := regexp.MustCompile(`^alertname=~?"([^"]*)"$`)
	for _, m := range matchers {
		if found := re.FindStringSubmatch(m); found != nil {
			return strings.Split(found[1], "|")
		}
	}
	return nil
}

// A wrong clock makes absolute delays meaningless, and nothing else: an outage that
// coincides with it must alert.
func TestClockAlertsHoldBackAbsoluteDelaysOnly(t *testing.T) {
	component := map[string]string{}
	for _, a := range alerts(t) {
		component[a.Alert] = a.Labels["component"]
	}
	clocks := 0
	for _, r := range inhibitions(t) {
		for _, name := range named(r.Source) {
			switch component[name] {
			case "":
				t.Errorf("inhibited by %s, which is no alert", name)
			case "clock":
				clocks++
				if want := []string{`owd="absolute"`}; !slices.Equal(r.Target, want) {
					t.Errorf("%s holds back %v, want %v", name, r.Target, want)
				}
				if !slices.Contains(r.Equal, "instance") || !slices.Contains(r.Equal, "job") {
					t.Errorf("%s holds back alerts of other agents: equal is %v", name, r.Equal)
				}
			}
		}
	}
	if clocks < 6 {
		t.Errorf("%d clock alerts hold something back: fewer than there are", clocks)
	}
}

// A clock alert does not depend on other clocks.
func TestNoClockAlertIsHeldBackByAnother(t *testing.T) {
	for _, a := range alerts(t) {
		if a.Labels["component"] == "clock" && a.Labels["owd"] != "" {
			t.Errorf("%s: a clock alert is labeled owd and would be held back by another", a.Alert)
		}
	}
}
