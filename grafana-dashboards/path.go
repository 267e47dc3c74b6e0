package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"

	"oneway.example/exporter/metric"
)

// Uids that other files refer to: provisioning, links, runbooks.
const (
	pathUID       = "oneway-path"
	prometheusUID = "oneway-prometheus"
)

// pathBoard is all that is known of one path, in the order in which it is asked:
// is it well, what is the delay, what else, and can the numbers be believed.
func pathBoard() *boardBuilder {
	b := newBoard("oneway / Path").Uid(pathUID).Tags([]string{"oneway"}).
		Description("One path, both directions: delay with its error bound, loss, variation, voice, and whether the clocks and this host can be believed.").
		Readonly().Refresh("30s").Time("now-2h", "now").Timezone("browser").
		Tooltip(dashboard.DashboardCursorSyncCrosshair).
		Links(links(append([]page{{"Clock", clockUID, "The clocks behind these delays"}}, loadTestPages(pathUID)...)...))
	variables(b)
	annotations(b)
	summaryRow(b)
	delayRow(b)
	variationRow(b)
	lossRow(b)
	voiceRow(b)
	clockRow(b)
	selfRow(b)
	return b
}

// variables are chosen from left to right; each offers what the ones before it
// leave. Path and probe take one value: two paths in one plot cannot be read.
func variables(b *boardBuilder) {
	from := metric.PacketsSent.Name // of both profiles, and from the beginning
	agentVariables(b, from)
	b.WithVariable(labelValues(metric.Path, "Path", from+"{"+thisAgent+"}"))
	b.WithVariable(labelValues(metric.Probe, "Probe", from+"{"+thisAgent+`,path="$path"}`))
	b.WithVariable(labelValues(metric.CodecL, "Codec", of(metric.VoiceR)))
}

// agentVariables are those of every dashboard: the server, and agents that have the
// family from. Both pages name them alike, so that a link keeps what was chosen.
func agentVariables(b *boardBuilder, from string) {
	b.WithVariable(dashboard.NewDatasourceVariableBuilder("datasource").Label("Prometheus").Type("prometheus").
		Current(dashboard.VariableOption{
			Text:  dashboard.StringOrArrayOfString{String: new("oneway Prometheus")},
			Value: dashboard.StringOrArrayOfString{String: new(prometheusUID)},
		}))
	b.WithVariable(labelValues("job", "Job", from).IncludeAll(true).Multi(true).Current(all()))
	b.WithVariable(labelValues("instance", "Instance", from+`{job=~"$job"}`).IncludeAll(true).Multi(true).Current(all()))
}

func all() dashboard.VariableOption {
	return dashboard.VariableOption{
		Text:  dashboard.StringOrArrayOfString{ArrayOfString: []string{"All"}},
		Value: dashboard.StringOrArrayOfString{ArrayOfString: []string{"$__all"}},
	}
}

func labelValues(name, label, of string) *dashboard.QueryVariableBuilder {
	return dashboard.NewQueryVariableBuilder(name).Label(label).Datasource(datasource()).
		Query(dashboard.StringOrMap{Map: map[string]any{
			"qryType": 1, "query": "label_values(" + of + ", " + name + ")",
			"refId": "PrometheusVariableQueryEditor-VariableQuery",
		}}).
		Definition("label_values(" + of + ", " + name + ")").
		Refresh(dashboard.VariableRefreshOnTimeRangeChanged).Sort(dashboard.VariableSortAlphabeticalAsc)
}

// annotations mark on every panel what happened when: load tests of this path, alerts
// of it or of its agent, clock steps, restarts of the remote end.
func annotations(b *boardBuilder) {
	testAnnotation(b, true)
	note := func(name, colorName, expr, title, txt, tags string) {
		b.Annotation(dashboard.NewAnnotationQueryBuilder().Name(name).Datasource(datasource()).Enable(true).
			IconColor(colorName).Expr(expr).Step("60s").TitleFormat(title).TextFormat(txt).TagKeys(tags))
	}
	note("Alerts", red,
		`ALERTS{alertname=~"Oneway.*",alertstate="firing",`+thisAgent+`,path=~"$path|"}`,
		"{{alertname}}", "{{path}} {{probe}} {{direction}}", "severity,direction")
	note("Clock steps", purple, "increase("+of(metric.ClockSteps)+"[1m]) > 0",
		"Clock stepped", "{{instance}}", metric.ClockL)
	note("Remote end restarts", yellow, "increase("+of(metric.RemoteRestarts)+"[1m]) > 0",
		"Reflector lost its session", "{{path}}", metric.Probe)
}

// scale is a logarithmic axis.
func scale(base float64) *common.ScaleDistributionConfigBuilder {
	return common.NewScaleDistributionConfigBuilder().Type(common.ScaleDistributionLog).Log(base)
}
