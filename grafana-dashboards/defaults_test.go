package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"oneway.example/exporter/core/metric"
)

// TestStatesAreTheListedValues: a panel has a color for each value of a label, and no other value.
func TestStatesAreTheListedValues(t *testing.T) {
	for _, c := range []struct {
		states []state
		family *metric.Desc
		label  string
	}{
		{clockStates(), metric.ClockState, metric.StateL},
		{saturationStates(), metric.SaturationState, metric.StateL},
		{trainResults(), metric.Trains, metric.ResultL},
		{senderLimits(), metric.TCPLimited, metric.StateL},
	} {
		var names []string
		for _, s := range c.states {
			names = append(names, s.name)
		}
		listed := c.family.Values.Names(c.label)
		slices.Sort(names)
		slices.Sort(listed)
		if !slices.Equal(names, listed) {
			t.Errorf("%s has the values %q; the panel has %q", c.family.Name, listed, names)
		}
	}
}

// TestRulesAreNamedByTheirIdentifiers: a rule that is renamed or removed breaks the build and not a panel.
func TestRulesAreNamedByTheirIdentifiers(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 40 {
		t.Fatalf("files %q, %v", files, err)
	}
	name := regexp.MustCompile(`\b(oneway|path_hour):\w|\bOneway[A-Z]`)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if text, isText := n.(*ast.BasicLit); isText && name.MatchString(text.Value) {
				t.Errorf("%s: %.100s names a rule as text", set.Position(text.Pos()), text.Value)
			}
			return true
		})
	}
}
