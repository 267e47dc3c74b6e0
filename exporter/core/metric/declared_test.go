package metric_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/families"
)

// TestEveryDescriptorIsInAGroup reads the source of all packages: a descriptor that is in no group is exported but not documented.
func TestEveryDescriptorIsInAGroup(t *testing.T) {
	listed := map[string]bool{}
	for _, d := range all() {
		listed[d.Name] = true
	}
	declared := map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if name := described(n); name != "" {
				declared[name] = true
				if !listed[name] {
					t.Errorf("%s: %s is in no group", path, name)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range listed {
		if !declared[name] {
			t.Errorf("%s is not made by Family", name)
		}
	}
}

// described is the name of the family that a call of Family describes; empty: n is none.
func described(n ast.Node) (name string) {
	call, ok := n.(*ast.CallExpr)
	if !ok || len(call.Args) != 1 {
		return ""
	}
	switch f := call.Fun.(type) {
	case *ast.Ident:
		ok = f.Name == "Family"
	case *ast.SelectorExpr:
		ok = f.Sel.Name == "Family"
	}
	if d, literal := call.Args[0].(*ast.CompositeLit); ok && literal {
		for _, e := range d.Elts {
			field, keyed := e.(*ast.KeyValueExpr)
			if !keyed {
				continue
			}
			key, isIdent := field.Key.(*ast.Ident)
			if value, isText := field.Value.(*ast.BasicLit); isIdent && isText && key.Name == "Name" {
				name = strings.Trim(value.Value, `"`)
			}
		}
	}
	return name
}

// TestFamiliesOfAGroupAreInTheOrderOfNames: each once.
func TestFamiliesOfAGroupAreInTheOrderOfNames(t *testing.T) {
	for _, g := range families.All() {
		for i := 1; i < len(g.Descs); i++ {
			if before, name := g.Descs[i-1].Name, g.Descs[i].Name; before >= name {
				t.Errorf("%s: %s comes after %s", g.Title, name, before)
			}
		}
	}
}

// TestLabelsWithAFixedSetListTheirValues: a label of these names has a list, in which no value is twice.
func TestLabelsWithAFixedSetListTheirValues(t *testing.T) {
	for _, d := range all() {
		for _, l := range d.Labels {
			list, fixed := d.Values[l], l == metric.ReasonL || l == metric.ResultL || l == metric.StateL
			seen := map[string]bool{}
			for _, entry := range list {
				value, _, _ := strings.Cut(entry, ":")
				if seen[value] || value == "" || strings.ContainsAny(value, " -,") {
					t.Errorf("%s: value %q of label %s is not a new word in snake_case", d.Name, value, l)
				}
				seen[value] = true
			}
			if fixed && len(list) == 0 {
				t.Errorf("%s: label %s has no list of its values", d.Name, l)
			}
		}
	}
}

// TestBoundsOfClassicBucketsHaveNoRoundingNoise: 5.1e8, not 5.0999999999999994e8.
func TestBoundsOfClassicBucketsHaveNoRoundingNoise(t *testing.T) {
	for _, d := range all() {
		for _, b := range d.Buckets {
			if text := strconv.FormatFloat(b, 'g', -1, 64); len(text) > len("1.25e+09") {
				t.Errorf("%s: bucket bound %s", d.Name, text)
			}
		}
	}
}
