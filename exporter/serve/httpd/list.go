package httpd

import (
	_ "embed"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/version"

	"oneway.example/exporter/core/document"
	"oneway.example/exporter/probe/report"
)

//go:embed runs.html
var runsSource string

const (
	// runsOfPage is the number of runs of a page of the list.
	runsOfPage = 50
	// maxChoices is the most values of a filter that are links.
	maxChoices = 100
)

// Runs is the document of all stored runs.
type Runs struct {
	document.Envelope
	// Runs are load tests and incidents, the newest first.
	Runs []report.Header `json:"runs"`
}

// runsView is the data of the list of runs.
type runsView struct {
	Version string
	Now     time.Time
	Runs    []report.Header
	// Stored is the number of runs, Found the number of those that pass the filters, From and To the range of this page.
	Stored, Found, From, To int
	// Newer and Older are the URLs of the pages beside it, JSON that of its runs; empty: none.
	Newer, Older, JSON string
	Filters            []filter
}

// filter is a query parameter with the values that select runs.
type filter struct {
	Name, Value string
	// All is the URL without this filter.
	All     string
	Choices []choice
	// More is the number of values that are left out.
	More int
}

type choice struct{ Value, URL string }

// filtered are the fields of a run that select it.
var filtered = []struct {
	name string
	of   func(report.Header) string
}{
	{"path", func(h report.Header) string { return h.Path }},
	{"kind", func(h report.Header) string { return h.Kind }},
	{"result", func(h report.Header) string { return h.Result }},
}

// runs lists the stored runs, newest first: as a page for browsers, or as JSON. Both can be filtered by path, kind and result.
func (s *server) runs(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	w.Header().Set("Vary", "Accept")
	all := s.Source.Reports().List()
	found := slices.DeleteFunc(slices.Clone(all), func(h report.Header) bool {
		for _, f := range filtered {
			if v := query.Get(f.name); v != "" && v != f.of(h) {
				return true
			}
		}
		return false
	})
	if query.Get("format") == "json" || !prefersHTML(r.Header, "application/json") {
		s.json(w, Runs{document.New(document.Runs), append([]report.Header{}, found...)})
		return
	}
	s.html(w, runsSource, newRunsView(all, found, query, s.Now()))
}

func newRunsView(all, found []report.Header, query url.Values, now time.Time) runsView {
	v := runsView{Version: version.Version, Now: now, Stored: len(all), Found: len(found), JSON: with(query, "format", "json")}
	pages := max(1, (len(found)+runsOfPage-1)/runsOfPage)
	page, _ := strconv.Atoi(query.Get("page")) // none, or not a number: the first
	page = min(max(page, 1), pages)
	v.From, v.To = (page-1)*runsOfPage, min(page*runsOfPage, len(found))
	v.Runs = found[v.From:v.To]
	if page > 1 {
		v.Newer = with(query, "page", strconv.Itoa(page-1))
	}
	if page < pages {
		v.Older = with(query, "page", strconv.Itoa(page+1))
	}
	for _, f := range filtered {
		one := filter{Name: f.name, Value: query.Get(f.name), All: with(query, f.name, "")}
		seen := map[string]bool{"": true}
		for _, h := range all {
			if value := f.of(h); !seen[value] {
				seen[value] = true
				one.Choices = append(one.Choices, choice{value, with(query, f.name, value)})
			}
		}
		slices.SortFunc(one.Choices, func(a, b choice) int { return strings.Compare(a.Value, b.Value) })
		if one.More = max(0, len(one.Choices)-maxChoices); one.More > 0 {
			one.Choices = one.Choices[:maxChoices]
		}
		v.Filters = append(v.Filters, one)
	}
	return v
}

// with is the URL of the list with one parameter changed; an empty value removes it. Another filter begins at the first page.
func with(query url.Values, key, value string) string {
	changed := url.Values{}
	for _, f := range filtered {
		if v := query.Get(f.name); v != "" {
			changed.Set(f.name, v)
		}
	}
	if changed.Del(key); value != "" {
		changed.Set(key, value)
	}
	return "?" + changed.Encode()
}
