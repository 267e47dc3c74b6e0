// Package httpd is the agent's web server: metrics, a page with the status of all parts and the reason of each failure,
// the same as JSON, health checks and reload.
//
//	GET  /                the page; ?all shows every path of many
//	GET  /metrics         text, OpenMetrics or protobuf, as the scraper requests
//	GET  /probe           measures ?target=HOST[:PORT]&module=NAME and returns its metrics, like blackbox_exporter;
//	                      &debug=true: with the steps, as text
//	GET  /-/healthy       200 while the process serves
//	GET  /-/ready         200 while a configuration is in use, else 503
//	POST /-/reload        reads the configuration again, within about a second; 500 and the reason if it is refused
//	POST /-/incident      stores the last minutes of ?path=NAME (&probe=NAME if it has several light probes)
//	                      as a report: 201 and its address, 404, 409, or 429 after too many
//	GET  /api/v1/status   the content of the page as JSON
//	GET  /api/v1/schema   the URLs of the JSON Schemas of all documents: api/v1/schema/KIND.json
//	GET  /runs            the stored runs of load tests and incidents, newest first: a page for clients that accept HTML, else
//	                      JSON; ?path=, ?kind= and ?result= select, ?format=json is JSON for any client
//	GET  /runs/ID         one report, as a download: JSON, whatever the client accepts, so that a link has one content;
//	                      ?format=gzip is the file as stored
//	GET  /runs/ID/view    a page with its results and drawings
//	GET  /runbooks/NAME   the runbook of an alert: a page to browsers, Markdown to others; /runbooks/ lists all
//	GET  /sd              the peers, in the format of Prometheus' http_sd
//	GET  /debug/pprof/    only if enabled
//
// One client must not prevent the service of others: each source has a limited share of the connections, and a new
// connection replaces an old one (limiter); replies are generated completely before they are sent, so that a slow reader
// holds no shared resource (replies). All of this uses a limited part of the memory limit (space). Requests that change
// state are accepted only under this host's own names (named).
//
// TLS, client certificates, basic authentication and sockets of systemd are provided by exporter-toolkit.
package httpd

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	versioncollector "github.com/prometheus/client_golang/prometheus/collectors/version"

	"oneway.example/exporter/agent"
	"oneway.example/exporter/agent/ondemand"
	"oneway.example/exporter/core/errtext"
	"oneway.example/exporter/core/memlimit"
	"oneway.example/exporter/probe/report"
)

// Source provides what is served; an agent.Agent is one.
type Source interface {
	Status() agent.Status
	Reload() error
	// Reports returns the store of the runs of load tests; it is never nil.
	Reports() *report.Store
	// StoreIncident makes a report of the last minutes of a light probe; see incident.Supervisor.Store.
	StoreIncident(path, probe string) (report.Header, error)
	// OnDemand measures what clients request; it is never nil.
	OnDemand() *ondemand.Service
}

// Options are the handler's settings. Source and Registry are required.
type Options struct {
	Source Source
	// Registry and Sink are scraped at /metrics; see NewRegistry. A nil Sink has no metrics.
	Registry *prometheus.Registry
	Sink     Exposer
	// ProbeSink makes the sink of one request of /probe, which is then exposed; nil: /probe does not exist.
	ProbeSink func() ProbeSink
	// Log receives log records; nil: they are discarded.
	Log *slog.Logger
	// Pprof enables Go's profiles.
	Pprof bool
	// ExternalHosts are additional host names that are accepted in requests to reload.
	ExternalHosts []string
	// Now is the clock for ages on the page; nil: time.Now.
	Now func() time.Time
}

// liveHeap is go_gc_heap_live_bytes: what the heap has without garbage.
var liveHeap = regexp.MustCompile("^/gc/heap/live:bytes$")

// NewRegistry has the standard metrics of an exporter: oneway_build_info, go_*, process_*.
func NewRegistry() *prometheus.Registry {
	reg := prometheus.NewRegistry()
	reg.MustRegister(
		versioncollector.NewCollector("oneway"),
		collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(collectors.GoRuntimeMetricsRule{Matcher: liveHeap})),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return reg
}

type server struct {
	Options
	zips sync.Pool // of *gzip.Writer, each nearly a megabyte
	// unusableLogged is when a report that cannot be read was last logged; nil: never.
	unusableLogged atomic.Pointer[time.Time]
}

