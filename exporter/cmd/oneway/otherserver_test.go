package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oneway.example/exporter/agent"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/output/promsink"
	"oneway.example/exporter/serve/httpd"
	"oneway.example/tests/await"
	"oneway.example/tests/httpget"
)

// pageBytes is the size of the page of the web server.
const pageBytes = 300_000

func webServer(t *testing.T) (address string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, pageBytes)) })) // the client sees an error
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

func get(t *testing.T, url string) string {
	t.Helper()
	r, err := http.Get(url) //nolint:noctx // a test server
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", url, r.Status, err)
	}
	return string(text)
}

// A load test without a token and a load server has a link with a quota, status, metrics, a report and its page.
func TestRunWithoutALoadServerIsARunOfTheAgent(t *testing.T) {
	t.Parallel()
	dir, sink := t.TempDir(), promsink.New(promsink.Options{})
	file := filepath.Join(dir, "oneway.yml")
	text := fmt.Sprintf(`clock: {source: none}
state_dir: %s
links: [{name: uplink, quota_bytes: 700kB}]
paths: [{name: web, peer: %q, link: uplink, probes: [{type: http_get, every: 10s, max_bytes: 400kB}]}]
`, dir, webServer(t))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := agent.New(agent.Options{ConfigFile: file, Types: registeredWith(httpget.NewType()), Sink: sink, Notify: func(string) {}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	server := httptest.NewServer(httpd.Handler(httpd.Options{Source: a, Registry: httpd.NewRegistry(), Sink: sink}))
	t.Cleanup(server.Close)
	await.That(t, "the third run is skipped by the quota", func() bool {
		return strings.Contains(get(t, server.URL+"/metrics"), `oneway_probe_runs_total{path="web",probe="http_get",reason="quota",result="skipped"}`)
	})
	metrics := get(t, server.URL+"/metrics")
	for _, want := range []string{
		metric.QuotaUsed.Name + `{link="uplink"} 600000`, `oneway_run_sent_bytes_total{direction="reverse",path="web",probe="http_get"} 600000`,
		`oneway_probe_runs_total{path="web",probe="http_get",reason="ok",result="completed"} 2`, `oneway_tcp_throughput_bytes_per_second{direction="reverse",path="web",probe="http_get"}`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no %s in /metrics", want)
		}
	}
	runs := a.Reports().List()
	if len(runs) != 2 || runs[0].Kind != "http_get" || runs[0].Path != "web" {
		t.Fatalf("reports: %+v", runs)
	}
	if page := get(t, server.URL+"/runs/"+runs[0].ID+"/view"); !strings.Contains(page, "300") || !strings.Contains(page, "http_get") {
		t.Errorf("page of the run:\n%s", page)
	}
	if page := get(t, server.URL+"/"); !strings.Contains(page, "300") {
		t.Errorf("no result on the page:\n%s", page)
	}
}

// Its command needs neither a token nor directions.
func TestRunWithoutALoadServerIsACommand(t *testing.T) {
	k := testKind{"http_get", "http-get", httpget.NewType().Command()}
	f := &testFlags{host: webServer(t), clock: clockFlags{source: "none"}}
	var out, progress bytes.Buffer
	if err := f.run(t.Context(), k, &out, &progress); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"http_get to " + f.host, "reverse", "bytes     300 kB"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	f.json.full, k.CommandLine = true, httpget.NewType().Command()
	out.Reset()
	if err := f.run(t.Context(), k, &out, &progress); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Result  loadtest.Result `json:"result"`
		Sent    int64           `json:"reverse_sent_bytes"`
		Results struct {
			Bytes int64 `json:"received_bytes"`
		} `json:"results"`
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || got.Result != loadtest.Completed || got.Sent != pageBytes || got.Results.Bytes != pageBytes {
		t.Errorf("%+v, %v", got, err)
	}
}
