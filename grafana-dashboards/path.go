package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/rules"
)

// Uids that provisioning, links and runbooks refer to.
const (
	pathTitle     = "Path"
	pathUID       = "oneway-path"
	prometheusUID = "oneway-prometheus"
)

// pathBoard shows one path: a summary, delay, variation, loss and voice, then the quality of the clocks and of the
// measuring host.
func pathBoard() *boardBuilder {
	b := board(pathTitle, pathUID, "now-2h",
		"One path, both directions: delay with its error bound, delay variation, loss, voice quality, and the state of the clocks and of the measuring host.").
		Refresh("30s").Links(append(links(append([]page{{clockTitle, clockUID, "The clocks behind these delays"}, {voiceTitle, voiceUID, "A telephone call over this path"}}, loadTestPages(pathUID)...)...), runbooks())).
		Link(toRaw(rawIncidentPage(), metric.Probe)).Link(toRaw(rawTrackPage(), metric.Probe))
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

// variables adds the variables from left to right; each lists the values that the selection of those before it allows.
// Path and probe take one value each: a plot of two paths is not readable.
func variables(b *boardBuilder) {
	from := metric.PacketsSent.Name // present in both profiles from the start of the agent
	agentVariables(b, from)
	// With a site selected, only the labels of paths have it; with all, each path has a series of the other family.
	labels := metric.PathLabels.Name
	b.WithVariable(labelValues("site", "Site", labels+"{"+thisAgent+"}").IncludeAll(true).AllValue(".*").Current(all()))
	b.WithVariable(labelValues(metric.Path, "Path", `{__name__=~"`+from+"|"+labels+`",`+thisAgent+`,site=~"$site"}`))
	b.WithVariable(labelValues(metric.Probe, "Probe", from+"{"+thisAgent+`,path="$path"}`))
	b.WithVariable(labelValues(metric.CodecL, "Codec", of(metric.VoiceR)))
}

// agentVariables adds the variables of every dashboard: the datasource, the agents that have the family from, and the address of the runbooks. All
// dashboards use the same names, so that a link keeps the selection.
func agentVariables(b *boardBuilder, from string) {
	b.WithVariable(dashboard.NewDatasourceVariableBuilder("datasource").Label("Prometheus").Type("prometheus").
		Current(dashboard.VariableOption{
			Text:  dashboard.StringOrArrayOfString{String: new("oneway Prometheus")},
			Value: dashboard.StringOrArrayOfString{String: new(prometheusUID)},
		}))
	b.WithVariable(labelValues("job", "Job", from).IncludeAll(true).Multi(true).Current(all()))
	b.WithVariable(labelValues("instance", "Instance", from+`{job=~"$job"}`).IncludeAll(true).Multi(true).Current(all()))
	b.WithVariable(labelValues("url", "", rules.RunbooksURL.Name).Hide(dashboard.VariableHideHideVariable))
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

// annotations marks load tests of this path, alerts of the path or its agent, clock steps and restarts of the remote end
// on every panel.
func annotations(b *boardBuilder) {
	testAnnotation(b, true)
	maintenanceAnnotation(b, agentsRec(rules.MaintenanceNow.Name, `path="$path"`), "{{path}}")
	annotate(b, "Alerts", red,
		`ALERTS{alertname=~"Oneway.*",alertstate="firing",`+thisAgent+`,path=~"$path|"}`,
		"{{alertname}}", "{{path}} {{probe}} {{direction}}", "severity,direction")
	annotate(b, "Clock steps", purple, "increase("+of(metric.ClockSteps)+"[1m]) > 0",
		"Clock stepped", "{{instance}}", metric.ClockL)
	annotate(b, "Remote end restarts", yellow, "increase("+of(metric.RemoteRestarts)+"[1m]) > 0",
		"Reflector restarted: session state lost", "{{path}}", metric.Probe)
}

// scale returns a logarithmic axis.
func scale(base float64) *common.ScaleDistributionConfigBuilder {
	return common.NewScaleDistributionConfigBuilder().Type(common.ScaleDistributionLog).Log(base)
}
