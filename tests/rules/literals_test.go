package rules

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"oneway.example/exporter/core/lightreason"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/probe"
)

// TestReasonsAreConstants: the code that gives a reason or a result has the constant, so that its word stands in one place.
func TestReasonsAreConstants(t *testing.T) {
	runs := slices.Concat(runreason.Values(), runreason.Results())
	const cmd, stamp, schemas = "cmd/oneway/*.go", "probes/stamp/*.go", "cmd/oneway/schemas_test.go"
	for _, c := range []struct {
		entries []string
		files   []string
	}{
		{runreason.Ends(), []string{"load/loadserver/*.go", "core/metric/loadtest.go"}},
		{lightreason.Values(), []string{stamp, "probe/*.go", "agent/ondemand/*.go", "core/metric/ondemand.go", cmd, schemas}},
		{probe.Causes(), []string{stamp, "load/loadtest/*.go", "agent/status.go", schemas}},
		{runs, []string{"load/loadtest/*.go", "load/loadsession/*.go", "load/loadcontrol/*.go", "load/loadserver/*.go", "probes/*/kind.go", cmd, schemas}},
	} {
		words, read := metric.Values{"": c.entries}.Names(""), 0
		for _, pattern := range c.files {
			files, err := filepath.Glob("../../exporter/" + pattern)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range files {
				if strings.HasSuffix(name, "_test.go") && pattern != schemas || strings.HasSuffix(name, "probe/cause.go") {
					continue
				}
				read++
				for _, literal := range literals(t, name) {
					if slices.Contains(words, literal) {
						t.Errorf("%s: %q is a reason or a result; use its constant", name, literal)
					}
				}
			}
		}
		if read < 2 {
			t.Errorf("%d files of %q", read, c.files)
		}
	}
}

// TestRunsNameNoKindOfRemoteEnd: a run may have a session without a load server of this program, and a load server has tokens.
func TestRunsNameNoKindOfRemoteEnd(t *testing.T) {
	files, err := filepath.Glob("../../exporter/load/loadtest/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(len(files), err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		for _, literal := range literals(t, name) {
			if strings.Contains(literal, "token") || strings.Contains(strings.ReplaceAll(literal, "_", " "), "load server") {
				t.Errorf("%s: %q", name, literal)
			}
		}
	}
}

// literals are the texts of a Go file.
func literals(t *testing.T, name string) (all []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
			text, err := strconv.Unquote(l.Value)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, text)
		}
		return true
	})
	return all
}
