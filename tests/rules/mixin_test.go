package rules

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// jsonnet is the tool that evaluates the mixin.
const jsonnet = "github.com/google/go-jsonnet/cmd/jsonnet@v0.21.0"

// TestMixinHasAllRulesAlertsAndDashboards: in a real Jsonnet, the mixin has each group of the rule files once, with what the file has, and each dashboard.
func TestMixinHasAllRulesAlertsAndDashboards(t *testing.T) {
	snippet := `local m = import 'mixin.libsonnet'; { rules: m.prometheusRules.groups, alerts: m.prometheusAlerts.groups, boards: m.grafanaDashboards, ` +
		`own: (m + { _config+:: { thresholds: 'groups: [{name: own, rules: [{record: "a", expr: "1"}]}]' } }).prometheusRules.groups[0].name }`
	cmd := exec.CommandContext(t.Context(), "go", "run", jsonnet, "-e", snippet)
	directory, err := filepath.Abs(root + "/deploy/mixin")
	if err != nil {
		t.Fatal(err)
	}
	cmd.Dir = t.TempDir() // outside of the module: the tool is not of its dependencies
	cmd.Args = slices.Insert(cmd.Args, 3, "-J", directory)
	cmd.Env = append(os.Environ(), "GOFLAGS=")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		if strings.Contains(stderr.String(), "dial tcp") || strings.Contains(stderr.String(), "no such host") {
			t.Skipf("NOT TESTED: no Jsonnet: %s", &stderr)
		}
		t.Fatalf("%v: %s", err, &stderr)
	}
	type group struct {
		Name  string
		Rules []map[string]any
	}
	var mixin struct {
		Rules, Alerts []group
		Boards        map[string]map[string]any
		Own           string
	}
	if err := json.Unmarshal(out, &mixin); err != nil {
		t.Fatal(err)
	}
	if mixin.Own != "own" {
		t.Errorf("the thresholds of a user's file are not in place of the default ones: %q", mixin.Own)
	}
	has := map[string]group{}
	for i, g := range slices.Concat(mixin.Rules, mixin.Alerts) {
		_, isAlert := g.Rules[0]["alert"]
		if _, twice := has[g.Name]; twice || isAlert != (i >= len(mixin.Rules)) {
			t.Errorf("group %s is there twice, or among the other kind", g.Name)
		}
		has[g.Name] = g
	}
	n := 0
	for _, name := range files(t, deploy+"/rules/*.yml") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var file struct{ Groups []group }
		if err := yaml.Unmarshal(text, &file); err != nil {
			t.Fatal(err)
		}
		for _, g := range file.Groups {
			n++
			if got := has[g.Name]; asJSON(t, got.Rules) != asJSON(t, g.Rules) {
				t.Errorf("group %s differs from %s", g.Name, name)
			}
		}
	}
	if n != len(has) || n == 0 {
		t.Errorf("%d groups, want %d", len(has), n)
	}
	boards := files(t, root+"/grafana-dashboards/dashboards/*.json")
	for _, name := range boards {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var board map[string]any
		if err := json.Unmarshal(text, &board); err != nil {
			t.Fatal(err)
		}
		if asJSON(t, mixin.Boards["oneway-"+filepath.Base(name)]) != asJSON(t, board) {
			t.Errorf("the mixin does not have %s", name)
		}
	}
	if len(boards) != len(mixin.Boards) {
		t.Errorf("%d dashboards, want %d", len(mixin.Boards), len(boards))
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
