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
	all = slices.DeleteFunc(all, func(e expr.Expr) bool { return !strings.Contains(e.Source, ".json") || e.Query == "" })
	for _, probe := range loadProbes() {
		s.ran(t, probe)
	}
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

// present are the reasons that do not hold here: each host has a clock daemon, a receiver and a pulse.
var present = []string{"only with a clock daemon", "only with a receiver configured", "only with a pulse configured"}

// absent are the families that the simulated receiver does not have.
var absent = map[string]string{
	"oneway_gnss_pulse_offset_seconds": "gpsd has no message of a pulse, as it reads no device",
	"oneway_gnss_sawtooth_seconds":     "only of receivers with a binary protocol",
}

func unexplained(e expr.Expr) bool {
	for family := range absent {
		if strings.Contains(e.Query, family) {
			return false
		}
	}
	return e.MayBeEmpty == "" || slices.ContainsFunc(present, func(reason string) bool { return strings.HasPrefix(e.MayBeEmpty, reason) })
}

// loadProbes are the load tests of agent a.
func loadProbes() []string {
	if smoke() {
		return []string{"saturation", "tcp"}
	}
	return []string{"saturation", "tcp", "sweep", "train", "size_sweep", "two-way", "tcp_sweep", "tcp_short", "message"}
}
