//go:build !slim

package httpd

import (
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"

	"github.com/prometheus/exporter-toolkit/web"
)

// What this build has: pages for browsers, and Go's profiles.
const (
	hasPages = true
	Profiles = true
)

// Flags are the --web flags.
type Flags = web.FlagConfig

// validate checks a --web.config.file.
func validate(file string) error { return web.Validate(file) }

// serveOn serves the requests of a listener, with TLS and passwords as in the --web.config.file.
func serveOn(l net.Listener, s *http.Server, flags *Flags, log *slog.Logger) error {
	return web.Serve(l, s, flags, log)
}

// profiles adds Go's profiles.
func profiles(mux *http.ServeMux) {
	for name, h := range map[string]http.HandlerFunc{
		"": pprof.Index, "cmdline": pprof.Cmdline, "profile": pprof.Profile, "symbol": pprof.Symbol, "trace": pprof.Trace,
	} {
		mux.HandleFunc("GET /debug/pprof/"+name, h)
	}
}
