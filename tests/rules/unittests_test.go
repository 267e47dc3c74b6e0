package rules

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v4"
)

// unitTests is a file of promtool's unit tests.
type unitTests struct {
	RuleFiles  []string   `yaml:"rule_files"`
	GroupOrder []string   `yaml:"group_eval_order,omitempty"`
	Interval   string     `yaml:"evaluation_interval"`
	Cases      []unitTest `yaml:"tests"`
	Rest       attributes `yaml:",inline"`
}

type unitTest struct {
	Alerts  []expectation `yaml:"alert_rule_test,omitempty"`
	Queries []expectation `yaml:"promql_expr_test,omitempty"`
	Rest    attributes    `yaml:",inline"`
}

// expectation is of an alert or a query at an instant.
type expectation struct {
	Time  string     `yaml:"eval_time"`
	Alert string     `yaml:"alertname,omitempty"`
	Query string     `yaml:"expr,omitempty"`
	Rest  attributes `yaml:",inline"`
}

// attributes are what these tests do not read.
type attributes map[string]any

type ruleFile struct {
	Groups []ruleGroup `yaml:"groups"`
}

type ruleGroup struct {
	Name  string     `yaml:"name"`
	Rules []fileRule `yaml:"rules"`
	Rest  attributes `yaml:",inline"`
}

type fileRule struct {
	Record      string            `yaml:"record,omitempty"`
	Alert       string            `yaml:"alert,omitempty"`
	Expr        string            `yaml:"expr"`
	Annotations map[string]string `yaml:"annotations,omitempty"`
	Rest        attributes        `yaml:",inline"`
}

func readYAML(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

func writeYAML(t *testing.T, dir, name string, v any) (path string) {
	t.Helper()
	text, err := yaml.Marshal(v)
	path = filepath.Join(dir, name)
	if err := errors.Join(err, os.WriteFile(path, text, 0o600)); err != nil {
		t.Fatal(err)
	}
	return path
}

// readUnitTests reads a file of this directory. The names of its rule files are absolute.
func readUnitTests(t *testing.T, name string) (u unitTests) {
	t.Helper()
	readYAML(t, name, &u)
	for i, file := range u.RuleFiles {
		path, err := filepath.Abs(file)
		if err != nil {
			t.Fatal(err)
		}
		u.RuleFiles[i] = path
	}
	return u
}

func (u *unitTests) expectations() (all []expectation) {
	for _, c := range u.Cases {
		all = append(append(all, c.Alerts...), c.Queries...)
	}
	return all
}

// word matches names of series and alerts; an expression has the names of alerts in matchers of ALERTS.
var word = regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*`)

// needs are the names of alerts and recorded series that the expectations depend on.
func (u *unitTests) needs(groups []ruleGroup) map[string]bool {
	text := map[string]string{} // what the rules of a name read
	for _, g := range groups {
		for _, r := range g.Rules {
			name := r.Record + r.Alert
			text[name] += " " + r.Expr
			for _, a := range r.Annotations {
				text[name] += " " + a
			}
		}
	}
	needed := map[string]bool{}
	var add func(string)
	add = func(read string) {
		for _, name := range word.FindAllString(read, -1) {
			if more, isRule := text[name]; isRule && !needed[name] {
				needed[name] = true
				add(more)
			}
		}
	}
	for _, e := range u.expectations() {
		add(e.Alert + " " + e.Query)
	}
	return needed
}

// narrow writes a file of unit tests into dir with only the rules that its expectations depend on: the evaluation of the others
// takes promtool most of its time.
func narrow(t *testing.T, name, dir string) string {
	t.Helper()
	u := readUnitTests(t, name)
	var all ruleFile
	for _, file := range u.RuleFiles {
		var f ruleFile
		readYAML(t, file, &f)
		all.Groups = append(all.Groups, f.Groups...)
	}
	needed := u.needs(all.Groups)
	for i, g := range all.Groups {
		all.Groups[i].Rules = slices.DeleteFunc(g.Rules, func(r fileRule) bool { return !needed[r.Record+r.Alert] })
	}
	u.RuleFiles = []string{writeYAML(t, dir, "rules.yml", all)}
	return writeYAML(t, dir, "narrow.yml", u)
}

// coarsen writes a file of unit tests into dir with all of its rules, evaluated at eight instants, and no expectation: promtool
// reports a rule that fails with the series of the tests, as for two matches where one is expected.
func coarsen(t *testing.T, name, dir string) string {
	t.Helper()
	u := readUnitTests(t, name)
	for i, c := range u.Cases {
		end := expectation{Time: last(t, slices.Concat(c.Alerts, c.Queries)).String(), Query: "vector(0)", Rest: attributes{"exp_samples": []attributes{{"labels": "{}"}}}}
		u.Cases[i].Alerts, u.Cases[i].Queries = nil, []expectation{end}
	}
	u.Interval = (last(t, u.expectations()) / 8).String()
	return writeYAML(t, dir, "coarse.yml", u)
}

// last is the latest instant.
func last(t *testing.T, all []expectation) (end model.Duration) {
	t.Helper()
	for _, e := range all {
		at, err := model.ParseDuration(e.Time)
		if err != nil {
			t.Fatal(err)
		}
		end = max(end, at)
	}
	return end
}
