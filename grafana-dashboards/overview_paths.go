package main

import (
	"slices"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/pathstate"
	"oneway.example/exporter/core/rules"
	"oneway.example/exporter/estimate/voice"
)

const (
	byProbe = "job, instance, path, probe"
	// orderColumn has what the list is sorted by.
	orderColumn = "order"
	jobColumn   = "job"
)

// severity orders the selected paths.
func severity() string { return ofSite(agentsRec(rules.PathSeverity.Name)) }

// worst are the paths that are listed.
func worst() string { return "topk($" + rowsVariable + ", " + severity() + ")" }

// listed are the values of the listed paths.
func listed(expr string) string {
	return "max by (" + byProbe + ") (" + expr + ") and on (" + byProbe + ") " + worst()
}

// listedTests are the values of load tests of the listed paths, which have probes of their own.
func listedTests(expr string) string {
	return "0 * " + worst() + " + on (job, instance, path) group_left () max by (job, instance, path) (" + expr + ")"
}

// pathsRow lists the worst paths.
func pathsRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("Paths, the worst first"))
	cs := []column{
		{title: metric.Path, label: metric.Path, empty: "no agent, or no rules", own: props{prop("custom.width", 190), prop("links", cellLinks(toPathOfRow()))}},
		{title: "state", query: listed(statesNow()), own: props{
			prop("mappings", append(pathStateWords(), missing("transparent"))), cellColor("color-background"), prop("custom.width", 80), prop("custom.align", "center"),
		}},
		{title: "reason", query: listed(agentsRec(metric.PathStateReason.Name) + " or on (" + byProbe + ") (0 * " + agentsRec(rules.PathStateNow.Name) + " - 1)"), own: props{
			prop("mappings", append(reasonWords(), missing(gray))), cellColor("color-text"), prop("custom.width", 155), prop("custom.align", "left"),
		}},
	}
	cs = append(cs, column{title: "work until", query: listedTests("1000 * " + agentsRec(rules.MaintenanceNow.Name)), unit: "dateTimeFromNow", own: props{prop("custom.width", 125)}})
	for _, d := range []struct{ arrow, matcher string }{{"→", forward}, {"←", reverse}} {
		p95 := agentsRec(rules.DelayQuantiles5m.Name, d.matcher, `quantile_rank="0.95"`)
		base := agentsRec(rules.DelayBaseline.Name, d.matcher)
		cs = append(cs,
			column{title: "p50 " + d.arrow, query: listed(agentsRec(metric.DelayQuantile.Name, d.matcher, `quantile_rank="0.5"`)), unit: "s"},
			column{title: "± " + d.arrow, query: listed(agentsRec(metric.DelayErrorBound.Name, d.matcher)), unit: "s"},
			column{title: "p95 " + d.arrow, query: listed(p95), unit: "s"},
			column{title: "× base " + d.arrow, query: listed(p95 + " / (" + base + " > 0)"), own: append(coloredFrom(
				step{0, gray}, step{rules.ThresholdDelayBlowUpRatio.Default, orange}), prop("decimals", 1))},
			column{title: "loss " + d.arrow, query: listed(lossOf(d.matcher)), unit: "percentunit", own: coloredFrom(
				step{0, gray}, step{rules.ThresholdLossRatio.Default, orange}, step{0.05, red})},
		)
	}
	cs = append(cs,
		column{title: "R", query: "min by (" + byProbe + ") (" + agentsRec(rules.VoiceRMost.Name) + ") and on (" + byProbe + ") " + worst(), own: append(coloredFrom(
			step{0, red}, step{rules.ThresholdRFactor.Default, orange}, step{voice.Satisfied, gray}), prop("decimals", 0))},
		column{title: "under load", query: listedTests(agentsRec(metric.WorkingDelay.Name, `quantile_rank="0.95"`)), unit: "s"},
		column{title: "last run", query: listedTests("1000 * " + agentsRec(metric.RunLast.Name)), unit: "dateTimeFromNow", own: props{prop("custom.width", 140)}},
		column{title: metric.Probe, label: metric.Probe, own: props{prop("custom.width", 90)}},
		column{title: "agent", label: "instance", own: props{prop("custom.width", 185)}},
		column{title: jobColumn, label: "job", own: invisible()},
		column{title: orderColumn, query: listed(severity()), own: invisible()},
	)
	b.WithPanel(columns(text{
		"Worst paths",
		"The agent decides state and reason (METRICS.md, States of paths: " + pathstate.StateNumbers() + "); a path whose agent is not scraped is unknown. Forward is →, reverse ←. Median of the last window and its error bound ±; 95th percentile of 5 minutes, and how many times its baseline of " + baselineDays() + " it is: orange from " + plain(rules.ThresholdDelayBlowUpRatio.Default) + ". Work until is the planned end of a maintenance that is under way. Loss of 5 minutes, of a path that is down the loss of round trips. R is the best of all codecs in the worse direction. Under load: p95 of the delay of others beside the last load test. The variable Worst has the number of rows; a click on a path opens its page.",
		"none", noStates,
	}, cs...).Span(24).Height(14).Thresholds(steps(step{0, gray})).
		WithTransformation(sortedDown(orderColumn)))
}

