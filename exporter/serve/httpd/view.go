//go:build !slim

package httpd

import (
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"slices"
	"strings"

	"github.com/prometheus/common/version"

	"oneway.example/exporter/probe/report"
	"oneway.example/exporter/serve/plot"
)

//go:embed run.html
var runSource string

// runView is the data of a run's page.
type runView struct {
	report.Header
	report.View
	Version string
	// Sentence is the verdict. Fault is what is wrong with the file; File: it has a header.
	Sentence, Fault string
	File            bool
	Columns         []string // of Lines: the directions of the summary
	Lines           []resultLine
	Figures         []figures
}

// figures are the drawings of a direction.
type figures struct {
	Title string
	All   []template.HTML
}

// resultLine is a quantity with its value in each column; empty: none.
type resultLine struct {
	Quantity string
	Values   []string
}

// tabulate arranges a summary by quantity and direction. A quantity may have several values of a direction.
func (v *runView) tabulate() {
	var used []section
	for i, results := range byDirection(v.Summary) {
		if len(results) > 0 {
			used, v.Columns = append(used, section{directions[i].title, results}), append(v.Columns, directions[i].title)
		}
	}
	for i, c := range used {
		seen := map[string]int{} // lines of a quantity that have a value in this column
		for _, r := range c.Results {
			skip := seen[r.Quantity]
			seen[r.Quantity]++
			at := slices.IndexFunc(v.Lines, func(l resultLine) bool {
				if l.Quantity == r.Quantity {
					skip--
				}
				return skip < 0
			})
			if at < 0 {
				at, v.Lines = len(v.Lines), append(v.Lines, resultLine{r.Quantity, make([]string, len(used))})
			}
			v.Lines[at].Values[i] = r.Page()
		}
	}
}

// view serves the page of a run. It knows no kind of test: the report has what is to be drawn. Without a file that can be read,
// the page has what the list of runs has.
func (s *server) view(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	h, v, err := s.Source.Reports().View(id)
	page := runView{Header: h, Version: version.Version, File: err == nil || h.ID != ""}
	if !page.File {
		all := s.Source.Reports().List()
		if at := slices.IndexFunc(all, func(h report.Header) bool { return h.ID == id }); at >= 0 {
			page.Header = all[at]
		}
	}
	switch {
	case page.ID == "":
		http.Error(w, noRun, http.StatusNotFound)
		return
	case errors.Is(err, fs.ErrNotExist) && page.FileBytes == 0:
		page.Fault = "The report of this run was not stored: the configuration has no directory for reports, or writing failed."
	case errors.Is(err, fs.ErrNotExist):
		page.Fault = "The file of this report is missing: it was deleted from the directory of reports."
	case err != nil:
		s.unusable(r, id, err)
		page.Fault = "The file of this report is damaged: what can be read of it is shown. To remove it from the list, delete " + id +
			".json.gz in the directory of reports and restart the agent."
	}
	page.Sentence, page.View = sentence(page.Header), v
	for i := range v.Drawings {
		page.add(i, &v.Drawings[i])
	}
	page.tabulate()
	s.html(w, runSource, page)
}

// add draws a drawing in the set of its direction.
func (v *runView) add(i int, d *report.Drawing) {
	own := ""
	if at := slices.IndexFunc(directions, func(one struct{ name, title string }) bool { return d.Direction != "" && one.name == d.Direction }); at >= 0 {
		own, d.Title = directions[at].title, capital(d.Title)
	}
	if n := len(v.Figures); n == 0 || v.Figures[n-1].Title != own {
		v.Figures = append(v.Figures, figures{Title: own})
	}
	last := &v.Figures[len(v.Figures)-1]
	// Figure escapes the texts of the report.
	last.All = append(last.All, template.HTML(plot.Figure(nil, fmt.Sprintf("d%d", i), d)))
}

// sentence is the verdict of a run: the first result of each direction, or why it did not complete.
func sentence(h report.Header) string {
	switch {
	case h.Kind == report.Incident && h.Result == report.Completed:
		return "Incident: " + h.Why()
	case h.Result == report.Unreadable:
		return "The report cannot be read"
	case h.Result != report.Completed && h.Why() != "":
		return capital(h.Result) + ": " + h.Why()
	case h.Result != report.Completed:
		return capital(h.Result)
	}
	by := byDirection(h.Summary)
	var parts []string
	last := ""
	for i, d := range directions {
		if len(by[i]) == 0 || d.name == "" && len(parts) > 0 {
			continue
		}
		first, what := by[i][0], ""
		if first.Quantity != last {
			what, last = first.Quantity+" ", first.Quantity
		}
		parts = append(parts, strings.TrimSpace(what+first.Page()+" "+d.name))
	}
	if len(parts) == 0 {
		return "Completed"
	}
	return "Completed: " + strings.Join(parts, ", ")
}

// capital has a first letter in upper case, if it is one of ASCII.
func capital(s string) string {
	if s == "" || s[0] < 'a' || s[0] > 'z' {
		return s
	}
	return string(s[0]-'a'+'A') + s[1:]
}
