package main

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oneway.example/exporter/families"
	"oneway.example/exporter/output/point"
)

func TestCommittedDocumentsAreCurrent(t *testing.T) {
	for name, current := range map[string]string{"METRICS.md": document(families.All()), "MEASUREMENTS.md": measurements(families.All(), families.Tables())} {
		committed, err := os.ReadFile("../" + name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(committed), current); diff != "" {
			t.Errorf("exporter/doc/%s is not current; run make generate (-committed +current):\n%s", name, diff)
		}
	}
}

func TestEveryMeasurementHasItsFieldsAndTheirFamilies(t *testing.T) {
	text := measurements(families.All(), families.Tables())
	for _, m := range point.Measurements(families.All(), families.Tables()) {
		_, section, found := strings.Cut(text, "\n### "+m.Name+"\n")
		section, _, _ = strings.Cut(section, "\n#")
		if !found || strings.Count(section, "\n| `") != len(m.Columns) || strings.Contains(section, "||") {
			t.Errorf("section of %s:\n%s", m.Name, section)
		}
		for _, c := range m.Columns {
			if c.Desc != nil && !strings.Contains(section, "(METRICS.md#"+c.Desc.Name+")") {
				t.Errorf("%s: %s has no source", m.Name, c.Key)
			}
		}
	}
}

func TestEveryFamilyHasASection(t *testing.T) {
	text := document(families.All())
	for _, g := range families.All() {
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
	if err := run([]string{"a"}); err == nil {
		t.Error("one file was accepted")
	}
}
