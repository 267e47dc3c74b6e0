package httpd

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"

	"oneway.example/exporter/agent"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/output/promsink"
	"oneway.example/exporter/watcher"
	"oneway.example/exporter/watchers/gpsd"
	"oneway.example/exporter/watchers/pps"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func newHandler(t *testing.T, s *fakeSource) http.Handler {
	t.Helper()
	return Handler(Options{Source: s, Registry: NewRegistry(), ExternalHosts: []string{"agent.example.net"}, Now: func() time.Time { return sampleNow }})
}

func get(t testing.TB, h http.Handler, method, path string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, "http://agent.example.net:9862"+path, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := "testdata/" + name
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got); -update rewrites it:\n%s", file, diff)
	}
}

func TestPageMatchesTheGoldenFile(t *testing.T) {
	w := get(t, newHandler(t, &fakeSource{status: sample()}), http.MethodGet, "/")
	if w.Code != http.StatusOK || !strings.Contains(w.Header().Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("status %d, headers %v", w.Code, w.Header())
	}
	golden(t, "page.html", w.Body.String())
}

func TestStatusMatchesTheGoldenFile(t *testing.T) {
	w := get(t, newHandler(t, &fakeSource{status: sample()}), http.MethodGet, "/api/v1/status")
	golden(t, "status.json", w.Body.String())
}

func TestDiscoveryListsHosts(t *testing.T) {
	status := sample()
	status.Paths[1].Labels = map[string]string{"site": "Seoul"}
	w := get(t, newHandler(t, &fakeSource{status: status}), http.MethodGet, "/sd")
	var groups []TargetGroup
	if err := json.Unmarshal(w.Body.Bytes(), &groups); err != nil {
		t.Fatal(err)
	}
	if len(groups) != 10 || groups[1].Targets[0] != "2001:db8::7" || groups[1].Labels["__meta_oneway_path"] != "bus-12-to-core" ||
		groups[1].Labels["__meta_oneway_label_site"] != "Seoul" || len(groups[0].Labels) != 2 {
		t.Errorf("got %+v", groups)
	}
	if got := w.Header().Get("Content-Type"); got != "application/json" {
		t.Errorf("content type %q: Prometheus refuses it", got)
	}
}

