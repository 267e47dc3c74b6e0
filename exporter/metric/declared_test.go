package metric_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestEveryDescriptorIsInAGroup reads the source of the package: a descriptor that is in no group is exported but not
// documented.
func TestEveryDescriptorIsInAGroup(t *testing.T) {
	listed := map[string]bool{}
	for _, d := range all() {
		listed[d.Name] = true
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	declared := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			field, ok := n.(*ast.KeyValueExpr)
			if !ok {
				return true
			}
			key, isIdent := field.Key.(*ast.Ident)
			value, isText := field.Value.(*ast.BasicLit)
			if isIdent && isText && key.Name == "Name" {
				declared++
				if metricName := strings.Trim(value.Value, `"`); !listed[metricName] {
					t.Errorf("%s: %s is in no group", name, metricName)
				}
			}
			return true
		})
	}
	if declared != len(listed) {
		t.Errorf("%d descriptors are declared, %d are listed", declared, len(listed))
	}
}
