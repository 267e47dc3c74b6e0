package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/agent"
	"oneway.example/exporter/clocks"
	"oneway.example/exporter/clocks/static"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/probes"
	"oneway.example/exporter/reflector"
	"oneway.example/exporter/serve/httpd"
	"oneway.example/tests/await"
)

// reflectHere runs a reflector until the end of the test.
func reflectHere(t *testing.T) (peer string) {
	t.Helper()
	r, err := reflector.New(reflector.Options{Listen: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}},
		reflector.Env{Log: slog.New(slog.DiscardHandler), Sink: metric.Discard{}, Clock: static.New(time.Millisecond, metric.Discard{})})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { ended <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	<-r.Started()
	return r.Addrs()[0].String()
}

// TestPacketsOfARunningPathBecomeAnIncident covers the way from packets on the wire to the report over HTTP.
func TestPacketsOfARunningPathBecomeAnIncident(t *testing.T) {
	dir, peer := t.TempDir(), reflectHere(t)
	file := filepath.Join(dir, "oneway.yml")
	configure := func(paths string) {
		t.Helper()
		yaml := fmt.Sprintf("clock: {source: static, bound: 1ms}\nreports: {dir: %s}\npaths: %s\n", dir, paths)
		if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	probed := func(name string) string {
		return fmt.Sprintf("{name: %s, peer: %q, probes: [{type: stamp, interval: 10ms, loss_timeout: 100ms}]}", name, peer)
	}
	configure("[" + probed("a") + ", " + probed("b") + "]")
	ready := make(chan string, 100)
	a, err := agent.New(agent.Options{ConfigFile: file, Types: agent.Types{Clocks: clocks.All(), Probes: probes.All()}, Notify: func(state string) { ready <- state }})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { ended <- a.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	<-ready
	handler := httpd.Handler(httpd.Options{Source: a, Registry: httpd.NewRegistry()})
	ask := func(method, url string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), method, url, nil)
		r.Host = "localhost"
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w
	}
	keep := func(path string) (kept *httptest.ResponseRecorder) {
		await.Within(await.Timeout, func() bool {
			kept = ask(http.MethodPost, "/-/incident?path="+path)
			return kept.Code != http.StatusConflict // conflict: no packet yet
		})
		return kept
	}
	kept := keep("a")
	if kept.Code != http.StatusCreated {
		t.Fatalf("%d %s", kept.Code, kept.Body)
	}
	id := path.Base(kept.Header().Get("Location"))
	if page := ask(http.MethodGet, "/").Body.String(); !strings.Contains(page, id) {
		t.Errorf("the landing page does not contain %s:\n%s", id, page)
	}
	served := ask(http.MethodGet, "/runs/"+id)
	var report struct {
		Header struct{ Path, Kind string }
		Body   struct {
			Trigger string
			Columns []string
			Rows    [][]any
		}
	}
	if err := json.NewDecoder(served.Body).Decode(&report); err != nil {
		t.Fatalf("%d: %v", served.Code, err)
	}
	if report.Header.Path != "a" || report.Body.Trigger != "request" || len(report.Body.Rows) == 0 || len(report.Body.Rows[0]) != len(report.Body.Columns) {
		t.Errorf("%+v", report)
	}

	configure("[" + probed("b") + "]")
	if err := a.Reload(); err != nil {
		t.Fatal(err)
	}
	if gone := ask(http.MethodPost, "/-/incident?path=a"); gone.Code != http.StatusNotFound {
		t.Errorf("of a removed path: %d %s", gone.Code, gone.Body)
	}
	if stays := keep("b"); stays.Code != http.StatusCreated {
		t.Errorf("of a kept path: %d %s", stays.Code, stays.Body)
	}
}
