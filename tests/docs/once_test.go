package docs

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDecisionsStandOnce: what one place decides, others derive from it. A copy of its words or of its comparison fails.
func TestDecisionsStandOnce(t *testing.T) {
	for name, c := range map[string]struct {
		copied string // as a regular expression
		places []string
	}{
		"the link of a load test that names none": {
			`(first|only) (link )?(of|that) (a|the|its|an) (path|agent)|its only link|--link is required|with the path's name`, []string{"exporter/probe/link/filled.go", "exporter/load/loadtest/options.go"},
		},
		"losses that have no direction": {
			`Lost (> 0|== 0) && .*Stateless|Stateless.*Lost (> 0|== 0)|number its replies; `, []string{"exporter/probes/stamp/status.go"},
		},
		"the main limit of a TCP sender": {
			`> MainShare|bool 0\.5\b|2 ?\* ?share > sum`, []string{"exporter/estimate/tcpstate/limit.go"},
		},
		"the working delay under a direction's own load": {
			`\|both\b|[lL]oaded\.Packets >`, []string{"exporter/core/rules/runs.go"},
		},
		"what is left of a quota": {
			`\blimit ?- ?add\(|Limit ?- ?[a-z.]*Used|\bLeftToday\b`, []string{"exporter/probe/quota/quota.go", "exporter/load/loadcontrol/message.go", "exporter/load/loadserver/session.go"},
		},
	} {
		copied, found := regexp.MustCompile(c.copied), map[string]bool{}
		for _, path := range files(t, ".go") {
			at, err := filepath.Rel(root, path)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(at, "_test.go") || !isShipped(path) {
				continue
			}
			for i, line := range strings.Split(read(t, path), "\n") {
				switch {
				case strings.HasPrefix(strings.TrimSpace(line), "//") || !copied.MatchString(line):
				case slices.Contains(c.places, filepath.ToSlash(at)):
					found[filepath.ToSlash(at)] = true
				default:
					t.Errorf("%s:%d: decides again about %s, as %v does: %s", at, i+1, name, c.places, strings.TrimSpace(line))
				}
			}
		}
		if len(found) != len(c.places) {
			t.Errorf("%s: found in %v, want %v", name, found, c.places)
		}
	}
}
