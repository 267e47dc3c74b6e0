package httpd

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"oneway.example/exporter/agent/incident"
	"oneway.example/exporter/core/errtext"
)

// noRun is the reply about an ID without a run.
const noRun = "No run has this ID. The oldest reports are deleted when the directory of reports is full; /runs lists those that exist."

// run sends a report, compressed as in its file to clients that accept gzip. With ?format=gzip it sends the file itself.
func (s *server) run(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	f, err := s.Source.Reports().Open(id)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		http.Error(w, noRun, http.StatusNotFound)
		return
	case err != nil:
		s.unusable(r, id, err)
		http.Error(w, "the report cannot be read", http.StatusInternalServerError)
		return
	}
	defer func() { _ = f.Close() }() // opened for reading only
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("Vary", "Accept-Encoding")
	// An id has no character that needs quoting.
	h.Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", "oneway-"+id+".json"))
	content := io.Reader(f)
	if r.URL.Query().Get("format") == "gzip" {
		h.Set("Content-Type", "application/gzip")
		h.Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", "oneway-"+id+".json.gz"))
	} else if takesGzip(r.Header) {
		h.Set("Content-Encoding", "gzip")
	} else if content, err = gzip.NewReader(f); err != nil {
		h.Del("Content-Disposition")
		s.unusable(r, id, err)
		http.Error(w, "the report is damaged", http.StatusInternalServerError)
		return
	}
	if r.Method == http.MethodHead {
		return
	}
	if _, err := io.Copy(w, content); err != nil {
		s.Log.Debug("Report not written", "id", id, "err", err)
		panic(http.ErrAbortHandler) // the client must detect the incomplete reply
	}
}

// unusable logs a report that cannot be read: once a minute, since each request of anybody meets it again.
func (s *server) unusable(r *http.Request, id string, err error) {
	now, last, level := time.Now(), s.unusableLogged.Load(), slog.LevelError
	if last != nil && now.Sub(*last) < time.Minute || !s.unusableLogged.CompareAndSwap(last, &now) {
		level = slog.LevelDebug
	}
	s.Log.Log(r.Context(), level, "Report of a run cannot be read", "id", id, "err", err)
}

// takesGzip reports whether a client accepts gzip.
func takesGzip(h http.Header) bool {
	return quality(h.Values("Accept-Encoding"), "gzip", "x-gzip", "*") > 0
}

// prefersHTML reports whether a client accepts HTML, and nothing of others rather.
func prefersHTML(h http.Header, others ...string) bool {
	accept := h.Values("Accept")
	html := quality(accept, "text/html")
	return html > 0 && html >= quality(accept, others...)
}

// quality is the weight that the values of a header of negotiation give the first of these names; 0: none of them is there
// (RFC 9110 section 12.4.2).
func quality(values []string, names ...string) float64 {
	for one := range strings.SplitSeq(strings.Join(values, ","), ",") {
		name, parameters, _ := strings.Cut(one, ";")
		if !slices.Contains(names, strings.ToLower(strings.TrimSpace(name))) {
			continue
		}
		for parameter := range strings.SplitSeq(parameters, ";") {
			if q, weighted := strings.CutPrefix(strings.TrimSpace(parameter), "q="); weighted {
				v, _ := strconv.ParseFloat(strings.TrimSpace(q), 64) // a weight that is no number is 0
				return v
			}
		}
		return 1
	}
	return 0
}

// incident stores the last minutes of the path in the query, and of its probe if it has several.
func (s *server) incident(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	h, err := s.Source.StoreIncident(query.Get("path"), query.Get("probe"))
	status := http.StatusInternalServerError
	switch {
	case err == nil:
		w.Header().Set("Location", "../runs/"+h.ID)
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, "The last minutes of path %s, probe %s, are stored: runs/%s\n", h.Path, h.Probe, h.ID)
		return
	case errors.Is(err, incident.ErrUnknown):
		status = http.StatusNotFound
	case errors.Is(err, incident.ErrNoPackets), errors.Is(err, incident.ErrNoDirectory):
		status = http.StatusConflict
	case errors.Is(err, incident.ErrTooMany):
		w.Header().Set("Retry-After", "10")
		status = http.StatusTooManyRequests
	}
	http.Error(w, "The last minutes were not stored.\n"+errtext.Words(err), status)
}
