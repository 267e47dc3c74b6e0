package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"

	"oneway.example/exporter/core/event"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/rules"
)

const (
	// together is the time in which events of one kind at one site are one line, from the first of them on.
	together = 10 * time.Minute
	// ofEvent are the labels of the events of one kind at one site.
	ofEvent = "kind, site"
	// mostEvents is the number of lines that are listed.
	mostEvents = 200
)

// eventsRow lists what happened in the time range, the newest first.
func eventsRow(b *boardBuilder) {
	b.WithRow(dashboard.NewRowBuilder("Events"))
	b.WithPanel(columns(text{
		"Events",
		fmt.Sprintf("What happened to paths and agents in the time range, the newest first: of each path the last event of a kind. Events of one kind at one site within %.0f minutes are one line with the number of paths. A click on a site or a path opens its page. InfluxDB has each event with its text (measurement oneway_event).", together.Minutes()),
		"none", "No event in this time, no agent is scraped, or deploy/prometheus/rules is not loaded",
	},
		column{title: "since", label: "since", own: props{prop("unit", "dateTimeAsIsoNoDateIfToday"), prop("custom.width", 165), prop("custom.align", "left")}},
		column{title: "what", label: "kind", empty: "none, or no rules", own: props{prop("mappings", kindWords()), cellColor("color-text"), prop("custom.width", 165)}},
		column{title: "paths", query: eventLines(), own: props{prop("custom.width", 65), prop("decimals", 0)}},
		column{title: "site", label: "site", own: props{prop("custom.width", 150), prop("links", cellLinks(toPathPage("Paths to ${__data.fields.site}", "site", "site")))}},
		column{title: metric.Path, label: metric.Path, own: props{prop("custom.width", 190), prop("links", cellLinks(toPathPage("Path ${__data.fields.path}", jobColumn, "job", "agent", "instance", metric.Path, metric.Path)))}},
		column{title: "agent", label: "instance", own: props{prop("custom.width", 185)}},
		column{title: "text", label: "text", own: props{prop("mappings", kindTexts())}},
		column{title: jobColumn, label: "job", own: invisible()},
	).Span(24).Height(10).Thresholds(steps(step{0, gray})).
		WithTransformation(transform("convertFieldType", map[string]any{"conversions": []map[string]any{{"targetField": "since", "destinationType": "number"}}})).
		WithTransformation(sortedDown("since")).
		WithTransformation(transform("limit", map[string]any{"limitField": mostEvents})))
}

// eventLines are the lines: the number of paths, with the labels kind, text and since (milliseconds), and the site of several paths, or the path or agent of one.
func eventLines() string {
	in := func(more string) string {
		return "(" + recFrom(thisAgent+`,site=~"$site"`+more, rules.EventLast.Name) + " > $__from / 1000)"
	}
	sited := in(`,site!=""`)
	first := " on (" + ofEvent + ") group_left () min by (" + ofEvent + ") (" + sited + ")"
	begin := fmt.Sprintf("%.0f * floor((%s -%s) / %.0f) +%s", together.Seconds(), sited, first, together.Seconds(), first)
	grouped := `count_values by (job, instance, path, ` + ofEvent + `) ("since", round(1000 * (` + begin + ")))"
	number := "sum by (" + ofEvent + ", since) (" + grouped + ")"
	lines := number + " > 1\nor\n" +
		`count_values by (job, instance, path, ` + ofEvent + `) ("since", round(1000 * ` + sited + ")) and on (job, instance, path, kind) (" + grouped + " and on (" + ofEvent + ", since) " + number + " == 1)\nor\n" +
		`count_values by (job, instance, path, kind) ("since", round(1000 * ` + in(`,site=""`) + "))"
	return `label_replace(` + lines + `, "text", "$1", "kind", "(.*)")`
}

// toPathPage opens the page of paths with these variables of fields, and the same time range.
func toPathPage(title string, pairs ...string) cellLink {
	return cellLink{Title: title, URL: "/d/" + pathUID + "?var-datasource=" + datasourceInUse + fieldsOf(pairs...) + "&${__url_time_range}"}
}

// allKinds are the kinds of events, each once.
func allKinds() (all []event.Meaning) {
	seen := map[event.Kind]bool{}
	for _, m := range append(event.OfPaths(), event.OfAgents()...) {
		if !seen[m.Kind] {
			seen[m.Kind] = true
			all = append(all, m)
		}
	}
	return all
}

// kindWords map kinds to words with a color.
func kindWords() []dashboard.ValueMapping {
	colors := map[event.Kind]string{
		event.Down: red, event.Degraded: orange, event.LossRisen: orange, event.DelayRisen: orange, event.Recovered: green,
		event.RouteChanged: yellow, event.FloorChanged: yellow, event.RemoteRestarted: yellow, event.ClockStepped: purple, event.ReloadFailed: orange,
	}
	words := map[string]dashboard.ValueMappingResult{}
	for i, m := range allKinds() {
		shade := colors[m.Kind]
		if shade == "" {
			shade = blue
		}
		words[string(m.Kind)] = word(metric.Words(string(m.Kind)), shade, int32(i))
	}
	return values(words)
}

// kindTexts map kinds to their meaning.
func kindTexts() []dashboard.ValueMapping {
	words := map[string]dashboard.ValueMappingResult{}
	for i, m := range allKinds() {
		meaning, _, _ := strings.Cut(m.Words, ", profile")
		words[string(m.Kind)] = dashboard.ValueMappingResult{Text: &meaning, Index: new(int32(i))}
	}
	return values(words)
}
