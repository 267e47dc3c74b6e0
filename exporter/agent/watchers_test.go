package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/agent"
	"oneway.example/exporter/clocks"
	"oneway.example/exporter/output/promsink"
	"oneway.example/exporter/serve/httpd"
	"oneway.example/exporter/watcher"
	"oneway.example/exporter/watchers"
	"oneway.example/tests/await"
)

// TestNewTypeOfWatcherNeedsNoFurtherCode covers the parts of the agent that show a watcher: configuration, status, page and metrics.
func TestNewTypeOfWatcherNeedsNoFurtherCode(t *testing.T) {
	file := filepath.Join(t.TempDir(), "oneway.yml")
	sink := promsink.New(promsink.Options{})
	configured := func(text string) (*agent.Agent, error) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return agent.New(agent.Options{ConfigFile: file, Types: agent.Types{Clocks: clocks.All(), Watchers: []watcher.Type{dummyType{}}}, Sink: sink, Notify: func(string) {}})
	}
	a, err := configured("clock: {source: none}\nwatchers: [{type: agent_test_dummy, name: a, most: 3}, {type: agent_test_dummy, name: dummy, most: 1000000}]")
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	handler := httpd.Handler(httpd.Options{Source: a, Registry: httpd.NewRegistry(), Sink: sink, Now: func() time.Time { return time.Now().Add(time.Hour) }})
	get := func(path string) string {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		return w.Body.String()
	}
	await.That(t, "the first is full", func() bool { return strings.Contains(get("/api/v1/status"), "it counts no further") })
	var status struct {
		Watchers []struct {
			Name, Type, Health, State, Error string
			Warnings                         []string
			Details                          struct {
				Level int64 `json:"level_bytes"`
			}
		}
	}
	if err := json.Unmarshal([]byte(get("/api/v1/status")), &status); err != nil || len(status.Watchers) != 2 {
		t.Fatalf("%+v, %v", status, err)
	}
	if w := status.Watchers[0]; w.Name != "a" || w.Type != "agent_test_dummy" || w.Health != "impaired" || w.State != "full" || w.Details.Level != 3 || len(w.Warnings) != 1 {
		t.Errorf("the first is %+v", w)
	}
	if w := status.Watchers[1]; w.Name != "dummy" || w.Health != "up" || w.State != "counting" || w.Error != "" || w.Details.Level == 0 {
		t.Errorf("the second is %+v", w)
	}
	page := strings.Join(strings.Fields(get("/")), " ")
	for _, want := range []string{
		"The dummy a is full.", `<a href="#dummy">Dummy</a>`, `<a href="#dummy-dummy">Dummy dummy</a>`, `<section class="card" id="dummy"> <h3>Dummy</h3>`,
		"<dt>Name</dt><dd>a</dd>", "<dt>Level</dt><dd>3</dd>", "<dt>Period</dt><dd>1.0000 ms ± 0.0020 ms</dd>", "<dt>Unknown</dt><dd>unknown</dd>", `<p class="reason">it counts no further</p>`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	if text := get("/metrics"); !strings.Contains(text, `oneway_dummy_level_bytes{band="low",dummy="a"} 3`) {
		t.Errorf("the metrics are\n%s", text)
	}
	end()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if text := get("/metrics"); strings.Contains(text, "oneway_dummy_level_bytes{") {
		t.Error("a watcher that has ended has a metric")
	}
}

func TestFaultsOfWatchersAreFoundInTheConfiguration(t *testing.T) {
	for text, want := range map[string]string{
		"watchers: [{type: agent_test_dummy, most: 0}]":                    `watchers[0].most is 0; it must be between 1 and 1000000000`,
		"watchers: [{type: agent_test_dummy, mst: 1}]":                     `watchers[0].mst is unknown; did you mean "most"?`,
		"watchers: [{type: agent_test_dumy, most: 1}]":                     `watchers[0].type is "agent_test_dumy"; did you mean "agent_test_dummy"?`,
		"watchers: [{most: 1}]":                                            `watchers[0].type is missing; it must be the type of the watcher, such as gpsd`,
		"watchers: [{type: agent_test_dummy}, {type: agent_test_dummy}]":   `watchers[1].name is "agent_test_dummy", which is also the name of another watcher; names must differ`,
		"watchers: [{type: gpsd, name: g}]\nclock: {gpsd: {name: g}}":      `watchers[0].name is "g", which is also the name of another watcher of type gpsd; names must differ`,
		"watchers: [{type: pps, name: p, device: pps1, edge: rising}]":     `watchers[0].edge is "rising"; it must be assert or clear`,
		"clock: {pps: {device: pps1, nam: p}}":                             `clock.pps.device is "pps1"; it must be an absolute path, such as /dev/pps0`,
		"clock: {pps: {device: pps1, name: [p]}, gpsd: {device: \"a b\"}}": `clock.gpsd.device is "a b", with an invalid character at position 2; it must be a path such as /dev/ttyS0`,
	} {
		file := filepath.Join(t.TempDir(), "oneway.yml")
		err := os.WriteFile(file, []byte("paths: []\n"+text), 0o600)
		_, _, found := agent.Check(agent.Options{ConfigFile: file, Types: agent.Types{Clocks: clocks.All(), Watchers: append(watchers.All(), dummyType{})}})
		if err = errors.Join(err, found); found == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v\nwant %s", text, err, want)
		}
	}
}
