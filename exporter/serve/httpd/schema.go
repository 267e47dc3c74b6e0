//go:build !slim

package httpd

import (
	"net/http"

	"oneway.example/exporter/doc/schema"
)

// schemas lists the kinds of documents.
func (s *server) schemas(w http.ResponseWriter, _ *http.Request) {
	files, err := schema.Files.ReadDir(".")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	urls := []string{}
	for _, f := range files {
		urls = append(urls, "api/v1/schema/"+f.Name())
	}
	s.json(w, urls)
}

// schema sends the JSON Schema of a kind.
func (s *server) schema(w http.ResponseWriter, r *http.Request) {
	text, err := schema.Files.ReadFile(r.PathValue("file"))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/schema+json")
	_, _ = w.Write(text) // a failed write concerns the client only
}
