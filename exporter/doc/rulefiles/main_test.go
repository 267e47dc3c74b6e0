package main

import (
	"os"
	"path/filepath"
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
