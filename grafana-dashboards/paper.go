package main

import (
	"fmt"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	tablepanel "github.com/grafana/grafana-foundation-sdk/go/table"
	textpanel "github.com/grafana/grafana-foundation-sdk/go/text"

	"oneway.example/exporter/core/metric"
)

const (
	paperTitle = "Paper"
	paperUID   = "oneway-paper"
	// profileLabel is the label of paths with the profile of the lab.
	profileLabel = "profile"
)

// paperBoard has the values of the papers beside the values of a path, and a list of all figures with links to the panels that replace them.
// others are the pages that it links to.
func paperBoard(others map[string]*boardBuilder) *boardBuilder {
	b := board(paperTitle, paperUID, "now-6h",
		"The figures and tables of the five papers in their order: the papers' own values beside the last ones of a path in the time range, and the panel that replaces each figure.").
		Links(append(links(append(loadTestPages(""), page{trendsTitle, trendsUID, "Months and years of this path"})...), runbooks()))
	agentVariables(b, metric.PacketsSent.Name)
	b.WithVariable(labelValues(metric.Path, "Path", metric.PacketsSent.Name+"{"+thisAgent+"}"))
	b.WithVariable(directionVariable())
	for _, v := range []struct {
		name, label string
		of          *metric.Desc
	}{
		{"saturation", "Saturation", metric.UDPOffered},
		{"train", "Trains", metric.Trains},
	} {
		b.WithVariable(probeVariable(v.name, v.label, v.of))
	}
	b.WithRow(dashboard.NewRowBuilder("This path"))
	b.WithPanel(profileTile())
	b.WithPanel(lastAndNext(column{title: "began (UTC)", query: "1000 * (" + eachProbe(from(anyTest, metric.RunLast)+" - "+from(anyTest, metric.RunDuration)) + ")", unit: "dateTimeAsIso", own: props{prop("custom.width", 165)}}).Span(18))
	ids := panelIDs(others)
	for _, p := range papers() {
		paperRow(b, p, ids)
	}
	return b
}

// paperRow has the values of a paper, figures of it, and the list of all of them.
func paperRow(b *boardBuilder, p paper, ids map[panelOf]string) {
	b.WithRow(dashboard.NewRowBuilder(p.title))
	if values := publishedBy(p.short); len(values) > 0 {
		b.WithPanel(comparedTable(p, values))
	}
	switch p.short {
	case "Woo 2010":
		b.WithPanel(throughputElapsed())
		b.WithPanel(loadedCDF())
	case "Halepovic 2008":
		b.WithPanel(longThroughput())
	case "WPI report":
		b.WithPanel(throughputCDF())
		b.WithPanel(capacityCDF())
		b.WithPanel(candles(hourly, overHours()))
	}
	b.WithPanel(figureList(p, ids))
}

// profileTile shows the profile of the lab whose link the path has.
func profileTile() *stat.PanelBuilder {
	return tile(text{
		"Profile of the path",
		"The label profile of the path, which the demo gives its paths: the profile of the lab whose parameters the link has. A paper's values can be held against a path with the paper's own profile only, which each table names, or against the paper's own kind of network.",
		"none", "No label profile on this path",
	}, instant("max by ("+profileLabel+") ("+from(anyTest, metric.PathLabels, profileLabel+`!=""`)+`) or on () label_replace(vector(0), "`+profileLabel+`", "no label", "", "")`, "{{"+profileLabel+"}}")).Span(6).Height(7).
		TextMode(common.BigValueTextModeName).Text(common.NewVizTextDisplayOptionsBuilder().TitleSize(36)).Thresholds(steps(step{0, gray}))
}

// comparedTitle is the title of the table of a paper.
func comparedTitle(short string) string { return short + ": paper and here" }

// rowLabel numbers the rows: queries are joined by it.
const rowLabel = "row"

