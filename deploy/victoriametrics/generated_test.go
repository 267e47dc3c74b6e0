package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

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

// TestStagesReadFormerStages: no rule of a divided group reads what a rule of its own stage, or of a later one, records.
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
			recorded := map[string]int{}
			for i, stage := range all {
				for _, one := range stage.Rules {
					recorded[one.Name] = i
				}
			}
			for i, stage := range all {
				for _, one := range stage.Rules {
					reads, err := readings(one.Expr)
					if err != nil {
						t.Fatal(err)
					}
					for _, r := range reads {
						at, ok := recorded[r.name]
						if ok && len(all) > 1 && r.name != one.Name && (r.now || at >= i && !readsBefore[one.Name]) {
							t.Errorf("%s: rule %s reads %s, which stage %d records", stage.Name, one.Name, r.name, at+1)
						}
						if ok && r.step > 0 && !strings.Contains(one.Expr[r.from:r.to], "["+promDuration(2*r.step)+"]") {
							t.Errorf("%s: rule %s: %s lacks two steps of its subquery", stage.Name, one.Name, one.Expr[r.from:r.to])
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

// readsBefore are the rules that compare with the evaluation before: they are above the rule that records it.
var readsBefore = map[string]bool{"oneway:tcp_split_detected:changed": true}

// TestRuleThatReadsTheEvaluationBeforeIsNotAfterIt: a rule below it records what it reads.
func TestRuleThatReadsTheEvaluationBeforeIsNotAfterIt(t *testing.T) {
	all, err := stages(rules.Group{Name: "g", Interval: time.Hour, Rules: []rules.Rule{
		{Name: "a", Expr: "x"}, {Name: "b", Expr: "a > 1"}, {Name: "changed", Expr: "b unless last_over_time(last[2h])"}, {Name: "last", Expr: "x"}, {Name: "last", Expr: "a"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, stage := range all {
		for _, one := range stage.Rules {
			got = append(got, stage.Name+" "+one.Name)
		}
	}
	if want := []string{"g-1 a", "g-2 b", "g-3 changed", "g-3 last", "g-3 last"}; !slices.Equal(got, want) {
		t.Errorf("stages are %q, want %q", got, want)
	}
}
