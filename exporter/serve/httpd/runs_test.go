package httpd

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/agent"
	"oneway.example/exporter/probe/report"
)

// withReports is a handler over a store with one report, whose texts contain HTML.
func withReports(t *testing.T) (h http.Handler, id, dir string) {
	t.Helper()
	dir = t.TempDir()
	store := report.Open(report.Options{Dir: dir})
	id = report.NewID(sampleNow, nil)
	header := report.Header{
		ID: id, Path: `"><script>alert(1)</script>`, Probe: "saturation", Kind: "saturation", Peer: "<b>peer</b>",
		Begin: sampleNow, End: sampleNow.Add(time.Minute), Result: "<i>result</i>", Reason: "</td><img src=x onerror=alert(1)>",
		Summary: []report.Line{{Quantity: "<u>q</u>", Direction: "forward", Value: "<script>"}},
	}
	if err := store.Write(header, map[string]string{"raw": "series"}); err != nil {
		t.Fatal(err)
	}
	s := &fakeSource{status: sample(), reports: store}
	runs, _ := store.Newest()
	of := report.Probe{Path: header.Path, Probe: header.Probe}
	s.status.Paths = append(s.status.Paths, agent.PathStatus{
		Name: of.Path, Peer: header.Peer, Probes: []agent.ProbeStatus{{Name: of.Probe, Type: header.Kind, Health: agent.Up, LoadTest: true, LastRun: runs[of]}},
	})
	return newHandler(t, s), id, dir
}

func TestRunsAreListedAsJSON(t *testing.T) {
	h, id, _ := withReports(t)
	w := get(t, h, http.MethodGet, "/runs")
	var list Runs
	if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil {
		t.Fatal(err)
	}
	runs := list.Runs
	if len(runs) != 1 || runs[0].ID != id || runs[0].Report != "runs/"+id || runs[0].FileBytes == 0 || list.Schema != "oneway/runs/1" {
		t.Errorf("got %s", w.Body)
	}
	if got := w.Header().Get("Content-Type"); got != "application/json" {
		t.Errorf("content type %q", got)
	}
	if strings.Contains(w.Body.String(), "<script") {
		t.Error("a browser that guesses the content type could run a script")
	}
}

func TestNoRunsAreAnEmptyList(t *testing.T) {
	store := report.Open(report.Options{})
	if got := get(t, newHandler(t, &fakeSource{reports: store}), http.MethodGet, "/runs").Body.String(); !strings.Contains(got, `"runs": []`) {
		t.Errorf("got %s", got)
	}
}

func TestReportHasAnEncodingThatTheClientAccepts(t *testing.T) {
	h, id, _ := withReports(t)
	for _, accept := range []string{"", "gzip", "br, gzip;q=0.5", "gzip;q=0", "identity", "*"} {
		w := get(t, h, http.MethodGet, "/runs/"+id, "Accept-Encoding", accept)
		if w.Code != http.StatusOK || w.Header().Get("Content-Disposition") != `attachment; filename="oneway-`+id+`.json"` {
			t.Fatalf("%q: %d, %v", accept, w.Code, w.Header())
		}
		content := io.Reader(w.Body)
		zipped := accept == "gzip" || accept == "br, gzip;q=0.5" || accept == "*"
		if got := w.Header().Get("Content-Encoding"); (got == "gzip") != zipped {
			t.Errorf("%q: content encoding %q", accept, got)
		}
		if zipped {
			var err error
			if content, err = gzip.NewReader(w.Body); err != nil {
				t.Fatal(err)
			}
		}
		var got struct {
			Header report.Header     `json:"header"`
			Body   map[string]string `json:"body"`
		}
		if err := json.NewDecoder(content).Decode(&got); err != nil {
			t.Fatalf("%q: %v", accept, err)
		}
		if got.Header.ID != id || got.Body["raw"] != "series" {
			t.Errorf("%q: got %+v", accept, got)
		}
	}
	if w := get(t, h, http.MethodHead, "/runs/"+id); w.Code != http.StatusOK || w.Body.Len() != 0 {
		t.Errorf("HEAD: %d with %d bytes", w.Code, w.Body.Len())
	}
	if w := get(t, h, http.MethodPost, "/runs/"+id); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", w.Code)
	}
}

