// Package httpd is the agent's web server: metrics, a page for people that
// answers "is it working, and if not why" without a Prometheus, the same as
// JSON, health and reload.
//
//	GET  /                the page; ?all shows every path of many
//	GET  /metrics         text, OpenMetrics or protobuf, as the scraper asks
//	GET  /-/healthy       200 while the process serves
//	GET  /-/ready         200 while a configuration is in force, else 503
//	POST /-/reload        reads the configuration again, within a second or so; 500 and the reason if it is refused
//	POST /-/incident      keeps the last minutes of ?path=NAME (&probe=NAME where it has several light ones)
//	                      as a report: 201 and where it is, 404, 409, or 429 if there were many
//	GET  /api/v1/status   what the page says, for machines
//	GET  /runs            the runs of load tests and the incident that are kept, newest first, as JSON
//	GET  /runs/ID         one report, a download
//	GET  /sd              the peers, as Prometheus' http_sd wants them
//	GET  /debug/pprof/    only if asked for
//
// What anybody can reach must be there for everybody: connections have a share of
// each source and give way to new ones (door), and answers are made whole before
// they are sent, so that a slow reader holds nothing that another needs (answers). All
// of this takes no more than a part of the memory limit (room).
// What changes something is done only under this host's own names (named).
//
// TLS, client certificates, basic authentication and sockets from systemd are
// those of exporter-toolkit.
package httpd

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	versioncollector "github.com/prometheus/client_golang/prometheus/collectors/version"

	"oneway.example/exporter/agent"
	"oneway.example/exporter/memlimit"
	"oneway.example/exporter/report"
)

// Source is what is served; an agent.Agent is one.
type Source interface {
	Status() agent.Status
	Reload() error
	// Reports has the runs of load tests; it is never nil.
	Reports() *report.Store
	// KeepIncident makes a report of a light probe's last minutes; see incident.Supervisor.Keep.
	KeepIncident(path, probe string) (report.Header, error)
}

// Options are the handler's settings. Source and Registry are needed.
type Options struct {
	Source Source
	// Registry and Sink are scraped at /metrics; see NewRegistry. A nil Sink shows nothing.
	Registry *prometheus.Registry
	Sink     Exposer
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

type server struct {
	Options
	zips sync.Pool // of *gzip.Writer, each of which takes most of a megabyte
}

// Handler makes the handler of all addresses.
func Handler(o Options) http.Handler {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &server{Options: o, zips: sync.Pool{New: func() any { return gzip.NewWriter(io.Discard) }}}
	mux := http.NewServeMux()
	// What grows with the number of paths is made whole; a report's file is sent as it is read.
	large := newReplies(o.Log, spaceIn(memlimit.Process()))
	for pattern, h := range map[string]http.HandlerFunc{
		"GET /{$}": s.page, "GET /api/v1/status": s.status, "GET /sd": s.discovery, "GET /runs": s.runs,
		"GET /metrics": s.metrics,
	} {
		mux.Handle(pattern, large.whole(h))
	}
	mux.HandleFunc("GET /style.css", style)
	mux.HandleFunc("GET /runs/{id}", s.run)
	mux.HandleFunc("GET /-/healthy", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "oneway is healthy.") })
	mux.HandleFunc("GET /-/ready", s.ready)
	mux.HandleFunc("POST /-/reload", s.reload)
	mux.HandleFunc("PUT /-/reload", s.reload)
	mux.HandleFunc("POST /-/incident", s.incident)
	if o.Pprof {
		for name, h := range map[string]http.HandlerFunc{
			"": pprof.Index, "cmdline": pprof.Cmdline, "profile": pprof.Profile, "symbol": pprof.Symbol, "trace": pprof.Trace,
		} {
			mux.HandleFunc("GET /debug/pprof/"+name, h)
		}
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

// named refuses requests that can change something, unless their Host is an IP address, localhost, a
// name of this host or one of external. A page whose own name was made to resolve to this host
// (DNS rebinding) is of the same origin as far as a browser knows, but cannot choose the Host.
func named(external []string, next http.Handler) http.Handler {
	names := []string{"localhost"}
	if name, err := os.Hostname(); err == nil {
		first, _, _ := strings.Cut(name, ".")
		names = append(names, hostName(name), hostName(first))
	}
	for _, name := range external {
		names = append(names, hostName(name))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case http.MethodGet, http.MethodHead, http.MethodOptions: // RFC 9110 section 9.2.1
		default:
			host := hostName(r.Host)
			if _, err := netip.ParseAddr(host); err != nil && (host == "" || !slices.Contains(names, host)) {
				http.Error(w, fmt.Sprintf("Host is %.300q; to change something it must be an IP address, localhost, "+
					"this host's name or one of --web.external-host.", r.Host), http.StatusForbidden)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// CheckHosts checks names of Options.ExternalHosts: without scheme, port and path.
func CheckHosts(names []string) error {
	for _, name := range names {
		if name == "" || strings.ContainsAny(name, ":/@ *") {
			return fmt.Errorf("httpd: %q is no host name; it must be one such as probe.example.net, without scheme and port", name)
		}
	}
	return nil
}

// hostName is the name or address of a Host, as names are compared: without port, brackets
// and last dot, in lower case.
func hostName(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// status is what the page says, for machines.
func (s *server) status(w http.ResponseWriter, _ *http.Request) {
	s.json(w, s.Source.Status())
}

func (s *server) json(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		s.Log.Debug("Status not written", "err", err)
	}
}

// targetGroup is that of Prometheus' http_sd.
type targetGroup struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

// discovery lists the peers' hosts, so that what else runs there (this exporter,
// node_exporter) can be found by relabeling.
func (s *server) discovery(w http.ResponseWriter, _ *http.Request) {
	groups := []targetGroup{}
	for _, p := range s.Source.Status().Paths {
		groups = append(groups, targetGroup{Targets: []string{p.Host}, Labels: map[string]string{
			"__meta_oneway_path": p.Name, "__meta_oneway_peer": p.Peer,
		}})
	}
	s.json(w, groups)
}
