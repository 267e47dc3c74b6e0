//go:build !slim

package httpd

import (
	_ "embed"
	"fmt"
	"html/template"
	"net/http"
	"strings"

	"github.com/prometheus/common/version"

	"oneway.example/exporter/serve/runbook"
)

//go:embed runbook.html
var runbookSource string

// placeholders are the words in commands that stand for a site's own.
const placeholders = "AGENT is the label instance of the alert, PATH its label path, HOST its label host or the other end of the path, " +
	"REMOTE-AGENT the agent there, PROMETHEUS host and port of the server, INFLUXDB the host of InfluxDB."

// runbookPage is the data of the page of one alert, or of the list of all.
type runbookPage struct {
	Title, Version, Placeholders string
	Body                         template.HTML
	Pages                        []runbookEntry
}

type runbookEntry struct{ Name, Summary string }

// runbooks serves the runbook of an alert, or the list of all, as a page to browsers and as text to others.
func (s *server) runbooks(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	page := runbookPage{Title: name, Version: version.Version, Placeholders: placeholders}
	text := runbook.Text(name)
	switch {
	case name == "":
		page.Title = "Runbooks"
		var list strings.Builder
		for _, n := range runbook.Names() {
			page.Pages = append(page.Pages, runbookEntry{n, runbook.Summary(n)})
			fmt.Fprintf(&list, "runbooks/%s\n    %s\n", n, runbook.Summary(n))
		}
		text = list.String()
	case text == "":
		http.Error(w, fmt.Sprintf("There is no runbook %.100q. The list of all is at /runbooks/.", name), http.StatusNotFound)
		return
	default:
		_, body, _ := strings.Cut(text, "\n\n") // the title is in the page's header
		page.Body = runbook.HTML(body)
	}
	w.Header().Set("Vary", "Accept")
	if prefersHTML(r.Header, "text/markdown", "text/plain") {
		s.html(w, runbookSource, page)
		return
	}
	w.Header().Set("Content-Type", "text/markdown; charset=utf-8")
	_, _ = w.Write([]byte(text + "\n" + placeholders + "\n")) // a failed write concerns the client only
}