// Handler makes the handler of all URLs.
func Handler(o Options) http.Handler {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &server{Options: o, zips: sync.Pool{New: func() any { return gzip.NewWriter(io.Discard) }}}
	mux := http.NewServeMux()
	// Replies that grow with the number of paths are generated in memory; the file of a report is streamed.
	large := newReplies(o.Log, spaceIn(memlimit.Process()))
	for pattern, h := range map[string]http.HandlerFunc{
		"GET /{$}": s.page, "GET /api/v1/status": s.status, "GET /sd": s.discovery, "GET /runs": s.runs,
		"GET /api/v1/schema": s.schemas, "GET /api/v1/schema/{file}": s.schema,
		"GET /metrics": s.metrics,
	} {
		mux.Handle(pattern, large.whole(h))
	}
	if o.ProbeSink != nil {
		mux.Handle("GET /probe", s.probe(large))
	}
	mux.HandleFunc("GET /style.css", style)
	mux.HandleFunc("GET /runs/{id}", s.run)
	mux.HandleFunc("GET /runbooks/{name...}", s.runbooks)
	mux.Handle("GET /runs/{id}/view", large.whole(http.HandlerFunc(s.view)))
	mux.HandleFunc("GET /-/healthy", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "oneway is healthy.") })
	mux.HandleFunc("GET /-/ready", s.ready)
	mux.HandleFunc("POST /-/reload", s.reload)
	mux.HandleFunc("PUT /-/reload", s.reload)
	mux.HandleFunc("POST /-/incident", s.incident)
	if o.Pprof {
		profiles(mux)
	}
	// A page of another origin must not make a browser reload the agent.
	return secured(http.NewCrossOriginProtection().Handler(named(o.ExternalHosts, mux)))
}

// secured sets headers for browsers: no resources of other origins, no scripts, no frames.
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
		http.Error(w, "The configuration was not reloaded; the previous one is still used.\n"+errtext.Words(err), http.StatusInternalServerError)
		return
	}
	fmt.Fprintln(w, "The configuration was reloaded.")
}

// named rejects requests that can change state, unless their Host is an IP address, localhost, a name of this host or one of
// external. With DNS rebinding the page of an attacker has the same origin as this host for a browser, but its requests
// have the attacker's Host.
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
				http.Error(w, fmt.Sprintf("Host is %.300q; for a request that changes state it must be an IP address, localhost, "+
					"this host's name or one of --web.external-host.", r.Host), http.StatusForbidden)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// CheckHosts checks names for Options.ExternalHosts: no scheme, port or path.
func CheckHosts(names []string) error {
	for _, name := range names {
		if name == "" || strings.ContainsAny(name, ":/@ *") {
			return fmt.Errorf("httpd: %q is not a host name; it must be a name such as probe.example.net, without scheme and port", name)
		}
	}
	return nil
}

// hostName normalizes the name or address of a Host for comparison: without port, brackets and final dot, in lower case.
func hostName(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// status serves the content of the page as JSON.
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

// TargetGroup is a target group of Prometheus' http_sd and file_sd.
type TargetGroup struct {
	Targets []string `json:"targets"`
	// Labels are for relabeling: Prometheus removes labels whose names begin with __meta_.
	Labels map[string]string `json:"labels"`
}

// NewTargetGroup has one target, and the labels of a path or a host with the prefix __meta_oneway_label_.
func NewTargetGroup(target string, labels map[string]string) TargetGroup {
	g := TargetGroup{Targets: []string{target}, Labels: map[string]string{}}
	for name, value := range labels {
		g.Labels["__meta_oneway_label_"+name] = value
	}
	return g
}

// discovery lists the hosts of the peers, so that other exporters there (this one, node_exporter) can be scraped after
// relabeling.
func (s *server) discovery(w http.ResponseWriter, _ *http.Request) {
	groups := []TargetGroup{}
	for _, p := range s.Source.Status().Paths {
		g := NewTargetGroup(p.Host, p.Labels)
		g.Labels["__meta_oneway_path"], g.Labels["__meta_oneway_peer"] = p.Name, p.Peer
		groups = append(groups, g)
	}
	s.json(w, groups)
}
