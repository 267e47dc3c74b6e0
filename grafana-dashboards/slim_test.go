package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"

	"oneway.example/exporter/metric"
)

// A panel of the page Path that has nothing of a slim path says so; one that has something does not.
func TestPanelsThatAreEmptyForSlimPathsSaySo(t *testing.T) {
	// Recorded of full paths only; all others of the page are of slim ones, too.
	fullOnly := map[string]bool{recVariation: true, recRTT: true, recLate: true, recSkipped: true}
	has := map[string]bool{}
	for _, g := range metric.Groups() {
		for _, d := range g.Descs {
			has[d.Name] = d.Slim || len(d.Labels) == 0 || d.Labels[0] != metric.Path
		}
	}
	name := regexp.MustCompile(`oneway[_:][a-z0-9_:]+`)
	board, err := pathBoard().Build()
	if err != nil {
		t.Fatal(err)
	}
	uids := map[string]bool{}
	for _, p := range board.Panels {
		if p.Panel == nil {
			continue // a row's heading: none is collapsed
		}
		uids[*p.Panel.Title] = slimHas(*p.Panel, func(expr string) bool {
			// The first name is what is drawn; what stands behind it selects or divides.
			first := name.FindString(expr)
			family, found := has[strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(first, "_bucket"), "_sum"), "_count")]
			return found && family || !found && !fullOnly[first]
		})
		says := strings.Contains(*p.Panel.FieldConfig.Defaults.NoValue, "slim")
		if !uids[*p.Panel.Title] && !says {
			t.Errorf("%q has nothing of a slim path and does not say so: %q", *p.Panel.Title, *p.Panel.FieldConfig.Defaults.NoValue)
		}
	}
	if !uids["Delay CDF"] || uids["Delay variation (PDV)"] {
		t.Errorf("what slim paths have is misjudged: %v", uids)
	}
}

// slimHas tells whether any query of a panel has something of a slim path.
func slimHas(p dashboard.Panel, has func(expr string) bool) bool {
	for _, target := range p.Targets {
		if q, ok := target.(prometheus.Dataquery); ok && has(q.Expr) {
			return true
		}
	}
	return false
}
