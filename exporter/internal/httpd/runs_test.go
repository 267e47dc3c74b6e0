package httpd

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/report"
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
	s.status.Reports.Last = store.Last(20)
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
	body := get(t, h, http.MethodGet, "/").Body.String()
	if !strings.Contains(body, `href="runs/`+id+`"`) {
		t.Error("the run has no link")
	}
	for _, hostile := range []string{"<script", "<img", "<b>", "<i>", "<u>"} {
		if strings.Contains(body, hostile) {
			t.Errorf("%s is in the page", hostile)
		}
	}
}

func TestBytesHaveThreeDigits(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1000: "1 kB", 61_300_000: "61.3 MB", 999_600_000: "1 GB", 1<<63 - 1: "9.22 EB"} {
		if got := formatBytes(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}
