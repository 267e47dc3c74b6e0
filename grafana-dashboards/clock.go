package main

import (
	"slices"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"

	"oneway.example/exporter/core/metric"
)

// clockUID is the uid that links and runbooks refer to.
const (
	clockTitle = metric.TitleClock
	clockUID   = "oneway-clock"
)

// Legends with the instance, since the page can show several agents.
const (
	byInstance  = "{{instance}}"
	byPath      = "{{path}}/{{probe}} · {{instance}}"
	byDirection = "{{path}}/{{probe}} {{direction}} · {{instance}}"
)

// Texts of empty panels.
const (
	noPulse    = "No pulse configured (clock: pps), or no pulse received"
	noReceiver = "No receiver configured (clock: gpsd), or no data from it"
	noDaemon   = "No clock daemon configured, or no reply from it"
)

// clockBoard shows the clocks of one or several agents: state, error bounds, pulse, comparison with the pulses, receiver,
// remote clocks, and the effect on the delays.
func clockBoard() *boardBuilder {
	b := board(clockTitle, clockUID, "now-2h",
		"The clocks that the one-way delays depend on: state, error bound, source, pulse per second, comparison with the pulses, receiver, remote clocks, and the effect on the delays.").
		Refresh("30s").Links(append(links(page{pathTitle, pathUID, "Delay, loss and voice quality of this agent's paths"}), runbooks()))
	agentVariables(b, metric.ClockSynchronized.Name)
	clockAnnotations(b)
	clockNowRow(b)
	clockBoundRow(b)
	clockPulseRow(b)
	clockJudgeRow(b)
	clockReceiverRow(b)
	clockRemoteRow(b)
	clockDelayRow(b)
	return b
}

// page is the link to another dashboard.
type page struct{ title, uid, tooltip string }

// links returns the links of a dashboard: the list of all dashboards, and the given pages with the same agent, path and
// time range.
func links(pages ...page) []cog.Builder[dashboard.DashboardLink] {
	out := []cog.Builder[dashboard.DashboardLink]{
		dashboard.NewDashboardLinkBuilder("oneway dashboards").Type(dashboard.DashboardLinkTypeDashboards).
			Tags([]string{"oneway"}).AsDropdown(true).KeepTime(true).IncludeVars(true).Icon("apps"),
	}
	for _, p := range pages {
		out = append(out, dashboard.NewDashboardLinkBuilder(p.title).Type(dashboard.DashboardLinkTypeLink).
			Url("/d/"+p.uid).KeepTime(true).IncludeVars(true).Icon("dashboard").Tooltip(p.tooltip))
	}
	return out
}

// runbooks is the link to the runbooks, at the address that the alerts have as well.
func runbooks() cog.Builder[dashboard.DashboardLink] {
	return dashboard.NewDashboardLinkBuilder("Runbooks").Type(dashboard.DashboardLinkTypeLink).
		Url("${url:raw}/").Icon("doc").TargetBlank(true).
		Tooltip("Meaning of each alert and what to do")
}

// clockAnnotations marks the start of each alert and not its duration: areas of several alerts would hide the thresholds.
func clockAnnotations(b *boardBuilder) {
	firing := `ALERTS{alertname=~"Oneway.*",component="clock",alertstate="firing",` + thisAgent + `}`
	annotate(b, "Clock alerts", red, firing+" unless "+firing+" offset 1m",
		"{{alertname}}", "{{instance}} {{path}} {{direction}}", "severity")
	annotate(b, "Clock steps", purple, "increase("+agents(metric.ClockSteps)+"[1m]) > 0",
		"Clock stepped", byInstance, metric.ClockL)
}

// agents selects the series of a family of the selected agents, of all paths.
func agents(d *metric.Desc, matchers ...string) string { return agentsRec(d.Name, matchers...) }

// agentsRec selects recorded series of the selected agents, of all paths.
func agentsRec(name string, matchers ...string) string {
	return name + "{" + strings.Join(slices.Concat([]string{thisAgent}, matchers), ",") + "}"
}

// orNone adds a series with this value for each selected agent that has none: a state timeline without data does not show
// its noValue text.
func orNone(expr, value string, labels ...string) string {
	none := "0 * " + agents(metric.ClockSynchronized) + " + " + value
	for _, l := range labels {
		none = "label_replace(" + none + `, "` + l + `", "none", "", "")`
	}
	return "(" + expr + ") or on (job, instance) (" + none + ")"
}

// toPath links a series of a path to the page of that path with the same time range.
func toPath() []cog.Builder[dashboard.DashboardLink] {
	label := func(name string) string { return "&var-" + name + "=${__field.labels." + name + "}" }
	return []cog.Builder[dashboard.DashboardLink]{
		dashboard.NewDashboardLinkBuilder("Path ${__field.labels.path}").Type(dashboard.DashboardLinkTypeLink).
			Url("/d/" + pathUID + "?var-datasource=" + datasourceInUse +
				label("job") + label("instance") + label(metric.Path) + label(metric.Probe) + "&${__url_time_range}"),
	}
}
