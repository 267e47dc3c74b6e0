//go:build slim

package httpd

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/url"

	"oneway.example/exporter/probe/report"
)

// What this build has: neither pages for browsers, nor Go's profiles.
const (
	hasPages = false
	Profiles = false
)

// Flags are the --web flags.
type Flags struct {
	WebListenAddresses *[]string
	WebSystemdSocket   *bool
	WebConfigFile      *string
}

// validate refuses each --web.config.file.
func validate(string) error {
	return errors.New("this build (slim) has no TLS and no passwords; leave the file out, and let only trusted hosts reach the port")
}

// serveOn serves the requests of a listener.
func serveOn(l net.Listener, s *http.Server, _ *Flags, log *slog.Logger) error {
	log.Info("Listening on", "address", l.Addr().String())
	return s.Serve(l)
}

func profiles(*http.ServeMux) {}

// lacks replies to requests for what this build lacks.
func lacks(w http.ResponseWriter) {
	http.Error(w, "This build (slim) has no pages, runbooks and schemas. /metrics, /api/v1/status and /runs have what they show.", http.StatusNotImplemented)
}

func (s *server) page(w http.ResponseWriter, _ *http.Request)     { lacks(w) }
func (s *server) view(w http.ResponseWriter, _ *http.Request)     { lacks(w) }
func (s *server) runbooks(w http.ResponseWriter, _ *http.Request) { lacks(w) }
func (s *server) schemas(w http.ResponseWriter, _ *http.Request)  { lacks(w) }
func (s *server) schema(w http.ResponseWriter, _ *http.Request)   { lacks(w) }
func style(w http.ResponseWriter, _ *http.Request)                { lacks(w) }

// listPage is not called: hasPages is false.
func (s *server) listPage(w http.ResponseWriter, _, _ []report.Header, _ url.Values) { lacks(w) }