func TestVerdictHasTheLevelAndNotesOfTheStatus(t *testing.T) {
	up := agent.PathStatus{Name: "a", Probes: []agent.ProbeStatus{{Name: "stamp", Health: agent.Up}}}
	starting := agent.PathStatus{Name: "b", Probes: []agent.ProbeStatus{{Name: "stamp", Health: agent.Starting}}}
	down := agent.PathStatus{Name: "c", Probes: []agent.ProbeStatus{{Name: "stamp", Health: agent.Down}}}
	idle := agent.PathStatus{Name: "d", Probes: []agent.ProbeStatus{{Name: "tcp", Health: agent.Starting, LoadTest: true}}}
	with := func(details interface{ Status() watcher.Status }) func(*agent.Status) {
		return func(s *agent.Status) { s.Watchers = []agent.WatcherStatus{{Status: details.Status()}} }
	}
	good := agent.Status{Started: sampleNow.Add(-time.Minute), Clock: agent.ClockStatus{Trusted: true}}
	for _, c := range []struct {
		name    string
		change  func(*agent.Status)
		level   agent.Health
		summary string
		notes   int
	}{
		{"nothing", func(*agent.Status) {}, agent.Up, "No paths are configured", 0},
		{"one", func(s *agent.Status) { s.Paths = []agent.PathStatus{up} }, agent.Up, "The one probe is measuring", 0},
		{"two", func(s *agent.Status) { s.Paths = []agent.PathStatus{up, up} }, agent.Up, "All 2 probes are measuring", 0},
		{"starting", func(s *agent.Status) { s.Paths = []agent.PathStatus{up, starting} }, agent.Starting, "1 of 2 probes measuring, 1 starting", 0},
		{"down", func(s *agent.Status) { s.Paths = []agent.PathStatus{up, down} }, agent.Down, "1 of 2 probes has a problem: 1 down", 0},
		{"before the first run", func(s *agent.Status) { s.Paths = []agent.PathStatus{up, idle} }, agent.Up, "1 of 2 probes measuring, 1 before the first run", 0},
		{"load test alone", func(s *agent.Status) { s.Paths = []agent.PathStatus{idle} }, agent.Up, "0 of 1 probe measuring, 1 before the first run", 0},
		{"starting, and before the first run", func(s *agent.Status) { s.Paths = []agent.PathStatus{up, starting, idle} }, agent.Starting, "1 of 3 probes measuring, 1 starting, 1 before the first run", 0},
		{"a problem, and before the first run", func(s *agent.Status) { s.Paths = []agent.PathStatus{down, idle} }, agent.Down, "1 of 2 probes has a problem: 1 down", 0},
		{"clock", func(s *agent.Status) {
			s.Paths, s.Clock = []agent.PathStatus{up}, agent.ClockStatus{Reason: "local_unsynchronized"}
		}, agent.Impaired, "The one probe is measuring", 1},
		{"reload", func(s *agent.Status) { s.Config.Error = "x" }, agent.Impaired, "No paths are configured", 1},
		{"reflector", func(s *agent.Status) { s.Reflector = &agent.ReflectorStatus{Error: "x"} }, agent.Impaired, "No paths are configured", 1},
		{"key", func(s *agent.Status) {
			s.Reflector = &agent.ReflectorStatus{Listening: true, KeyFaults: &agent.KeyFaults{Packets: 9, Sources: []agent.KeyFault{{Source: "192.0.2.1", Reason: "it has another key", Packets: 9}}}}
		}, agent.Impaired, "No paths are configured", 1},
		{"replies that a firewall keeps", func(s *agent.Status) {
			s.Reflector = &agent.ReflectorStatus{Listening: true, Forbidden: 3}
		}, agent.Impaired, "No paths are configured", 1},
		{"few packets without a key", func(s *agent.Status) {
			s.Reflector = &agent.ReflectorStatus{Listening: true, KeyFaults: &agent.KeyFaults{Packets: 2}}
		}, agent.Up, "No paths are configured", 0},
		{"load_server", func(s *agent.Status) { s.LoadServer = &agent.LoadServerStatus{Error: "x"} }, agent.Impaired, "No paths are configured", 1},
		{"gpsd away", with(gpsd.Details{Fix: "unknown"}), agent.Impaired, "No paths are configured", 1},
		{"receiver away", with(gpsd.Details{Replying: true}), agent.Impaired, "No paths are configured", 1},
		{"no fix", with(gpsd.Details{Replying: true, Connected: true, Fix: "none"}), agent.Impaired, "No paths are configured", 1},
		{"a fix", with(gpsd.Details{Replying: true, Connected: true, Fix: "2D"}), agent.Up, "No paths are configured", 0},
		{"no pulse", with(pps.Details{}), agent.Impaired, "No paths are configured", 1},
		{"no pulse yet", func(s *agent.Status) { with(pps.Details{})(s); s.Started = sampleNow }, agent.Up, "No paths are configured", 0},
		{"a pulse", with(pps.Details{Present: true}), agent.Up, "No paths are configured", 0},
		{"report lost", func(s *agent.Status) { s.Reports.Error = "x" }, agent.Impaired, "No paths are configured", 1},
		{"not running", func(s *agent.Status) { s.Started = time.Time{} }, agent.Starting, "Not measuring: the agent is starting or ending", 0},
	} {
		s := good
		c.change(&s)
		got := newView(s, "h", sampleNow, false).Verdict
		if got.Level != c.level || got.Summary != c.summary || len(got.Notes) != c.notes {
			t.Errorf("%s: got %+v", c.name, got)
		}
	}
}

func TestPageOfManyPathsShowsProblemsFirst(t *testing.T) {
	s := sample()
	for i := range 1000 {
		s.Paths = append(s.Paths, agent.PathStatus{Name: fmt.Sprint("p", i), Probes: []agent.ProbeStatus{{Health: agent.Up}}})
	}
	s.Paths = append(s.Paths, agent.PathStatus{Name: "the-last", Probes: []agent.ProbeStatus{{Health: agent.Failed}}})
	h := newHandler(t, &fakeSource{status: s})
	some, all := get(t, h, http.MethodGet, "/").Body.String(), get(t, h, http.MethodGet, "/?all").Body.String()
	if n := strings.Count(some, `<th scope="row">`); n != maxRows {
		t.Errorf("%d rows, want %d", n, maxRows)
	}
	if !strings.Contains(some, "the-<wbr/>last") || !strings.Contains(some, "812 more") {
		t.Error("a failed path is not shown, or the number of hidden ones is wrong")
	}
	if n := strings.Count(all, `<th scope="row">`); n != 1012 {
		t.Errorf("%d rows of all, want 1012", n)
	}
}

func TestPageEscapesTextsOfThePeer(t *testing.T) {
	s := sample()
	s.Paths[0].Probes[0].Reason = `<script>alert(1)</script>`
	if body := get(t, newHandler(t, &fakeSource{status: s}), http.MethodGet, "/").Body.String(); strings.Contains(body, "<script") {
		t.Error("a script is in the page")
	}
}

func TestHealthAndReadiness(t *testing.T) {
	s := &fakeSource{}
	h := newHandler(t, s)
	if w := get(t, h, http.MethodGet, "/-/healthy"); w.Code != http.StatusOK {
		t.Errorf("healthy is %d", w.Code)
	}
	if w := get(t, h, http.MethodGet, "/-/ready"); w.Code != http.StatusServiceUnavailable {
		t.Errorf("ready is %d before the start", w.Code)
	}
	s.status = sample()
	if w := get(t, h, http.MethodGet, "/-/ready"); w.Code != http.StatusOK {
		t.Errorf("ready is %d", w.Code)
	}
}

