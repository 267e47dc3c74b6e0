package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v4"

	"oneway.example/exporter/core/rules"
	"oneway.example/exporter/doc/ruletext"
)

const directory = "../../../deploy/prometheus/rules"

func TestCommittedRulesAreCurrent(t *testing.T) {
	files := rules.Files()
	for _, f := range files {
		committed, err := os.ReadFile(filepath.Join(directory, f.Name))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(committed), ruletext.YAML(f)); diff != "" {
			t.Errorf("%s is not current; run make generate (-committed +current):\n%s", f.Name, diff)
		}
	}
	if found, err := filepath.Glob(directory + "/*"); err != nil || len(found) != len(files) {
		t.Errorf("%v are in %s, want the %d files that are generated: %v", found, directory, len(files), err)
	}
}

const grafanaFile = "../../../deploy/grafana/alerting/oneway-influxdb.yml"

// TestCommittedAlertsOfGrafanaAreCurrent: and each has the fields that Grafana's file provisioning requires, and no others (its documentation
// "Use configuration files to provision alerting resources", and AlertRuleV1 of its source).
func TestCommittedAlertsOfGrafanaAreCurrent(t *testing.T) {
	current, err := grafanaText(rules.GrafanaAlerts())
	if err != nil {
		t.Fatal(err)
	}
	committed, err := os.ReadFile(grafanaFile)
	if diff := cmp.Diff(string(committed), current); err != nil || diff != "" {
		t.Errorf("%s is not current; run make generate (-committed +current): %v\n%s", grafanaFile, err, diff)
	}
	var file struct {
		APIVersion int `yaml:"apiVersion"`
		Groups     []map[string]any
	}
	if err := yaml.Unmarshal(committed, &file); err != nil || file.APIVersion != 1 || len(file.Groups) != 1 {
		t.Fatalf("%d groups, version %d: %v", len(file.Groups), file.APIVersion, err)
	}
	fields(t, file.Groups[0], []string{"orgId", "name", "folder", "interval", "rules"}, nil)
	uids := map[string]bool{}
	for i, r := range file.Groups[0]["rules"].([]any) {
		rule := r.(map[string]any)
		fields(t, rule, []string{"uid", "title", "condition", "data", "noDataState", "execErrState", "for", "annotations", "labels"}, []string{"keepFiringFor"})
		refs, uid := map[string]bool{}, rule["uid"].(string)
		if uids[uid] || len(uid) > 40 { // Grafana's limit
			t.Errorf("uid %q is there twice, or too long", uid)
		}
		uids[uid] = true
		for _, d := range rule["data"].([]any) {
			node := d.(map[string]any)
			fields(t, node, []string{"refId", "relativeTimeRange", "datasourceUid", "model"}, nil)
			ref := node["refId"].(string)
			if model := node["model"].(map[string]any); refs[ref] || model["refId"] != ref {
				t.Errorf("%s: node %s is there twice, or its model has another name", uid, ref)
			}
			refs[ref] = true
		}
		alert := rules.GrafanaAlerts()[i].Rule
		if !refs[rule["condition"].(string)] || rule["title"] != alert.Name || rule["for"] != model.Duration(alert.Alert.For).String() {
			t.Errorf("%s: condition %v, title %v, for %v", uid, rule["condition"], rule["title"], rule["for"])
		}
		for _, l := range alert.AllLabels() {
			if rule["labels"].(map[string]any)[l.Name] != l.Value {
				t.Errorf("%s: label %s is not %s", uid, l.Name, l.Value)
			}
		}
	}
}

// fields reports fields that are missing, and unknown ones.
func fields(t *testing.T, of map[string]any, required, optional []string) {
	t.Helper()
	for _, name := range required {
		if _, found := of[name]; !found {
			t.Errorf("no field %s in %.200v", name, of)
		}
	}
	for name := range of {
		if !slices.Contains(required, name) && !slices.Contains(optional, name) {
			t.Errorf("unknown field %s", name)
		}
	}
}

// TestYAMLHasTheValuesOfTheRules: what YAML has other rules for, such as quotes, reaches Prometheus as it is.
func TestYAMLHasTheValuesOfTheRules(t *testing.T) {
	type rule struct {
		Record, Alert, Expr string
		For                 model.Duration
		KeepFiringFor       model.Duration `yaml:"keep_firing_for"`
		Labels, Annotations map[string]string
	}
	for _, f := range rules.Files() {
		var file struct {
			Groups []struct {
				Name     string
				Interval model.Duration
				Rules    []rule
			}
		}
		if err := yaml.Unmarshal([]byte(ruletext.YAML(f)), &file); err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		for i, g := range f.Groups {
			got := file.Groups[i]
			if got.Name != g.Name || time.Duration(got.Interval) != g.Interval || len(got.Rules) != len(g.Rules) {
				t.Fatalf("%s: got %s with interval %s and %d rules", g.Name, got.Name, got.Interval, len(got.Rules))
			}
			for j, r := range g.Rules {
				want := rule{Expr: r.Expr, Labels: byName(r.AllLabels()), Annotations: byName(r.Annotations())}
				got.Rules[j].Expr = strings.TrimSuffix(got.Rules[j].Expr, "\n")
				if want.Record = r.Name; r.Alert != nil {
					want.Record, want.Alert = "", r.Name
					want.For, want.KeepFiringFor = model.Duration(r.Alert.For), model.Duration(r.Alert.KeepFiringFor)
				}
				if diff := cmp.Diff(want, got.Rules[j]); diff != "" {
					t.Errorf("%s (-value +file):\n%s", r.Name, diff)
				}
			}
		}
	}
}

func byName(labels []rules.Label) map[string]string {
	if len(labels) == 0 {
		return nil
	}
	all := map[string]string{}
	for _, l := range labels {
		all[l.Name] = l.Value
	}
	return all
}

func TestUsageIsChecked(t *testing.T) {
	if err := run(nil); err == nil {
		t.Error("no directory was accepted")
	}
}
