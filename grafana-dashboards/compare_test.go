package main

import (
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
)

// TestCompareOpensWithTwoValues: a variable without a choice has its first value.
func TestCompareOpensWithTwoValues(t *testing.T) {
	board, err := compareBoard().Build()
	if err != nil {
		t.Fatal(err)
	}
	order := map[string]dashboard.VariableSort{}
	for _, v := range board.Templating.List {
		if (v.Name == "a" || v.Name == "b") && v.Sort != nil {
			order[v.Name] = *v.Sort
		}
	}
	if order["a"] != dashboard.VariableSortAlphabeticalAsc || order["b"] != dashboard.VariableSortAlphabeticalDesc {
		t.Errorf("order of values: %v", order)
	}
	for _, p := range board.Panels {
		if p.Panel == nil || !strings.HasPrefix(*p.Panel.Title, "A and B") {
			continue
		}
		for _, target := range p.Panel.Targets {
			q, ok := target.(prometheus.Dataquery)
			if !ok {
				t.Fatalf("%T", target)
			}
			if strings.Contains(q.Expr, difference) && !strings.Contains(q.Expr, same) {
				t.Errorf("a difference without the text for A = B: %s", q.Expr)
			}
		}
	}
}

// legendOnPhone is about the number of characters in the legend of a panel on 390 px.
const legendOnPhone = 48

// TestNamesOfEmptyCurvesFitOnAPhone: Grafana cuts longer ones.
func TestNamesOfEmptyCurvesFitOnAPhone(t *testing.T) {
	found := 0
	eachPanel(t, func(t *testing.T, p dashboard.Panel) {
		if p.FieldConfig == nil {
			return
		}
		for _, o := range p.FieldConfig.Overrides {
			if options, ok := o.Matcher.Options.(*string); !ok || *options != nothing {
				continue
			}
			for _, property := range o.Properties {
				name, ok := property.Value.(string)
				if property.Id != "displayName" || !ok {
					continue
				}
				found++
				if len(name) > legendOnPhone {
					t.Errorf("%d characters: %s", len(name), name)
				}
				if whole := *p.FieldConfig.Defaults.NoValue; !strings.Contains(*p.Description, whole) {
					t.Errorf("the description does not have %q", whole)
				}
			}
		}
	})
	if found < 20 {
		t.Errorf("%d names", found)
	}
}
