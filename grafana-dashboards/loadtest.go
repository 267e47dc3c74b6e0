package main

import (
	"slices"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"

	"oneway.example/exporter/metric"
)

// Selectors of the pages of load tests. Their variables for a probe have names of their
// own: a link that keeps variables must not put a probe of one kind where another belongs.
const (
	anyTest   = thisAgent + `,path="$path"`
	saturated = anyTest + `,probe="$saturation"`
	trained   = anyTest + `,probe="$train"`
	crossed   = anyTest + `,probe="$size_sweep",direction="$direction"`
)

// What an empty panel says where no run has been.
const (
	noRun  = "No run of a load test was due yet: is one configured on this path?"
	noLoad = "No completed run of the probe saturation on this path"
	// noState is the same of what a run of mode fixed has found.
	noState = "No run in mode fixed that could tell: its report says why"
)

// inBits is a rate in bits a second, as rates of links are told; metrics count bytes.
const inBits = "bps"

func bitsOf(expr string) string { return "8 * " + expr }

// fresh keeps a run's value only where a run has just ended. A gauge goes on showing its
// last run for ever: drawn as it is, one run looks like a day of them.
func fresh(base, expr string) string {
	run := from(base, metric.RunLast)
	return expr + " and on (job, instance, path, probe) (changes(" + run + rateInterval + ") > 0 or (" +
		run + " unless " + run + " offset $__rate_interval))"
}

// runs is a plot of values of single runs: a point each, joined where they are near.
func runs(p *timeseries.PanelBuilder) *timeseries.PanelBuilder {
	return p.ShowPoints(always).PointSize(5).SpanNulls(apart())
}

// loadTestPages are the pages of a path but one: Path first, then those of load tests.
func loadTestPages(but string) []page {
	return slices.DeleteFunc([]page{
		{"Path", pathUID, "Delay, loss and voice of this path"},
		{"Link under load", loadUID, "Throughput, queue and delay of this path under load"},
		{"Capacity", capacityUID, "Packet trains, path MTU, and packet size by rate on this path"},
	}, func(p page) bool { return p.uid == but })
}

// loadTestVariables are the agent, the path, and the probes of the page by kind, each from a
// family that this kind of probe has.
func loadTestVariables(b *boardBuilder, probes ...*dashboard.QueryVariableBuilder) {
	interval := metric.RunInterval.Name
	agentVariables(b, interval)
	b.WithVariable(labelValues(metric.Path, "Path", interval+"{"+thisAgent+"}"))
	for _, p := range probes {
		b.WithVariable(p)
	}
}

func probeVariable(name, label string, of *metric.Desc) *dashboard.QueryVariableBuilder {
	query := "label_values(" + from(anyTest, of) + ", " + metric.Probe + ")"
	return labelValues(name, label, "").Definition(query).
		Query(dashboard.StringOrMap{Map: map[string]any{
			"qryType": 1, "query": query, "refId": "PrometheusVariableQueryEditor-VariableQuery",
		}})
}

// loadTestAnnotations mark alerts of the path and, if asked for, load tests: on pages that
// have a point for each of them they are noise.
func loadTestAnnotations(b *boardBuilder) {
	testAnnotation(b, false)
	firing := `ALERTS{alertname=~"Oneway.*",alertstate="firing",` + anyTest + `}`
	b.Annotation(dashboard.NewAnnotationQueryBuilder().Name("Alerts").Datasource(datasource()).Enable(true).
		IconColor(red).Expr(firing + " unless " + firing + " offset 1m").Step("60s").
		TitleFormat("{{alertname}}").TextFormat("{{path}} {{probe}} {{direction}}").TagKeys("severity,direction"))
}

// testAnnotation colors the time in which a load test filled the path's link.
func testAnnotation(b *boardBuilder, shown bool) {
	b.Annotation(dashboard.NewAnnotationQueryBuilder().Name("Load tests").Datasource(datasource()).Enable(shown).
		IconColor(blue).Expr("max_over_time(" + from(anyTest, metric.TestRunning) + "[1m]) == 1").Step("30s").
		TitleFormat("Load test").TextFormat("{{probe}} on {{link}}").TagKeys("probe,link"))
}
