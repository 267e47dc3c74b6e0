package imports

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// leastText is the length of a text that two packages write alike only if one decision stands in both.
const leastText = 30

// TestTextsStandInOnePackage: an error, a description of an option or a meaning has one place; lines of logs, and sources and absences
// of metrics, may be alike.
func TestTextsStandInOnePackage(t *testing.T) {
	packages := map[string][]string{}
	err := filepath.WalkDir("../../exporter", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		for _, text := range textsOf(t, path) {
			if dir := filepath.Dir(path); len(text) >= leastText && !slices.Contains(packages[text], dir) {
				packages[text] = append(packages[text], dir)
			}
		}
		return nil
	})
	if err != nil || len(packages) < 1000 {
		t.Fatalf("%d texts, %v", len(packages), err)
	}
	for text, all := range packages {
		if len(all) > 1 {
			t.Errorf("%q stands in %q; one of them can have it for the others", text, all)
		}
	}
}

// textsOf are the texts of a Go file, without paths of imports, tags of fields, messages of logs, and the fields Source and Absent.
func textsOf(t *testing.T, path string) (all []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			return n.Tag == nil
		case *ast.CallExpr:
			method, ok := n.Fun.(*ast.SelectorExpr)
			return !ok || !slices.Contains([]string{"Debug", "Info", "Warn", "Error"}, method.Sel.Name) || len(n.Args) == 0
		case *ast.KeyValueExpr:
			key, ok := n.Key.(*ast.Ident)
			return !ok || key.Name != "Source" && key.Name != "Absent"
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
				all = append(all, text)
			}
		}
		return true
	})
	return all
}
