package httpd

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	versioncollector "github.com/prometheus/client_golang/prometheus/collectors/version"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"oneway.example/exporter/agent"
	"oneway.example/exporter/memlimit"
	"oneway.example/exporter/report"
)

// Source is what is served; an agent.Agent is one.
type Source interface {
	Status() agent.Status
	Reload() error
	// Reports has the runs of heavy tests; it is never nil.
	Reports() *report.Store
}

// Options are the handler's settings. Source and Registry are needed.
type Options struct {
	Source Source
	// Registry is scraped at /metrics; see NewRegistry.
	Registry *prometheus.Registry
	// Log; nil: discarded.
	Log *slog.Logger
	// Pprof serves Go's profiles.
	Pprof bool
	// ExternalHosts are names, besides this host's own, under which it may be told to reload.
	ExternalHosts []string
	// Now is the clock of ages on the page; nil: time.Now.
	Now func() time.Time
}

// NewRegistry has what every exporter shows of itself: oneway_build_info, go_*, process_*.
func NewRegistry() *prometheus.Registry {
	reg := prometheus.NewRegistry()
	reg.MustRegister(
		versioncollector.NewCollector("oneway"),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return reg
}

// Handler makes the handler of all addresses.
func Handler(o Options) http.Handler {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &server{o}
	mux := http.NewServeMux()
	// What grows with the number of paths is made whole; a report's file is sent as it is read.
	large := newAnswers(o.Log, roomIn(memlimit.Process()))
	for pattern, h := range map[string]http.HandlerFunc{
		"GET /{$}": s.page, "GET /api/v1/status": s.status, "GET /sd": s.discovery, "GET /runs": s.runs,
		"GET /metrics": promhttp.HandlerFor(o.Registry, promhttp.HandlerOpts{
			ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelError),
			// One family that cannot be shown must not hide all others.
			ErrorHandling: promhttp.ContinueOnError, Registry: o.Registry, EnableOpenMetrics: true,
		}).ServeHTTP,
	} {
		mux.Handle(pattern, large.whole(h))
	}
	mux.HandleFunc("GET /style.css", style)
	mux.HandleFunc("GET /runs/{id}", s.run)
	mux.HandleFunc("GET /-/healthy", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "oneway is healthy.") })
	mux.HandleFunc("GET /-/ready", s.ready)
	mux.HandleFunc("POST /-/reload", s.reload)
	mux.HandleFunc("PUT /-/reload", s.reload)
	if o.Pprof {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	// A page elsewhere must not make a visitor's browser reload us.
	return secured(http.NewCrossOriginProtection().Handler(named(o.ExternalHosts, mux)))
}

// secured sets headers for browsers: nothing is loaded from elsewhere, nothing
// is run, nothing is framed.
func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		next.ServeHTTP(w, r)
	})
}

type server struct{ Options }

func (s *server) ready(w http.ResponseWriter, _ *http.Request) {
	if s.Source.Status().Started.IsZero() {
		http.Error(w, "oneway is not ready: it is starting or ending.", http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "oneway is ready.")
}

func (s *server) reload(w http.ResponseWriter, _ *http.Request) {
	if err := s.Source.Reload(); err != nil {
		http.Error(w, "The configuration was not reloaded; the one before stays in force.\n"+err.Error(), http.StatusInternalServerError)
		return
	}
	fmt.Fprintln(w, "The configuration was reloaded.")
}