func TestReloadReportsItsResult(t *testing.T) {
	s := &fakeSource{}
	h := newHandler(t, s)
	for _, method := range []string{http.MethodPost, http.MethodPut} {
		if w := get(t, h, method, "/-/reload"); w.Code != http.StatusOK {
			t.Errorf("%s: status %d", method, w.Code)
		}
	}
	s.err = errReload
	if w := get(t, h, http.MethodPost, "/-/reload"); w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), errReload.Error()) {
		t.Errorf("failed reload: %d %s", w.Code, w.Body)
	}
	if w := get(t, h, http.MethodGet, "/-/reload"); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("GET: status %d", w.Code)
	}
	if w := get(t, h, http.MethodPost, "/-/reload", "Sec-Fetch-Site", "cross-site"); w.Code != http.StatusForbidden {
		t.Errorf("a page elsewhere: status %d", w.Code)
	}
	if s.reloads != 3 {
		t.Errorf("%d reloads, want 3", s.reloads)
	}
}

func TestProfilesAreServedOnlyIfEnabled(t *testing.T) {
	if w := get(t, newHandler(t, &fakeSource{}), http.MethodGet, "/debug/pprof/"); w.Code != http.StatusNotFound {
		t.Errorf("status %d without --web.enable-pprof", w.Code)
	}
	h := Handler(Options{Source: &fakeSource{}, Registry: NewRegistry(), Pprof: true})
	if w := get(t, h, http.MethodGet, "/debug/pprof/"); w.Code != http.StatusOK {
		t.Errorf("status %d", w.Code)
	}
}

// broken exposes some of its families.
type broken struct{}

func (broken) Expose(to io.Writer, _ expfmt.Format) error {
	_, _ = io.WriteString(to, "oneway_one 1\n")
	return errors.New("the second family cannot be shown")
}

func TestPartOfAScrapeIsAnError(t *testing.T) {
	h := Handler(Options{Source: &fakeSource{}, Registry: NewRegistry(), Sink: broken{}})
	for _, coding := range []string{"identity", "gzip"} {
		if w := get(t, h, http.MethodGet, "/metrics", "Accept-Encoding", coding); w.Code != http.StatusInternalServerError {
			t.Errorf("%s: status %d, want 500", coding, w.Code)
		}
	}
}

func TestMetricsHaveTheRequestedFormat(t *testing.T) {
	sink := promsink.New(promsink.Options{})
	sink.Series(metric.Delay, "p", "stamp", "forward").Observe(0.03)
	h := Handler(Options{Source: &fakeSource{}, Registry: NewRegistry(), Sink: sink})
	for accept, want := range map[string]string{
		"":           "text/plain; version=0.0.4",
		"text/plain": "text/plain; version=0.0.4",
		"application/openmetrics-text;version=1.0.0":                                                       "application/openmetrics-text; version=1.0.0",
		"application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.9": "application/vnd.google.protobuf",
	} {
		if got := get(t, h, http.MethodGet, "/metrics", "Accept", accept).Header().Get("Content-Type"); !strings.HasPrefix(got, want) {
			t.Errorf("%q gets %q, want %q", accept, got, want)
		}
	}
	w := get(t, h, http.MethodGet, "/metrics", "Accept-Encoding", "gzip")
	zipped, err := gzip.NewReader(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(zipped)
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range []string{"oneway_build_info{", "go_goroutines ", "process_start_time_seconds ", `oneway_delay_seconds_count{direction="forward",path="p",probe="stamp"} 1`} {
		if !strings.Contains(string(body), family) {
			t.Errorf("%q is not in /metrics", family)
		}
	}
	problems, err := promlint.New(strings.NewReader(string(body))).Lint()
	if err != nil || len(problems) != 0 {
		t.Errorf("promlint: %v %v", problems, err)
	}
}

func TestUnknownPagesAreNotFound(t *testing.T) {
	for _, path := range []string{"/index.php", "/metrics/x", "/style.css/x"} {
		if w := get(t, newHandler(t, &fakeSource{}), http.MethodGet, path); w.Code != http.StatusNotFound {
			t.Errorf("%s: status %d", path, w.Code)
		}
	}
}

func TestAgesAreRounded(t *testing.T) {
	for ago, want := range map[time.Duration]string{
		0: "just now", 90 * time.Second: "90 s ago", 17 * time.Minute: "17 min ago", 3 * time.Hour: "3 h ago", 72 * time.Hour: "2026-02-26 12:00 UTC",
	} {
		if got := age(sampleNow, sampleNow.Add(-ago)); got != want {
			t.Errorf("%v is %q, want %q", ago, got, want)
		}
	}
	if got := age(sampleNow, time.Time{}); got != "never" {
		t.Errorf("the zero time is %q", got)
	}
}
