package httpd

import (
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"slices"

	"github.com/prometheus/common/version"

	"oneway.example/exporter/internal/plot"
	"oneway.example/exporter/report"
)

//go:embed run.html
var runSource string

// runView is the data of a run's page.
type runView struct {
	report.Header
	Notes   []string
	Columns []string // of Lines: the directions of the summary
	Lines   []resultLine
	Figures []template.HTML
	Version string
}

// resultLine is a quantity with its value in each column; empty: none.
type resultLine struct {
	Quantity string
	Values   []string
}

// tabulate arranges a summary by quantity and direction. A quantity may have several values of a direction.
func (v *runView) tabulate() {
	var used []column
	for _, c := range columns(v.Summary) {
		if len(c.Results) > 0 {
			used, v.Columns = append(used, c), append(v.Columns, c.Label)
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
			v.Lines[at].Values[i] = r.Value
		}
	}
}

// view serves the page of a run. It knows no kind of test: the report has what is to be drawn.
func (s *server) view(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	h, v, err := s.Source.Reports().View(id)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		http.NotFound(w, r)
		return
	case err != nil:
		s.Log.Error("Report not shown", "id", id, "err", err)
		if h.ID == "" {
			http.Error(w, "the report is damaged", http.StatusInternalServerError)
			return
		}
		v.Notes = append(v.Notes, "The drawings of this report cannot be read: the file is damaged.")
	}
	page := runView{Header: h, Notes: v.Notes, Version: version.Version}
	for i := range v.Drawings {
		// Figure escapes the texts of the report.
		page.Figures = append(page.Figures, template.HTML(plot.Figure(nil, fmt.Sprintf("d%d", i), &v.Drawings[i])))
	}
	page.tabulate()
	s.html(w, runSource, page)
}
