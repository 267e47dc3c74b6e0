package httpd

import (
	"net/http"
	"slices"

	"oneway.example/exporter/core/document"
	"oneway.example/exporter/probe/report"
)

// Runs is the document of all stored runs.
type Runs struct {
	document.Envelope
	// Runs are load tests and incidents, the newest first.
	Runs []report.Header `json:"runs"`
}

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
	if !hasPages || query.Get("format") == "json" || !prefersHTML(r.Header, "application/json") {
		s.json(w, Runs{document.New(document.Runs), append([]report.Header{}, found...)})
		return
	}
	s.listPage(w, all, found, query)
}