func TestIDsDoNotLeadOutOfTheDirectory(t *testing.T) {
	h, _, dir := withReports(t)
	if err := os.WriteFile(filepath.Join(filepath.Dir(dir), "secret.json.gz"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link.json.gz")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		"/runs/..%2Fsecret", "/runs/%2e%2e%2fsecret", "/runs/..", "/runs/.%00", "/runs/link", "/runs/ABC", "/runs/" + strings.Repeat("a", 65),
		"/runs/%2Fetc%2Fpasswd", "/runs/..%5Csecret", "/runs/absent", "/runs/", "/runs/a/b",
	} {
		if w := get(t, h, http.MethodGet, path); w.Code == http.StatusOK || strings.Contains(w.Body.String(), "secret\n") || strings.Contains(w.Body.String(), "root:") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

func TestDamagedReportIsAnError(t *testing.T) {
	h, id, dir := withReports(t)
	if err := os.WriteFile(filepath.Join(dir, id+".json.gz"), []byte("not gzip"), 0o600); err != nil {
		t.Fatal(err)
	}
	if w := get(t, h, http.MethodGet, "/runs/"+id); w.Code != http.StatusInternalServerError {
		t.Errorf("status %d", w.Code)
	}
}

// TestRequestsForADamagedReportDoNotFillTheLog: everybody who reaches the port can send them.
func TestRequestsForADamagedReportDoNotFillTheLog(t *testing.T) {
	_, id, dir := withReports(t)
	if err := os.WriteFile(filepath.Join(dir, id+".json.gz"), []byte("not gzip"), 0o600); err != nil {
		t.Fatal(err)
	}
	var lines bytes.Buffer
	h := Handler(Options{Source: &fakeSource{reports: report.Open(report.Options{Dir: dir})}, Registry: NewRegistry(), Log: slog.New(slog.NewTextHandler(&lines, nil))})
	for range 20 {
		get(t, h, http.MethodGet, "/runs/"+id)
		get(t, h, http.MethodGet, "/runs/"+id+"/view")
	}
	if n := strings.Count(lines.String(), "\n"); n != 1 {
		t.Errorf("%d lines, want one a minute: %.500s", n, lines.String())
	}
}

// TestTruncatedReportIsDetected: also by a client that does not decompress it.
func TestTruncatedReportIsDetected(t *testing.T) {
	h, id, dir := withReports(t)
	file := filepath.Join(dir, id+".json.gz")
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, info.Size()-10); err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Start()
	defer s.Close()
	for _, accept := range []string{"gzip", "identity"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/runs/"+id, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept-Encoding", accept)
		reply, err := s.Client().Do(r)
		if err != nil {
			continue // cut off before the first byte
		}
		content, err := io.ReadAll(reply.Body)
		_ = reply.Body.Close()
		if accept == "gzip" && err == nil {
			var zipped *gzip.Reader
			if zipped, err = gzip.NewReader(bytes.NewReader(content)); err == nil {
				_, err = io.ReadAll(zipped)
			}
		}
		if err == nil {
			t.Errorf("%s: a truncated report was read as complete", accept)
		}
	}
}

func TestPageEscapesTextsOfRuns(t *testing.T) {
	h, id, _ := withReports(t)
	for _, path := range []string{"/", "/runs", "/runs?path=%3Cscript%3E", "/runs?kind=<b>&result=<i>&page=<u>", "/runs/" + id + "/view"} {
		body := get(t, h, http.MethodGet, path, "Accept", browserAccepts).Body.String()
		if !strings.Contains(path, "?") && !strings.Contains(body, `href="runs/`+id+`/view"`) && !strings.Contains(body, `href="../`+id+`"`) {
			t.Errorf("%s: the run has no link", path)
		}
		for _, hostile := range []string{"<script", "<img", "<b>", "<i>", "<u>"} {
			if strings.Contains(body, hostile) {
				t.Errorf("%s is in %s", hostile, path)
			}
		}
		if path != "/" {
			checkPage(t, body)
		}
	}
}

// browserAccepts is the header of the usual browsers.
const browserAccepts = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"

func TestRunsAreAPageForBrowsersAndJSONForOthers(t *testing.T) {
	h, id, _ := withReports(t)
	for accept, html := range map[string]bool{
		"": false, "*/*": false, "application/json": false, browserAccepts: true, "text/html": true, "text/html;q=0": false,
		"application/json, text/html;q=0.5": false, "application/json;q=0.5, TEXT/HTML": true, "text/html;level=1;q=0.4, application/json;q=0.3": true,
	} {
		w := get(t, h, http.MethodGet, "/runs", "Accept", accept)
		if got := w.Header().Get("Content-Type") == "text/html; charset=utf-8"; got != html || w.Header().Get("Vary") != "Accept" || !strings.Contains(w.Body.String(), id) {
			t.Errorf("%q: %v", accept, w.Header())
		}
	}
	if w := get(t, h, http.MethodGet, "/runs?format=json", "Accept", browserAccepts); w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("format=json: %v", w.Header())
	}
}

// many is a handler over 120 runs of two paths, of which every tenth failed.
func many(t *testing.T) http.Handler {
	t.Helper()
	store := report.Open(report.Options{})
	for i := range 120 {
		h := report.Header{ID: report.NewID(sampleNow.Add(time.Duration(i)*time.Hour), nil), Path: fmt.Sprint("p", i%2), Kind: "tcp", Probe: "tcp", Result: "completed"}
		if i%10 == 0 {
			h.Result, h.Reason = "failed", "unreachable"
		}
		if err := store.Write(h, nil); err != nil {
			t.Fatal(err)
		}
	}
	return newHandler(t, &fakeSource{reports: store})
}

