package docs

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestNumbersAreFormattedByTheirUnit: an error bound that another format rounds down excludes the true value, and a share of 99.96 %
// that another format rounds up is printed as all.
func TestNumbersAreFormattedByTheirUnit(t *testing.T) {
	except := []string{
		"exporter/core/unit/bound.go",       // the formatter
		"exporter/core/rules/annotation.go", // Prometheus formats it
		"exporter/cmd/oneway/man.go",        // the character in a manual page
	}
	percent, comment := regexp.MustCompile(`%[-+.0-9]*[dfgv] ?%%`), regexp.MustCompile(`(^|\s)//.*`)
	for _, ext := range []string{".go", ".html"} {
		for _, path := range files(t, ext) {
			name, err := filepath.Rel(root, path)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(name, "exporter/") || strings.HasSuffix(name, "_test.go") || strings.Contains(name, "/testdata/") || slices.Contains(except, name) {
				continue
			}
			for i, line := range strings.Split(read(t, path), "\n") {
				line = comment.ReplaceAllString(line, "")
				if strings.Contains(line, "±") || percent.MatchString(line) {
					t.Errorf("%s:%d: %s: format error bounds and shares by core/unit", name, i+1, strings.TrimSpace(line))
				}
			}
		}
	}
}
