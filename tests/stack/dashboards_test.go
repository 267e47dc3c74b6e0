package stack

import (
	"slices"
	"strings"
	"testing"

	"oneway.example/tests/await"
	"oneway.example/tests/expr"
)

// dashboards evaluates every expression of the dashboards in each store. One that is empty has a reason.
func (s *stack) dashboards(t *testing.T) {
	all, err := expr.Expressions(root)
	if err != nil {
		t.Fatal(err)
	}
	all = slices.DeleteFunc(all, func(e expr.Expr) bool { return !strings.Contains(e.Source, ".json") })
	for _, p := range s.stores {
		empty := slices.Clone(all)
		if !await.Within(settle, func() bool {
			empty = slices.DeleteFunc(empty, func(e expr.Expr) bool {
				found, err := p.try(t, e.Query)
				if err != nil {
					t.Fatalf("%s: %s: %v", p.name, e.Source, err)
				}
				return len(found) > 0
			})
			return !slices.ContainsFunc(empty, unexplained)
		}) {
			for _, e := range empty {
				if unexplained(e) {
					t.Errorf("%s: %s: nothing from %s", p.name, e.Source, e.Query)
				}
			}
		}
		for _, e := range empty {
			t.Logf("%s: %s is empty: %s", p.name, e.Source, e.MayBeEmpty)
		}
		t.Logf("%s: %d of %d expressions have a result", p.name, len(all)-len(empty), len(all))
	}
}

func unexplained(e expr.Expr) bool { return e.MayBeEmpty == "" }
