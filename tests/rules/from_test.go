package rules

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestMigrationPagesNameWhatExists: each metric, recorded series and alert of exporter/doc/from is one of the program or of the rules.
func TestMigrationPagesNameWhatExists(t *testing.T) {
	pages, err := filepath.Glob(root + "/exporter/doc/from/*.md")
	if err != nil || len(pages) < 6 {
		t.Fatalf("pages %q, %v", pages, err)
	}
	rules, _ := load(t)
	known := recorded(rules)
	for name := range table() {
		known[name] = true
	}
	for _, r := range rules {
		known[r.Alert] = true
	}
	names := regexp.MustCompile(`\boneway(?:_[a-z0-9_]+|:[a-z0-9_:]+)|\bOneway[A-Z]\w+`)
	found := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names.FindAllString(string(text), -1) {
			if found++; !known[name] {
				t.Errorf("%s names %s, which does not exist", filepath.Base(page), name)
			}
		}
	}
	if found < 40 {
		t.Errorf("%d names found, want at least 40", found)
	}
}
