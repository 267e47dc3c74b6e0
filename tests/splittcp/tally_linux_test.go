package splittcp

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"oneway.example/exporter/probes/tcp"
	"oneway.example/tests/loadsite"
)

// told is the share of runs that must have a verdict.
const told = 0.9

// tally counts the verdicts of runs.
type tally struct {
	mu sync.Mutex
	// kinds has the number of each verdict, by kind.
	kinds      map[string]map[string]int
	runs, told int
	wrong      atomic.Int64
}

// judge counts the verdict of a run, which is that of the direction that has one: both directions have the same path.
func (a *tally) judge(t *testing.T, k *kind, o loadsite.TCPOutcome) {
	t.Helper()
	verdict, each := unknown, []string{}
	for _, d := range o.Result.Directions {
		s := d.Split
		if s == nil {
			t.Fatalf("%s: no evidence", d.Direction)
		}
		each = append(each, strings.TrimSpace(d.Direction+" "+s.State+" "+s.Reason))
		if s.State == unknown {
			t.Logf("%s: %s", d.Direction, evidence(s))
			continue
		}
		if (s.State == "yes") != k.split {
			t.Errorf("%s: %s", d.Direction, evidence(s))
			a.wrong.Add(1)
		}
		verdict = s.State
	}
	t.Logf("%s", strings.Join(each, ", "))
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.kinds == nil {
		a.kinds = map[string]map[string]int{}
	}
	if a.kinds[k.name] == nil {
		a.kinds[k.name] = map[string]int{}
	}
	a.kinds[k.name][strings.Join(each, ", ")]++
	if a.runs++; verdict != unknown {
		a.told++
	}
}

// unknown is the state without a verdict.
const unknown = "cannot tell"

func evidence(s *tcp.Split) string {
	b, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// report prints the table of all kinds, and fails the test if too many runs have no verdict: with few runs one may be without.
func (a *tally) report(t *testing.T) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(a.kinds)) {
		t.Logf("%-46s %v", name, a.kinds[name])
	}
	t.Logf("%d runs, %d with a verdict, %d directions with a wrong one", a.runs, a.told, a.wrong.Load())
	if missing := a.runs - a.told; float64(missing) > max(1, (1-told)*float64(a.runs)) {
		t.Errorf("%d of %d runs have no verdict", missing, a.runs)
	}
}
