package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/rules"
)

// buildInfo is the series of the version of a program, which client libraries of Prometheus have in this form.
const buildInfo = "oneway_build_info"

// agentsRow has the alerts that fire, and the agents with their clocks.
func agentsRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("Alerts, agents and clocks"))
	labels := "alertname, severity, site, site_pair, path, probe, direction, instance, job"
	firing := `ALERTS{alertname=~"Oneway.*",alertstate="firing",job=~"$job|",instance=~"$instance|"}`
	b.WithPanel(columns(text{
		"Alerts that fire", "The alerts of deploy/prometheus/rules that fire now, at most the newest 200, critical ones first. A click on an alert opens its runbook, one on a path its page.", "none",
		"No alert fires, no rules are loaded, or no agent is scraped",
	},
		column{title: "alert", label: "alertname", empty: "no rules, or no agent", emptyIf: &known{agentsRec(rules.PathStateNow.Name), "no alert fires"}, own: props{prop("custom.minWidth", 250), prop("links", cellLinks(cellLink{"Runbook of ${__data.fields.alert}", "${url:raw}/${__data.fields.alert}", true}))}},
		column{title: "severity", label: "severity", own: props{prop("custom.width", 80), cellColor("color-text"), prop("mappings", values(map[string]dashboard.ValueMappingResult{
			string(rules.Critical): word(string(rules.Critical), red, 0), string(rules.Warning): word(string(rules.Warning), orange, 1), string(rules.Info): word(string(rules.Info), blue, 2),
		}))}},
		column{title: "since", query: `label_replace(topk(200, 1000 * max by (` + labels + `) (last_over_time(ALERTS_FOR_STATE[5m]) and ignoring (alertstate) ` + firing + `)), "site", "$1", "site_pair", "(.+)")`, unit: "dateTimeFromNow", own: props{prop("custom.width", 140)}},
		column{title: metric.Path, label: metric.Path, own: props{prop("links", cellLinks(toPathOfRow()))}},
		column{title: "site", label: "site", own: props{prop("custom.width", 110)}},
		column{title: metric.Direction, label: metric.Direction, own: props{prop("custom.width", 85)}},
		column{title: "agent", label: "instance"},
		column{title: "sites", label: "site_pair", own: invisible()},
		column{title: metric.Probe, label: metric.Probe, own: invisible()},
		column{title: jobColumn, label: "job", own: invisible()},
	).Span(24).Height(9).Thresholds(steps(step{0, gray})).
		WithTransformation(sortedDown("since")).WithTransformation(sortedBy("severity")))
	each := func(expr string) string { return "max by (job, instance) (" + expr + ")" }
	lately := func(series string) string { return "last_over_time(" + series + "[1h])" }
	b.WithPanel(columns(text{
		"Agents and clocks", "Each agent: whether it is scraped, its version, the last reload of its configuration, its paths and how many of them are not up, and the state of its clock with its error bound. Agents that are not scraped come first. A click on an agent opens the page of its clocks.", "none",
		"No agent is scraped",
	},
		column{title: "agent", label: "instance", empty: "no agent", own: props{prop("custom.minWidth", 185), prop("links", cellLinks(cellLink{Title: "Clocks of ${__data.fields.agent}", URL: "/d/" + clockUID + "?var-datasource=" + datasourceInUse + fieldsOf(jobColumn, "job", "agent", "instance") + "&${__url_time_range}"}))}},
		column{title: "scraped", query: each("up{" + thisAgent + "}"), own: props{cellColor("color-text"), prop("custom.width", 75), prop("mappings", append(values(map[string]dashboard.ValueMappingResult{
			"1": word("yes", green, 0), "0": word("no", red, 1),
		}), missing(gray)))}},
		column{title: "version", label: "version", own: props{prop("custom.width", 90)}},
		column{title: "build", query: "max by (job, instance, version) (" + lately(recFrom(thisAgent, buildInfo)) + ")", own: invisible()},
		column{title: "reload", query: each(agents(metric.ConfigReloadSuccess)), own: props{cellColor("color-text"), prop("custom.width", 70), prop("mappings", append(values(map[string]dashboard.ValueMappingResult{
			"1": word("ok", green, 0), "0": word("failed", red, 1),
		}), missing(gray)))}},
		column{title: "loaded", query: each("1000 * " + lately(agents(metric.ConfigReloadTime))), unit: "dateTimeFromNow", own: props{prop("custom.width", 140)}},
		column{title: "paths", query: "sum by (job, instance) (" + agentsRec(rules.PathStateCount.Name) + ")", own: props{prop("custom.width", 60), prop("decimals", 0)}},
		column{title: "not up", query: "sum by (job, instance) (" + agentsRec(rules.PathStateCount.Name, `state!="0"`) + ")", own: append(coloredFrom(step{0, gray}, step{1, orange}), prop("custom.width", 65), prop("decimals", 0))},
		column{title: "clock", query: each(stateNumber(agents)), own: props{cellColor("color-text"), prop("custom.width", 140), prop("mappings", append(values(stateNumbers()), missing(gray)))}},
		column{title: "bound", query: each(agents(metric.ClockErrorBound)), unit: "s", own: append(coloredFrom(step{0, gray}, step{rules.ThresholdClockErrorSeconds.Default, orange}, step{0.1, red}), prop("custom.width", 80))},
		column{title: jobColumn, label: "job", own: invisible()},
	).Span(24).Height(9).Thresholds(steps(step{0, gray})).
		WithTransformation(sortedDown("not up")).WithTransformation(sortedBy("scraped")))
}
