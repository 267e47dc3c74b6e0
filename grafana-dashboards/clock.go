package main

import (
	"slices"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"

	"oneway.example/exporter/metric"
)

// clockUID is the page that links and runbooks refer to.
const clockUID = "oneway-clock"

// Legends: with several agents on the page, each line says whose it is.
const (
	byInstance  = "{{instance}}"
	byPath      = "{{path}}/{{probe}} · {{instance}}"
	byDirection = "{{path}}/{{probe}} {{direction}} · {{instance}}"
)

// What an empty panel says where nothing was configured.
const (
	noPulse    = "No pulse configured (clock: pps), or none came"
	noReceiver = "No receiver configured (clock: gpsd), or it is not heard"
	noDaemon   = "The clock daemon is silent, or there is none"
)

// clockBoard is all that is known of the clocks of one or several agents, in the
// order in which it is asked: are they good, how good, by which pulse and receiver,
// does anybody disagree, and what does it do to the delays.
func clockBoard() *boardBuilder {
	b := newBoard("oneway / Clock").Uid(clockUID).Tags([]string{"oneway"}).
		Description("The clocks behind the one-way delays: state, error bound, source, pulse, receiver, the pulses' own judgment, the remote ends, and what all that does to the delays.").
		Readonly().Refresh("30s").Time("now-2h", "now").Timezone("browser").
		Tooltip(dashboard.DashboardCursorSyncCrosshair).
		Links(links(page{"Path", pathUID, "Delay, loss and voice of this agent's paths"}))
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

// page is another dashboard, as a link to it says.
type page struct{ title, uid, tooltip string }

// links are those of every dashboard: all others, its companions with the same agent,
// path and time range, and the runbooks.
func links(pages ...page) []cog.Builder[dashboard.DashboardLink] {
	out := []cog.Builder[dashboard.DashboardLink]{
		dashboard.NewDashboardLinkBuilder("oneway dashboards").Type(dashboard.DashboardLinkTypeDashboards).
			Tags([]string{"oneway"}).AsDropdown(true).KeepTime(true).IncludeVars(true).Icon("apps"),
	}
	for _, p := range pages {
		out = append(out, dashboard.NewDashboardLinkBuilder(p.title).Type(dashboard.DashboardLinkTypeLink).
			Url("/d/"+p.uid).KeepTime(true).IncludeVars(true).Icon("dashboard").Tooltip(p.tooltip))
	}
	return append(out, dashboard.NewDashboardLinkBuilder("Runbooks").Type(dashboard.DashboardLinkTypeLink).
		Url("https://oneway.example/runbooks").Icon("doc").TargetBlank(true).
		Tooltip("What each alert means and what to do"))
}

// clockAnnotations mark when an alert began, not how long it lasted: areas of several
// alerts would color over the thresholds.
func clockAnnotations(b *boardBuilder) {
	firing := `ALERTS{alertname=~"Oneway.*",component="clock",alertstate="firing",` + thisAgent + `}`
	note := func(name, colorName, expr, title, txt, tags string) {
		b.Annotation(dashboard.NewAnnotationQueryBuilder().Name(name).Datasource(datasource()).Enable(true).
			IconColor(colorName).Expr(expr).Step("60s").TitleFormat(title).TextFormat(txt).TagKeys(tags))
	}
	note("Clock alerts", red, firing+" unless "+firing+" offset 1m",
		"{{alertname}}", "{{instance}} {{path}} {{direction}}", "severity")
	note("Clock steps", purple, "increase("+agents(metric.ClockSteps)+"[1m]) > 0",
		"Clock stepped", byInstance, metric.ClockL)
}

// agents selects the series of a family of the chosen agents, whatever their path.
func agents(d *metric.Desc, matchers ...string) string { return agentsRec(d.Name, matchers...) }

// agentsRec selects recorded series of the chosen agents, whatever their path.
func agentsRec(name string, matchers ...string) string {
	return name + "{" + strings.Join(slices.Concat([]string{thisAgent}, matchers), ",") + "}"
}

// orNone gives each chosen agent without a series a row with this value: a state
// timeline that has no data complains of it, and does not say why.
func orNone(expr, value string, labels ...string) string {
	none := "0 * " + agents(metric.ClockSynchronized) + " + " + value
	for _, l := range labels {
		none = "label_replace(" + none + `, "` + l + `", "none", "", "")`
	}
	return "(" + expr + ") or on (job, instance) (" + none + ")"
}

// toPath leads from a series of a path to that path's page, at the same time.
func toPath() []cog.Builder[dashboard.DashboardLink] {
	label := func(name string) string { return "&var-" + name + "=${__field.labels." + name + "}" }
	return []cog.Builder[dashboard.DashboardLink]{
		dashboard.NewDashboardLinkBuilder("Path ${__field.labels.path}").Type(dashboard.DashboardLinkTypeLink).
			Url("/d/" + pathUID + "?var-datasource=" + datasourceInUse +
				label("job") + label("instance") + label(metric.Path) + label(metric.Probe) + "&${__url_time_range}"),
	}
}
