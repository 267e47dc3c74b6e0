package main

import (
	"slices"
	"time"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/rules"
)

// Selectors of the pages of load tests. Each probe type has a variable of its own, so that a link that keeps variables
// does not select a probe of another type.
const (
	anyTest   = thisAgent + `,path="$path"`
	saturated = anyTest + `,probe="$saturation"`
	trained   = anyTest + `,probe="$train"`
	crossed   = anyTest + `,probe="$size_sweep",direction="$direction"`
)

// Texts of empty panels.
const (
	// slimOr begins the text of a panel of runs without series of profile slim; most texts end with a time range.
	slimOr = "Profile slim, or "
	noRun  = "No run of a load test was due so far, or no load test is configured on this path"
	noLoad = "No completed run of the probe saturation on this path"
	// noDetail is noLoad for families that profile slim does not have.
	noDetail = slimOr + "no completed run of the probe saturation on this path"
	// noState is the text for a missing result of a run in mode fixed.
	noState = slimOr + "no completed run in mode fixed with a result"
)

// inBits is bits per second, the usual unit of link rates; metrics count bytes.
const inBits = "bps"

func bitsOf(expr string) string { return "8 * " + expr }

// fresh keeps the value of a run only where a run has just ended. A gauge keeps the value of the last run; plotted
// without this filter, one run looks like many.
func fresh(base, expr string) string {
	run := from(base, metric.RunLast)
	return expr + " and on (job, instance, path, probe) (changes(" + run + rateInterval + ") > 0 or (" +
		run + " unless " + run + " offset $__rate_interval))"
}

// runs plots one point per run and connects points that are at most apart() from each other.
func runs(p *timeseries.PanelBuilder) *timeseries.PanelBuilder {
	return p.ShowPoints(always).PointSize(5).SpanNulls(apart())
}

// loadTestPages are the pages of a path except one: Path first, then those of load tests.
func loadTestPages(but string) []page {
	return slices.DeleteFunc([]page{
		{pathTitle, pathUID, "Delay, loss and voice quality of this path"},
		{loadTitle, loadUID, "Throughput, queue and delay of this path under load"},
		{capacityTitle, capacityUID, "Packet trains, path MTU, and packet size by packet rate on this path"},
		{tcpTitle, tcpUID, "Throughput of TCP on this path, and what limits it"},
		{bufferSweepTitle, bufferSweepUID, "TCP on this path by buffer size and congestion control"},
		{fairnessTitle, fairnessUID, "How TCP flows share this path"},
	}, func(p page) bool { return p.uid == but })
}

// loadTestPage is a page of load tests.
type loadTestPage struct {
	title, uid, description string
	// from is the begin of the time that it shows.
	from string
	// raw are its links to pages of raw points.
	raw []cog.Builder[dashboard.DashboardLink]
	// variables follow the agent and the path: one for each probe type, from a family of that type, then others.
	variables []cog.Builder[dashboard.VariableModel]
	// rows add their panels. The row of the runs follows them on each page.
	rows []func(b *boardBuilder)
}

func (p loadTestPage) board() *boardBuilder {
	b := board(p.title, p.uid, p.from, p.description).Refresh("1m").
		Links(append(append(links(loadTestPages(p.uid)...), p.raw...), runbooks()))
	interval := metric.RunInterval.Name
	agentVariables(b, interval)
	b.WithVariable(labelValues(metric.Path, "Path", interval+"{"+thisAgent+"}"))
	for _, v := range p.variables {
		b.WithVariable(v)
	}
	loadTestAnnotations(b)
	for _, row := range append(p.rows, loadTestRunsRow) {
		row(b)
	}
	return b
}

func probeVariable(name, label string, of *metric.Desc) *dashboard.QueryVariableBuilder {
	query := "label_values(" + from(anyTest, of) + ", " + metric.Probe + ")"
	return labelValues(name, label, "").Definition(query).
		Query(dashboard.StringOrMap{Map: map[string]any{
			"qryType": 1, "query": query, "refId": "PrometheusVariableQueryEditor-VariableQuery",
		}})
}

// loadTestAnnotations marks alerts of the path. Load tests are an annotation that is off by default, since these pages have
// a point for each of them.
func loadTestAnnotations(b *boardBuilder) {
	testAnnotation(b, false)
	firing := `ALERTS{alertname=~"Oneway.*",alertstate="firing",` + anyTest + `}`
	annotate(b, "Alerts", red, firing+" unless "+firing+" offset 1m", "{{alertname}}", "{{path}} {{probe}} {{direction}}", "severity,direction")
}

// testAnnotation marks the time in which a load test of any path affects this one, and the minute after: a short test falls
// between two scrapes.
func testAnnotation(b *boardBuilder, shown bool) {
	b.Annotation(dashboard.NewAnnotationQueryBuilder().Name("Load tests").Datasource(datasource()).Enable(shown).
		IconColor(blue).Expr(rules.Tested(from(anyTest, metric.PathTested), time.Minute, time.Minute)).Step("30s").
		TitleFormat("Load test").TextFormat("on a link of {{path}}"))
}