// comparedTable has a row of each value that the paper's text or tables have, in the paper's units.
func comparedTable(p paper, all []published) *tablepanel.PanelBuilder {
	var low, high, here, deviation []string
	for i, v := range all {
		row := fmt.Sprintf("%02d", i+1)
		numbered := func(expr string) string {
			return `label_replace(` + expr + `, "` + rowLabel + `", "` + row + `", "", "")`
		}
		named := func(value float64) string {
			expr := numbered("vector(" + plain(value) + ")")
			for _, l := range [][2]string{{"figure", v.figure}, {"quantity", v.inUnit()}, {"why", v.why}} {
				expr = `label_replace(` + expr + `, "` + l[0] + `", "` + l[1] + `", "", "")`
			}
			return expr
		}
		low = append(low, named(v.low))
		if v.high != v.low {
			high = append(high, numbered("vector("+plain(v.high)+")"))
		}
		here = append(here, numbered(v.here))
		outside := fmt.Sprintf("(%s) / %s - 1", v.here, plain(v.high))
		if v.high != 0 {
			above, below := "clamp_min("+outside+", 0)", ""
			if v.low > 0 && v.low < v.high {
				below = fmt.Sprintf(" + clamp_max((%s) / %s - 1, 0)", v.here, plain(v.low))
			} else if v.low == v.high {
				above = outside
			}
			deviation = append(deviation, numbered(above+below))
		}
	}
	number := props{prop("decimals", nil), prop("custom.width", 60)}
	ofProfile := "group(" + from(anyTest, metric.PathLabels, profileLabel+`=~"`+p.profile+`(-.+)?"`) + ")"
	t := columns(text{
		comparedTitle(p.short),
		"The paper's own values, from its text and tables, beside the last ones of the path in the time range, in the paper's units; where the paper has several, the least, and the largest in column to. Outside: how far the value here is from them, relative to the nearest, of a path with the label profile = " + p.profile + ": the profile of the lab, or give the label to a path over such a network; why is why the lab's profile has another value. A dash: not measured on this path in the time range, or a path with another profile.",
		"none", "No path is selected",
	},
		column{title: "figure", label: "figure", empty: "no values", own: props{prop("custom.width", 104)}},
		column{title: "quantity", label: "quantity", own: append(props{prop("custom.minWidth", 115)}, wrapped("auto")...)},
		column{title: "here", query: strings.Join(here, " or "), own: append(props{cellColor("color-text"), color(blue), prop("mappings", []dashboard.ValueMapping{missing(gray)})}, number...)},
		column{title: "paper", query: strings.Join(low, " or "), own: number},
		column{title: "to", query: strings.Join(high, " or "), own: number},
		column{title: "outside", query: "(" + strings.Join(deviation, " or ") + ") and on () " + ofProfile, unit: "percentunit", own: props{prop("decimals", 1), prop("custom.width", 80)}},
		column{title: "why", label: "why", own: append(props{prop("custom.minWidth", 150)}, wrapped("auto")...)},
		column{title: rowLabel, label: rowLabel, own: invisible()},
	)
	return t.Span(24).Height(uint32(min(4+len(all), 18))).Thresholds(steps(step{0, gray})).WithTransformation(sortedBy(rowLabel))
}

// figureList has all figures of a paper, with links.
func figureList(p paper, ids map[panelOf]string) *textpanel.PanelBuilder {
	names := boardNames()
	var b strings.Builder
	b.WriteString("**Not measured here:** the figures are the paper's; the panels show this path.\n\n| figure | shows | panel |\n|---|---|---|\n")
	for _, f := range p.figures {
		var cells []string
		for _, at := range f.at {
			name := names[at.file] + ": " + strings.NewReplacer(", $codec", "", ", $direction", "", "$congestion_control $direction", "", ", $instance", "").Replace(at.panel)
			if link := ids[at]; link != "" {
				name = "[" + name + "](" + link + ")"
			}
			cells = append(cells, name)
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", f.name, f.shows, strings.Join(append(cells, f.reasons()...), "<br>"))
	}
	return quoted(p.listOf(), "All figures and tables of the paper in its order, with the panels that replace them, or why oneway has no measurement for it. A link keeps path and time.", b.String()).
		Span(24).Height(uint32(min(6+len(p.figures), 20)))
}

// panelIDs are links to all panels of pages, with this path and time range.
func panelIDs(boards map[string]*boardBuilder) map[panelOf]string {
	all := map[panelOf]string{}
	for file, b := range boards {
		built, err := b.Build()
		if err != nil {
			continue // the page itself is refused
		}
		number(&built)
		query := "&var-job=${job}&var-instance=${instance}"
		if strings.HasPrefix(file, "raw_") {
			query = ""
		}
		for _, p := range built.Panels {
			if p.Panel != nil {
				all[panelOf{file, *p.Panel.Title}] = fmt.Sprintf("/d/%s?viewPanel=%d%s&var-path=${path}&${__url_time_range}", *built.Uid, *p.Panel.Id, query)
			}
		}
	}
	return all
}
