package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"oneway.example/exporter/core/rules"
)

func TestCommittedFilesAreCurrent(t *testing.T) {
	want, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range want {
		got, err := os.ReadFile(name)
		if err != nil || string(got) != string(text) {
			t.Errorf("%s is not current; run make generate: %v", name, err)
		}
	}
	for _, directory := range []string{rulesDirectory, dashboardsDirectory} {
		names, err := filepath.Glob(filepath.Join(directory, "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if want[name] == nil {
				t.Errorf("%s is not generated", name)
			}
		}
	}
}

// TestFilesCallNoFunctionOfNativeHistograms: VictoriaMetrics refuses a query with one as a whole.
func TestFilesCallNoFunctionOfNativeHistograms(t *testing.T) {
	files, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	panels := 0
	for name, text := range files {
		for _, function := range []string{"histogram_count(", "histogram_sum(", "histogram_avg("} {
			if strings.Contains(string(text), function) {
				t.Errorf("%s has %s", name, function)
			}
		}
		panels += strings.Count(string(text), "This panel reads native histograms")
	}
	if panels < 2 {
		t.Errorf("%d panels are texts, want at least 2: residence time, hours of the week", panels)
	}
}

// TestStagesReadFormerStages: no rule of a divided group reads what a rule of its own stage, or of a later one, has recorded, unless it is of the evaluations before.
func TestStagesReadFormerStages(t *testing.T) {
	divided := 0
	for _, f := range rules.Files() {
		for _, g := range f.Groups {
			all, err := stages(g)
			if err != nil {
				t.Fatal(err)
			}
			if len(all) > 1 {
				divided++
			}
			for i, stage := range all {
				for _, one := range stage.Rules {
					reads, err := readings(one.Expr)
					if err != nil {
						t.Fatal(err)
					}
					for _, r := range reads {
						if r.name != one.Name && len(all) > 1 && r.now && records(all, r.name) {
							t.Errorf("%s: rule %s reads %s of now, which a stage records", stage.Name, one.Name, r.name)
						}
					}
				}
				if i > 0 && stage.Offset <= all[i-1].Offset {
					t.Errorf("%s: offset %v, want more than %v of %s", stage.Name, stage.Offset, all[i-1].Offset, all[i-1].Name)
				}
				if stage.Offset >= stage.Interval {
					t.Errorf("%s: offset %v, want less than the interval %v", stage.Name, stage.Offset, stage.Interval)
				}
			}
		}
	}
	if divided < 4 {
		t.Errorf("%d groups are divided, want 5 minutes, days, trends and load tests", divided)
	}
}

func records(groups []rules.Group, name string) bool {
	return slices.ContainsFunc(groups, func(g rules.Group) bool {
		return slices.ContainsFunc(g.Rules, func(r rules.Rule) bool { return r.Name == name })
	})
}
