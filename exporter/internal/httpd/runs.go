package httpd

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"time"

	"oneway.example/exporter/agent"
	"oneway.example/exporter/report"
)

// The JSON of /runs, and the parts of /api/v1/status that are about heavy tests.
type (
	runJSON struct {
		ID      string        `json:"id"`
		Path    string        `json:"path"`
		Probe   string        `json:"probe"`
		Kind    string        `json:"kind"`
		Peer    string        `json:"peer"`
		Begin   *time.Time    `json:"begin,omitempty"`
		End     *time.Time    `json:"end,omitempty"`
		Result  string        `json:"result"`
		Reason  string        `json:"reason,omitempty"`
		Summary []report.Line `json:"summary,omitempty"`
		// Report is the address of the whole report, relative to this server's root;
		// absent if it is not kept.
		Report string `json:"report,omitempty"`
		Bytes  int64  `json:"report_bytes,omitempty"`
	}
	linkJSON struct {
		Name string `json:"name"`
		// Limit and Left are absent for a link without a budget.
		Limit  *int64     `json:"budget_limit_bytes,omitempty"`
		Used   int64      `json:"budget_used_bytes"`
		Left   *int64     `json:"budget_left_bytes,omitempty"`
		Holder string     `json:"holder,omitempty"`
		Since  *time.Time `json:"since,omitempty"`
	}
	reportsJSON struct {
		Dir    string `json:"dir,omitempty"`
		Runs   int    `json:"runs"`
		Bytes  int64  `json:"bytes"`
		Failed uint64 `json:"failed"`
		Error  string `json:"error,omitempty"`
	}
)

func newRunJSON(h report.Header) runJSON {
	j := runJSON{
		ID: h.ID, Path: h.Path, Probe: h.Probe, Kind: h.Kind, Peer: h.Peer, Begin: known(h.Begin), End: known(h.End),
		Result: h.Result, Reason: h.Reason, Summary: h.Summary, Bytes: h.FileBytes,
	}
	if h.FileBytes > 0 {
		j.Report = "runs/" + h.ID
	}
	return j
}

func newLinksJSON(links []agent.LinkStatus) (all []linkJSON) {
	for _, l := range links {
		j := linkJSON{Name: l.Name, Used: l.Used, Holder: l.Holder, Since: known(l.Since)}
		if l.Limit > 0 {
			j.Limit, j.Left = &l.Limit, &l.Left
		}
		all = append(all, j)
	}
	return all
}

func newReportsJSON(r agent.ReportsStatus) reportsJSON {
	return reportsJSON{r.Dir, r.Runs, r.Bytes, r.Failed, r.Error}
}

// runs lists the runs that are kept, newest first.
func (s *server) runs(w http.ResponseWriter, _ *http.Request) {
	all := []runJSON{}
	for _, h := range s.Source.Reports().List() {
		all = append(all, newRunJSON(h))
	}
	s.json(w, all)
}

// run hands out a report, packed as it is on the disk to whoever takes gzip.
func (s *server) run(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	f, err := s.Source.Reports().Open(id)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		http.NotFound(w, r)
		return
	case err != nil:
		s.Log.Error("Report not handed out", "id", id, "err", err)
		http.Error(w, "the report cannot be read", http.StatusInternalServerError)
		return
	}
	defer func() { _ = f.Close() }() // it was only read
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("Vary", "Accept-Encoding")
	// An id has no character that would need quoting.
	h.Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", "oneway-"+id+".json"))
	content := io.Reader(f)
	if takesGzip(r.Header) {
		h.Set("Content-Encoding", "gzip")
	} else if content, err = gzip.NewReader(f); err != nil {
		h.Del("Content-Disposition")
		s.Log.Error("Report not handed out", "id", id, "err", err)
		http.Error(w, "the report is damaged", http.StatusInternalServerError)
		return
	}
	if r.Method == http.MethodHead {
		return
	}
	if _, err := io.Copy(w, content); err != nil {
		s.Log.Debug("Report not written", "id", id, "err", err)
		panic(http.ErrAbortHandler) // so that the client sees that it is not whole
	}
}

// takesGzip says whether a client accepts gzip (RFC 9110 section 12.5.3).
func takesGzip(h http.Header) bool {
	for coding := range strings.SplitSeq(strings.Join(h.Values("Accept-Encoding"), ","), ",") {
		name, weight, _ := strings.Cut(coding, ";")
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "gzip", "x-gzip", "*":
		default:
			continue
		}
		q, weighted := strings.CutPrefix(strings.TrimSpace(weight), "q=")
		v, err := strconv.ParseFloat(strings.TrimSpace(q), 64)
		return !weighted || err == nil && v > 0
	}
	return false
}

// runRow is one run on the page.
type runRow struct {
	report.Header
	// Health gives the result its colour and sign.
	Health                 agent.Health
	Forward, Reverse, Both []figure
}

func newRunRows(headers []report.Header) (rows []runRow) {
	for _, h := range headers {
		r := runRow{Header: h, Health: runHealth(h.Result)}
		for _, l := range h.Summary {
			f := figure{l.Quantity, l.Value}
			switch l.Direction {
			case "forward":
				r.Forward = append(r.Forward, f)
			case "reverse":
				r.Reverse = append(r.Reverse, f)
			default:
				r.Both = append(r.Both, f)
			}
		}
		rows = append(rows, r)
	}
	return rows
}

// runHealth is how a result is shown.
func runHealth(result string) agent.Health {
	switch result {
	case "completed":
		return agent.Up
	case "incomplete", report.Unreadable:
		return agent.Impaired
	case "skipped":
		return agent.Starting
	}
	return agent.Failed
}

// took writes how long a run lasted.
func took(h report.Header) string {
	if h.Begin.IsZero() || h.End.Before(h.Begin) {
		return ""
	}
	return h.End.Sub(h.Begin).Round(time.Second).String()
}

// octets writes an amount of data with a decimal unit, as budgets have it.
func octets(n int64) string {
	units := []string{"B", "kB", "MB", "GB", "TB", "PB", "EB"} // all of an int64
	v := float64(n)
	for v >= 999.5 && len(units) > 1 {
		v, units = v/1000, units[1:]
	}
	return fmt.Sprintf("%.3g %s", v, units[0])
}
