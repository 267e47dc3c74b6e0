package main

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oneway.example/exporter/metric"
)

func TestCommittedDocumentIsCurrent(t *testing.T) {
	committed, err := os.ReadFile("../../doc/METRICS.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(committed), document(metric.Groups())); diff != "" {
		t.Errorf("exporter/doc/METRICS.md is not current; run make generate (-committed +current):\n%s", diff)
	}
}

func TestEveryFamilyHasASection(t *testing.T) {
	text := document(metric.Groups())
	for _, g := range metric.Groups() {
		for _, d := range g.Descs {
			for _, want := range []string{"### " + d.Name + "\n", d.Help, d.Source} {
				if !strings.Contains(text, want) {
					t.Errorf("%s: %q is missing", d.Name, want)
				}
			}
		}
	}
}

func TestUsageIsChecked(t *testing.T) {
	if err := run([]string{"a", "b"}); err == nil {
		t.Error("two files were accepted")
	}
}
