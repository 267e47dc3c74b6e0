package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	tablepanel "github.com/grafana/grafana-foundation-sdk/go/table"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/rules"
	"oneway.example/exporter/estimate/voice"
)

// noSites is the text of a matrix without a cell: paths have no sites, or lack a value for a reason.
func noSites(without string) string {
	return "No path of this selection has the label site (labels in the configuration, or a mesh), or " + without
}

// labeled selects the paths of the selected sites.
const labeled = "{" + thisAgent + `,site!="",site=~"$site"}`

// matrixRow has matrices of agents by the sites of their peers, for meshes of up to 50 sites.
func matrixRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("Agent by site: the worst path of each pair"))
	b.WithPanel(matrix(text{
		"State", "The worst state of the paths of an agent (row) to a site (column), by the label site of the paths. A click on a cell opens the page of such a path.", "none", noSites("no state is recorded (deploy/prometheus/rules)"),
	}, "max", agentsRec(rules.PathStateNow.Name), "last_over_time("+metric.PathLabels.Name+labeled+"[1h])", props{prop("noValue", "–"), prop("mappings", append(pathStateWords(), missing("transparent"))), cellColor("color-background")}, steps(step{0, gray})).Span(24))
	bothDirections(b, func(name, matcher string) *tablepanel.PanelBuilder {
		return matrix(text{
			"Delay " + name, "The largest median " + name + " of the last window, of an agent's paths to a site. The error bounds are on the page of the path.", "s", noSites("none of them has a delay of this direction: no packet, or a clock that is not synchronized (Agents and clocks above)"),
		}, "max", agentsRec(metric.DelayQuantile.Name, matcher, `quantile_rank="0.5"`), metric.PathLabels.Name+labeled, append(dashes(), prop("color", map[string]string{"mode": "continuous-GrYlRd"}), cellColor("color-background")), steps(step{0, gray}))
	})
	bothDirections(b, func(name, matcher string) *tablepanel.PanelBuilder {
		return matrix(text{
			"Loss " + name, "The largest loss " + name + " of 5 minutes, of an agent's paths to a site; of a path that is down the loss of round trips. Orange from " + inPercent(rules.ThresholdLossRatio) + ".", "percentunit", noSites("none of them has a loss of this direction: the reflector does not count, or no rules (deploy/prometheus/rules)"),
		}, "max", lossOf(matcher), metric.PathLabels.Name+labeled, append(dashes(), cellColor("color-background")), steps(step{0, green}, step{rules.ThresholdLossRatio.Default, orange}, step{0.05, red}))
	})
	bothDirections(b, func(name, matcher string) *tablepanel.PanelBuilder {
		return matrix(text{
			"Call quality R " + name, "The smallest R " + name + " of an agent's paths to a site, with the best codec of each. Good from " + plain(voice.Satisfied) + ", orange from " + plain(rules.ThresholdRFactor.Default) + ".", "none", noSites("none of them has a rating: profile slim, or a clock that is not synchronized (Agents and clocks above)"),
		}, "min", agentsRec(rules.VoiceRMost.Name, matcher), metric.PathLabels.Name+labeled, append(dashes(), cellColor("color-background")), steps(step{0, red}, step{rules.ThresholdRFactor.Default, orange}, step{voice.Satisfied, green}))
	})
}

// matrix is a table of the agents by the sites of their paths, which labels has. The labels of an agent that is not scraped are the last ones.
func matrix(t text, of, expr, labels string, shades props, ss *dashboard.ThresholdsConfigBuilder) *tablepanel.PanelBuilder {
	query := of + " by (instance, site) ((" + expr + ") * on (job, instance, path) group_left (site) " + labels + ")"
	p := plainTable(t).Height(9).MinWidth(76).Decimals(1).Targets(targets(one(table(query)))).Thresholds(ss).
		OverrideByFieldType("number", append(shades, prop("custom.align", "center"), prop("links", cellLinks(cellLink{
			Title: "Path to ${__field.name}", URL: "/d/" + pathUID + "?var-datasource=" + datasourceInUse + "&var-instance=${__data.fields.agent}&var-site=${__field.name}&${__url_time_range}",
		})))).
		OverrideByName("agent", props{prop("custom.width", 185)})
	return p.WithTransformation(sortedBy("site")).
		WithTransformation(transform("groupingToMatrix", map[string]any{"rowField": "instance", "columnField": "site", "valueField": "Value", "emptyValue": "null"})).
		WithTransformation(transform("organize", map[string]any{"renameByName": map[string]string{`instance\site`: "agent"}})).
		// An agent without a path to the first site would be the last one.
		WithTransformation(sortedBy("agent"))
}
