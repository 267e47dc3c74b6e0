package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/rules"
	"oneway.example/exporter/families"
)

// A panel without data of slim paths must mention profile slim in its noValue text.
func TestPanelsWithoutSlimDataNameTheProfile(t *testing.T) {
	// Recorded series of full paths only; all other series of the page exist for slim paths, too.
	fullOnly := map[string]bool{rules.DelayVariationQuantiles.Name: true, rules.RoundTripQuantiles5m.Name: true, rules.ScheduleLateRatio.Name: true, rules.ScheduleSkippedRatio.Name: true, rules.LowConfidenceRatio.Name: true}
	has := map[string]bool{}
	for _, g := range families.All() {
		for _, d := range g.Descs {
			has[d.Name] = d.Slim || len(d.Labels) == 0 || d.Labels[0] != metric.Path
		}
	}
	has[metric.PathLabels.Name] = true // of the agent, for paths of each profile
	name := regexp.MustCompile(`oneway[_:][a-z0-9_:]+`)
	uids := map[string]bool{}
	var panels []dashboard.PanelOrRowPanel
	for _, b := range boards() {
		board, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		panels = append(panels, board.Panels...)
	}
	for _, p := range panels {
		if p.Panel == nil || p.Panel.Type == "text" || *p.Panel.Datasource.Uid == influxInUse {
			continue // a row header (no row is collapsed), or raw points
		}
		uids[*p.Panel.Title] = slimHas(*p.Panel, func(expr string) bool {
			// The first name is the plotted series; later names select or divide.
			first := name.FindString(expr)
			family, found := has[strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(first, "_bucket"), "_sum"), "_count")]
			return found && family || !found && !fullOnly[first]
		})
		says := strings.Contains(*p.Panel.FieldConfig.Defaults.NoValue, "slim")
		if !uids[*p.Panel.Title] && !says {
			t.Errorf("%q has no data of slim paths; its noValue text is %q, want it to contain slim", *p.Panel.Title, *p.Panel.FieldConfig.Defaults.NoValue)
		}
	}
	if !uids["Delay CDF"] || uids["Delay variation (PDV)"] {
		t.Errorf("panels with data of slim paths: %v; want Delay CDF and not Delay variation (PDV)", uids)
	}
}

// slimHas reports whether a query of a panel has data of slim paths.
func slimHas(p dashboard.Panel, has func(expr string) bool) bool {
	for _, target := range p.Targets {
		if q, ok := target.(prometheus.Dataquery); ok && has(q.Expr) {
			return true
		}
	}
	return false
}