func TestListOfRunsHasFiltersAndPages(t *testing.T) {
	h := many(t)
	for query, want := range map[string]struct {
		rows  int
		texts string
	}{
		"":                          {50, "1 to 50 of 120, newest first|?page=2"},
		"?page=2":                   {50, "51 to 100 of 120|?page=1|?page=3"},
		"?page=3":                   {20, "101 to 120 of 120|?page=2"},
		"?page=99":                  {20, "101 to 120 of 120"},
		"?page=-1":                  {50, "1 to 50 of 120"},
		"?page=x":                   {50, "1 to 50 of 120"},
		"?path=p0":                  {50, "1 to 50 of 60 found, 120 kept|?page=2&amp;path=p0"},
		"?path=p0&result=failed":    {12, "1 to 12 of 12 found"},
		"?path=p1&result=failed":    {0, "No run has these values"},
		"?kind=tcp&unknown=x":       {50, "1 to 50 of 120"},
		"?path=p0&path=p1&result=x": {0, "No run has these values"},
	} {
		body := get(t, h, http.MethodGet, "/runs"+query, "Accept", browserAccepts).Body.String()
		if n := strings.Count(body, `<th scope="row">`); n != want.rows {
			t.Errorf("%s: %d rows, want %d", query, n, want.rows)
		}
		for text := range strings.SplitSeq(want.texts, "|") {
			if !strings.Contains(body, text) {
				t.Errorf("%s: no %q", query, text)
			}
		}
		checkPage(t, body)
	}
	var all Runs
	if err := json.Unmarshal(get(t, h, http.MethodGet, "/runs?path=p0&page=2").Body.Bytes(), &all); err != nil || len(all.Runs) != 60 {
		t.Errorf("%d runs in JSON, %v", len(all.Runs), err)
	}
}

func TestRunWithoutAFileHasAPageWithTheReason(t *testing.T) {
	h, id, dir := withReports(t)
	file := filepath.Join(dir, id+".json.gz")
	if err := os.Truncate(file, 10); err != nil {
		t.Fatal(err)
	}
	if body := get(t, h, http.MethodGet, "/runs/"+id+"/view").Body.String(); !strings.Contains(body, "is damaged") || strings.Contains(body, "Download") {
		t.Errorf("a damaged file: %s", body)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if body := get(t, h, http.MethodGet, "/runs/"+id+"/view").Body.String(); !strings.Contains(body, "is missing") {
		t.Errorf("a missing file: %s", body)
	}
	store := report.Open(report.Options{})
	if err := store.Write(report.Header{ID: id}, nil); err != nil {
		t.Fatal(err)
	}
	if body := get(t, newHandler(t, &fakeSource{reports: store}), http.MethodGet, "/runs/"+id+"/view").Body.String(); !strings.Contains(body, "was not stored") {
		t.Errorf("no directory: %s", body)
	}
}

func TestReasonsAreInWordsAndSentencesAsTheyAre(t *testing.T) {
	for want, header := range map[string]report.Header{
		"no udp reply": {Reason: "no_udp_reply"},
		"loadtest: token_file /etc/local_token is missing": {Reason: "configuration", Error: "loadtest: token_file /etc/local_token is missing"},
	} {
		store := report.Open(report.Options{})
		header.ID, header.Path, header.Probe, header.Result = report.NewID(sampleNow, nil), "p", "tcp", "failed"
		if err := store.Write(header, nil); err != nil {
			t.Fatal(err)
		}
		runs, _ := store.Newest()
		s := &fakeSource{status: sample(), reports: store}
		s.status.Paths = []agent.PathStatus{{Name: "p", Probes: []agent.ProbeStatus{{Name: "tcp", LoadTest: true, LastRun: runs[report.Probe{Path: "p", Probe: "tcp"}]}}}}
		h := newHandler(t, s)
		for _, path := range []string{"/", "/runs", "/runs/" + header.ID + "/view"} {
			body := strings.ReplaceAll(get(t, h, http.MethodGet, path, "Accept", browserAccepts).Body.String(), "<wbr/>", "")
			if !strings.Contains(body, want) {
				t.Errorf("%s: no %q", path, want)
			}
		}
	}
}

func TestFileOfAReportIsADownload(t *testing.T) {
	h, id, dir := withReports(t)
	w := get(t, h, http.MethodGet, "/runs/"+id+"?format=gzip")
	file, err := os.ReadFile(filepath.Join(dir, id+".json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(w.Body.Bytes(), file) || w.Header().Get("Content-Encoding") != "" || w.Header().Get("Content-Type") != "application/gzip" ||
		w.Header().Get("Content-Disposition") != `attachment; filename="oneway-`+id+`.json.gz"` {
		t.Errorf("%v, %d bytes of %d", w.Header(), w.Body.Len(), len(file))
	}
}
