package httpd

import (
	"encoding/json"
	"io/fs"
	"net/http"
	"testing"

	"oneway.example/exporter/core/document"
	"oneway.example/exporter/doc/schema"
	"oneway.example/exporter/probe/report"
	"oneway.example/tests/documents"
)

func TestSchemaOfEachDocumentIsServed(t *testing.T) {
	h := newHandler(t, &fakeSource{status: sample(), reports: report.Open(report.Options{})})
	var urls []string
	if err := json.Unmarshal(get(t, h, http.MethodGet, "/api/v1/schema").Body.Bytes(), &urls); err != nil {
		t.Fatal(err)
	}
	files, err := fs.Glob(schema.Files, "*.json")
	if err != nil || len(urls) < 8 || len(urls) != len(files) {
		t.Fatalf("%q of %q, %v", urls, files, err)
	}
	for _, url := range urls {
		w := get(t, h, http.MethodGet, "/"+url)
		if w.Code != http.StatusOK || !json.Valid(w.Body.Bytes()) || w.Header().Get("Content-Type") != "application/schema+json" {
			t.Errorf("%s: %d, %v", url, w.Code, w.Header())
		}
	}
	if w := get(t, h, http.MethodGet, "/api/v1/schema/schema.go"); w.Code != http.StatusNotFound {
		t.Errorf("a file that is no schema: %d", w.Code)
	}
	documents.Valid(t, document.Status, get(t, h, http.MethodGet, "/api/v1/status").Body.Bytes())
	documents.Valid(t, document.Runs, get(t, h, http.MethodGet, "/runs").Body.Bytes())
}
