package httpd

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"time"

	"github.com/prometheus/common/expfmt"

	"oneway.example/exporter/agent/ondemand"
	"oneway.example/exporter/core/metric"
)

// ProbeSink is a sink with the series of one request; a promsink.Sink is one.
type ProbeSink interface {
	metric.Sink
	Exposer
}

const (
	// timeoutHeader is sent by Prometheus: its scrape_timeout in seconds.
	timeoutHeader = "X-Prometheus-Scrape-Timeout-Seconds"
	// maxQuery is the length of a query with the longest target and module.
	maxQuery = 1 << 10
	// maxSteps limits the log of a request.
	maxSteps = 64 << 10
)

// probe measures, and replies with the families of this measurement alone.
func (s *server) probe(large *replies) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		if r.Method == http.MethodHead {
			w.Header().Set("Allow", http.MethodGet)
			http.Error(w, "A measurement needs GET.", http.StatusMethodNotAllowed)
			return
		}
		service := s.Source.OnDemand()
		query, wrong := probeQuery(r)
		if wrong == "" {
			query.Within, wrong = probeTime(r.Header)
		}
		if wrong != "" {
			s.notProbed(w, service.Malformed(wrong), nil)
			return
		}
		// The read timeout would end the request while it measures.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(query.Within + readTimeout))
		if at, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
			query.Client = sourceAt(at)
		}
		sink := s.ProbeSink()
		query.Sink = sink
		if err := service.Measure(r.Context(), query.Request); err != nil {
			s.notProbed(w, err, query.steps)
			return
		}
		large.whole(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.probed(w, r, sink, query.steps) })).ServeHTTP(w, r)
	})
}

// probeRequest is a request with its log; nil: without.
type probeRequest struct {
	ondemand.Request
	steps *steps
}

// probeQuery reads the query, or returns what is wrong. Other parameters are ignored, as by blackbox_exporter.
func probeQuery(r *http.Request) (p probeRequest, wrong string) {
	if len(r.URL.RawQuery) > maxQuery {
		return p, fmt.Sprintf("The query has %d bytes; it may have %d.", len(r.URL.RawQuery), maxQuery)
	}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return p, "The query is not valid."
	}
	for _, parameter := range []struct {
		key  string
		into *string
	}{{"target", &p.Target}, {"module", &p.Module}} {
		key := parameter.key
		const form = "it must have one: /probe?target=HOST[:PORT]&module=NAME"
		switch given := values[key]; {
		case len(given) == 0:
			return p, fmt.Sprintf("The query has no %s; %s", key, form)
		case len(given) > 1:
			return p, fmt.Sprintf("The query has %d values of %s; %s", len(given), key, form)
		case given[0] == "":
			return p, fmt.Sprintf("The %s of the query is empty; %s", key, form)
		}
		*parameter.into = values[key][0]
	}
	if p.Log = slog.New(slog.DiscardHandler); values.Get("debug") == "true" {
		p.steps = new(steps)
		p.Log = slog.New(slog.NewTextHandler(p.steps, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	return p, ""
}

// probeTime is the time of a measurement, which must end before the scraper gives up, or what is wrong.
func probeTime(h http.Header) (within time.Duration, wrong string) {
	text := h.Get(timeoutHeader)
	if text == "" {
		return ondemand.MaxTime, "" // below writeTimeout
	}
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(seconds) || seconds <= 0 {
		return 0, fmt.Sprintf("%s is %.100q; it must be seconds above zero.", timeoutHeader, text)
	}
	if most := ondemand.MaxTime + ondemand.ReplyTime; seconds > most.Seconds() {
		return ondemand.MaxTime, ""
	}
	return time.Duration(seconds*float64(time.Second)) - ondemand.ReplyTime, ""
}

// notProbed replies that nothing was measured.
func (s *server) notProbed(w http.ResponseWriter, err error, log *steps) {
	why, refused := errors.AsType[*ondemand.Refused](err)
	if !refused {
		return // the client has gone
	}
	if why.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(why.RetryAfter.Seconds()))))
	}
	text := why.Text
	if log != nil {
		text += "\n\n" + log.String()
	}
	http.Error(w, text, statusOf(why.Kind))
}

// statusOf is the HTTP status of a request that is refused.
func statusOf(k ondemand.Kind) int {
	return map[ondemand.Kind]int{
		ondemand.Unconfigured: http.StatusNotFound, ondemand.Stopped: http.StatusServiceUnavailable, ondemand.Malformed: http.StatusBadRequest,
		ondemand.NotAllowed: http.StatusForbidden, ondemand.TooShort: http.StatusBadRequest, ondemand.Paused: http.StatusTooManyRequests,
		ondemand.Busy: http.StatusServiceUnavailable, ondemand.Unusable: http.StatusInternalServerError,
	}[k]
}

// probed replies with the metrics; with a log they are a part of it.
func (s *server) probed(w http.ResponseWriter, r *http.Request, sink Exposer, log *steps) {
	if log == nil {
		s.scrape(w, r, func(to io.Writer, format expfmt.Format, _ expfmt.Encoder) error { return sink.Expose(to, format) })
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprintf(w, "Logs for the probe:\n%s\n\n\nMetrics that would have been returned:\n", log)
	if err := sink.Expose(w, expfmt.NewFormat(expfmt.TypeTextPlain)); err != nil {
		s.Log.Error("A probe's metrics are incomplete", "err", err)
	}
}

// steps is the log of a request, of limited size. slog's handler serializes its writes.
type steps struct{ bytes.Buffer }

// Write keeps a record if there is space.
func (s *steps) Write(b []byte) (int, error) {
	if s.Len()+len(b) <= maxSteps {
		return s.Buffer.Write(b)
	}
	return len(b), nil
}
