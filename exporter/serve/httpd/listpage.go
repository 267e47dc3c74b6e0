//go:build !slim

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

// listPage sends the list of runs as a page.
func (s *server) listPage(w http.ResponseWriter, all, found []report.Header, query url.Values) {
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

// runWord is a run's result in a word; what completes an incident is its report.
func runWord(h report.Header) string {
	if h.Kind == report.Incident && h.Result == report.Completed {
		return h.Kind
	}
	return h.Result
}

// took is the duration of a run as text.
func took(h report.Header) string {
	if h.Begin.IsZero() || h.End.Before(h.Begin) {
		return ""
	}
	return h.End.Sub(h.Begin).Round(time.Second).String()
}
