package metric_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"oneway.example/exporter/core/metric"
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

// TestFamiliesOfAGroupAreInTheOrderOfNames: each once.
func TestFamiliesOfAGroupAreInTheOrderOfNames(t *testing.T) {
	for _, g := range metric.Groups() {
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
