package main

import (
	"fmt"
	"strings"
	"sync"
)

// panelOf is a panel of a page: the name of its file and its title.
type panelOf struct{ file, panel string }

// figure is a figure or a table of a paper, and what replaces it.
type figure struct {
	// name is the paper's own, such as "Figure 6.1 a".
	name string
	// shows is what it shows.
	shows string
	// at are the panels that replace it, at least one. A figure that is no measurement, or that oneway does not measure, is in the list of
	// its paper on the page Paper.
	at []panelOf
	// why is why the panels do not have all of it; empty: they have.
	why string
}

// paper is a publication with its figures and tables, in its own order.
type paper struct {
	// short is its name in texts, title its full name, profile the lab's profile with its parameters.
	short, title, profile string
	figures               []figure
}

// papers are the five publications that this project repeats.
func papers() []paper {
	return []paper{
		{"Woo 2010", "Woo, KAIST thesis 2010: performance of commercial WiBro", "wibro", wooFigures()},
		{"Woo 2010, slides", "The slides of the same work; they have no numbers of figures, so that their titles are here", "wibro", slidesFigures()},
		{"Halepovic 2008", "Halepovic, Wu, Williamson, Ghaderi: TCP over WiMAX, MASCOTS 2008", "wimax-calgary", halepovicFigures()},
		{"D-ITG report", "D-ITG report: heterogeneous wireless networks by service conditions", "wifi", ditgFigures()},
		{"WPI report", "WPI report 2006: 1xEV-DO by packet trains, TCP and pings", "evdo", wpiFigures()},
	}
}

// listOf is the title of the panel with the figures of a paper.
func (p paper) listOf() string { return "Figures and tables of " + p.short }

// boardNames are the titles of pages in texts, by file.
var boardNames = sync.OnceValue(func() map[string]string {
	names := map[string]string{"paper.json": paperTitle}
	for file, b := range pages() {
		if built, err := b.Build(); err == nil { // else the page itself is refused
			names[file] = strings.TrimPrefix(*built.Title, titleBegin)
		}
	}
	return names
})

// onPage are panels of one page.
func onPage(file string, panels ...string) (all []panelOf) {
	for _, title := range panels {
		all = append(all, panelOf{file, title})
	}
	return all
}

// joinPanels are panels of two pages.
func joinPanels(a, b []panelOf) []panelOf { return append(append([]panelOf{}, a...), b...) }

// measured is a figure that panels of measurements replace, partly one of whose quantities panels have some, and unmeasured one without a
// panel; both with the reason.
func measured(name, shows string, at []panelOf) figure {
	return figure{name: name, shows: shows, at: at}
}

func partly(name, shows string, at []panelOf, why string) figure { return figure{name, shows, at, why} }

func unmeasured(name, shows, why string) figure { return figure{name: name, shows: shows, why: why} }

// Reasons why panels do not have all that a figure shows.
const (
	noMeasurement = "No measurement: a picture or a list of the paper's own equipment and settings"
	noRadio       = "oneway reads no radio: no series of CINR, signal strength or handoffs"
	noBrowser     = "oneway loads no web pages: there is no probe of a browser"
	noHops        = "oneway counts the hops and measures the round trip of the whole path, not of each hop"
	noVideo       = "oneway plays no video: there is no probe of it"
	noOtherLink   = "A picture of another operator's link"
	otherJitter   = "the jitter of the report is the standard deviation of the delays, which also grows with a queue"
	oneWayDelay   = "the report has round trips as an upper bound, here it is one way"
	alike         = "The text of the report does not name it; it stands between figures of jitter over time"
)

// markdown is the table of a paper in the README.
func (p paper) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "### %s\n\n%s. Profile of the lab: `%s`.\n\n| figure | shows | dashboard: panel |\n|---|---|---|\n", p.short, p.title, p.profile)
	for _, f := range p.figures {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", f.name, f.shows, strings.Join(p.locations(f), "; "))
	}
	return b.String()
}

// locations are the panels of a figure in words, and why they measure nothing.
func (p paper) locations(f figure) (all []string) {
	names := boardNames()
	for _, at := range p.places(f) {
		all = append(all, names[at.file]+": "+at.panel)
	}
	return append(all, f.reasons()...)
}

// reasons are why the panels do not have all of a figure, if they do not.
func (f figure) reasons() []string {
	switch {
	case f.why == "":
		return nil
	case len(f.at) > 0:
		return []string{"not all of it: " + f.why}
	}
	return []string{f.why}
}

// places are the panels of a figure: at least the list of its paper.
func (p paper) places(f figure) []panelOf {
	if len(f.at) > 0 {
		return f.at
	}
	return onPage("paper.json", p.listOf())
}

// figuresBegin and figuresEnd enclose the generated tables in the README.
const (
	figuresBegin = "<!-- figures: generated by go generate; change figures*.go -->\n"
	figuresEnd   = "<!-- end of figures -->\n"
)

// withFigures is the text of the README with the tables of all figures.
func withFigures(readme string) (string, error) {
	before, rest, ok := strings.Cut(readme, figuresBegin)
	_, after, ended := strings.Cut(rest, figuresEnd)
	if !ok || !ended {
		return "", fmt.Errorf("dashboards: the README has no lines %q and %q", figuresBegin, figuresEnd)
	}
	var tables []string
	for _, p := range papers() {
		tables = append(tables, p.markdown())
	}
	return before + figuresBegin + "\n" + strings.Join(tables, "\n") + "\n" + figuresEnd + after, nil
}