// sortedDown sorts by a field, the largest value first.
func sortedDown(field string) dashboard.DataTransformerConfig {
	return transform("sortBy", map[string]any{"fields": map[string]any{}, "sort": []map[string]any{{"field": field, "desc": true}}})
}

// lossOf is the loss ratio of a direction; of a path without replies, the loss of round trips.
func lossOf(matcher string) string {
	return agentsRec(rules.LossRatio5m.Name, matcher) + " or on (" + byProbe + ") (" + agentsRec(metric.RoundTripLossRatio.Name) +
		" and on (" + byProbe + ") " + agentsRec(rules.PathStateNow.Name) + " == " + plain(float64(pathstate.Down)) + ")"
}

// coloredFrom colors the text of a cell by thresholds.
func coloredFrom(ss ...step) props {
	ss = slices.Clone(ss)
	for i := range ss {
		ss[i].color = forText(ss[i].color)
	}
	return props{prop("thresholds", thresholds(ss...)), cellColor("color-text"), prop("mappings", []dashboard.ValueMapping{missing(gray)})}
}

func cellColor(kind string) dashboard.DynamicConfigValue {
	return prop("custom.cellOptions", map[string]string{"type": kind, "mode": "basic"})
}

// missing maps a missing value to a dash, in a color that is transparent where it is the color of the cell.
func missing(colorName string) dashboard.ValueMapping {
	return dashboard.ValueMapping{SpecialValueMap: &dashboard.SpecialValueMap{
		Type: dashboard.MappingTypeSpecialValue,
		Options: dashboard.DashboardSpecialValueMapOptions{
			Match: dashboard.SpecialValueMatchNullAndNan, Result: dashboard.ValueMappingResult{Text: new("–"), Color: &colorName},
		},
	}}
}

// cellLink is a link of a cell.
type cellLink struct {
	Title string `json:"title"`
	URL   string `json:"url"`
	Blank bool   `json:"targetBlank,omitempty"`
}

func cellLinks(all ...cellLink) []cellLink { return all }

// toPathOfRow opens the page of the path of a row, with the same time range.
func toPathOfRow() cellLink {
	return cellLink{Title: "Path ${__data.fields.path}", URL: "/d/" + pathUID + "?var-datasource=" + datasourceInUse + fieldsOf(jobColumn, "job", "agent", "instance", metric.Path, metric.Path, metric.Probe, metric.Probe) + "&${__url_time_range}"}
}

// fieldsOf are variables with the values of fields of a row, in pairs of field and variable.
func fieldsOf(pairs ...string) (query string) {
	for i := 0; i < len(pairs); i += 2 {
		query += "&var-" + pairs[i+1] + "=${__data.fields." + pairs[i] + "}"
	}
	return query
}
