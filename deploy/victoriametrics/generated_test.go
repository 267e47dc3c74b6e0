package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
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
