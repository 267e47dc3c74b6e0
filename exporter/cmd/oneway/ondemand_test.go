package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oneway.example/exporter/agent"
	"oneway.example/exporter/families"
	"oneway.example/exporter/output/promsink"
	"oneway.example/exporter/probes/stamp"
	"oneway.example/exporter/serve/httpd"
	"oneway.example/tests/await"
	"oneway.example/tests/freeport"
)

// onDemandAgent runs an agent with a reflector and this section on_demand, in which %[1]s is the reflector's port.
func onDemandAgent(t *testing.T, section string) (server *httptest.Server, reflector string) {
	t.Helper()
	server, reflector, _, _ = changingAgent(t, section)
	return server, reflector
}

// changingAgent is onDemandAgent with a function that puts another text in place of the section, and one that ends the agent.
func changingAgent(t *testing.T, section string) (server *httptest.Server, reflector string, change func(section string), end func()) {
	t.Helper()
	reflector = freeport.Address(t)
	port := reflector[strings.LastIndex(reflector, ":")+1:]
	text := func(section string) string {
		return fmt.Sprintf("clock: {source: static, bound: 20us}\nreflector: {listen: [%q], rate_limit: {packets_per_second: 100000, burst: 100000}}\n", reflector) +
			strings.ReplaceAll(section, "%[1]s", port)
	}
	file := write(t, text("on_demand:\n"+section))
	sink := promsink.New(promsink.Options{})
	a, err := agent.New(agent.Options{ConfigFile: file, Types: families.Types(), Light: stamp.Light, Sink: sink, Notify: func(string) {}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	server = httptest.NewServer(httpd.Handler(httpd.Options{
		Source: a, Registry: httpd.NewRegistry(), Sink: sink, ProbeSink: func() httpd.ProbeSink { return promsink.New(promsink.Options{}) },
	}))
	end = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		server.Close()
		end()
	})
	await.That(t, "the reflector listens", func() bool { s := a.Status(); return s.Reflector.Listening && s.OnDemand != nil })
	return server, reflector, func(section string) {
		if err := os.WriteFile(file, []byte(text(section)), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := a.Reload(); err != nil {
			t.Fatal(err)
		}
	}, end
}

// probed requests a measurement.
func probed(t *testing.T, server *httptest.Server, target, module string) (status int, body string) {
	t.Helper()
	resp, err := server.Client().Get(server.URL + "/probe?target=" + target + "&module=" + module)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return resp.StatusCode, string(all)
}

func TestAgentMeasuresOnDemand(t *testing.T) {
	server, reflector := onDemandAgent(t, `  targets: [127.0.0.0/8, localhost, gone.invalid]
  ports: [%[1]s, 9]
  target_pause: 0s
  modules:
    - {name: voice, type: stamp, count: 25, interval: 20ms, loss_timeout: 300ms}
    - {name: slim, type: stamp, profile: slim, count: 3, interval: 10ms, loss_timeout: 300ms}
`)
	port := reflector[strings.LastIndex(reflector, ":")+1:]
	for target, want := range map[string][]string{
		reflector: {
			"probe_success 1", "probe_loss_ratio 0", `oneway_packets_received_total{direction="forward",path="` + reflector + `",probe="voice"} 25`,
			`oneway_packets_received_total{direction="reverse",path="` + reflector + `",probe="voice"} 25`, `oneway_delay_seconds_count{direction="forward",path="` + reflector + `",probe="voice"} 25`,
			`oneway_voice_r_factor{buffer="adaptive",codec="G.711-PLC",direction="reverse",model="g107"`, `reflector="oneway"`,
		},
		"localhost:" + port: {"probe_success 1", `path="localhost:` + port + `"`},
		"127.0.0.1:9":       {"probe_success 0", "probe_loss_ratio 1", `probe_failure_info{reason="unreachable"} 1`, `oneway_round_trips_lost_total{path="127.0.0.1:9",probe="voice"} 25`},
		"gone.invalid:9":    {"probe_success 0", "probe_loss_ratio 1", `probe_failure_info{reason="unresolved"} 1`},
	} {
		status, body := probed(t, server, target, "voice")
		for _, w := range want {
			if status != http.StatusOK || !strings.Contains(body, w) {
				t.Errorf("%s: status %d without %s", target, status, w)
			}
		}
		if t.Failed() {
			t.Fatal(body)
		}
	}
	if status, body := probed(t, server, reflector, "slim"); status != http.StatusOK || strings.Contains(body, "oneway_voice") || !strings.Contains(body, "oneway_packets_lost_total") {
		t.Errorf("slim: status %d\n%s", status, body)
	}
}

func TestReloadAndEndOfAnAgentReachItsMeasurements(t *testing.T) {
	const section = "on_demand:\n  targets: [127.0.0.0/8]\n  ports: [%[1]s]\n  target_pause: 0s\n"
	const slow = section + "  modules: [{name: m, type: stamp, count: 100, interval: 100ms}]\n"
	server, reflector, change, end := changingAgent(t, strings.TrimPrefix(slow, "on_demand:\n"))
	begun := make(chan string, 2)
	request := func() {
		status, body := probed(t, server, reflector, "m")
		begun <- fmt.Sprint(status, " ", strings.Contains(body, "probe_success 1"))
	}
	go request()
	running := func() bool {
		body, err := getPage(server.URL + "/metrics")
		return err == nil && strings.Contains(body, "oneway_on_demand_probes_running 1\n")
	}
	await.That(t, "a measurement runs", running)
	change(section + "  modules: [{name: other, type: stamp, count: 1, interval: 1ms, loss_timeout: 100ms}]\n")
	for module, want := range map[string]int{"m": http.StatusForbidden, "other": http.StatusOK} {
		if status, body := probed(t, server, reflector, module); status != want {
			t.Errorf("module %s after a reload: status %d, want %d\n%s", module, status, want, body)
		}
	}
	change("")
	if status, _ := probed(t, server, reflector, "other"); status != http.StatusNotFound {
		t.Errorf("without the section: status %d, want 404", status)
	}
	if body, err := getPage(server.URL + "/metrics"); err != nil || strings.Contains(body, "on_demand") {
		t.Errorf("without the section there are series of it (%v)", err)
	}
	if got := <-begun; got != "200 true" {
		t.Errorf("the measurement that ran during the reloads ended with %s", got)
	}

	change(slow)
	go request()
	await.That(t, "a measurement runs", running)
	end()
	if got := <-begun; got != "503 false" {
		t.Errorf("at the end of the agent a measurement ended with %s", got)
	}
}

// TestNothingIsLeftOfThousandsOfRequests sends requests that succeed, fail, are refused, and whose clients go away.
func TestNothingIsLeftOfThousandsOfRequests(t *testing.T) {
	requests := 2000
	if os.Getenv("ONEWAY_SOAK") != "" {
		requests = 10_000
	}
	server, reflector := onDemandAgent(t, `  targets: [127.0.0.0/8]
  ports: [%[1]s, 9]
  target_pause: 0s
  max_concurrent: 32
  modules: [{name: m, type: stamp, count: 2, interval: 1ms, loss_timeout: 300ms}]
`)
	probed(t, server, reflector, "m")
	server.Client().CloseIdleConnections()
	await.That(t, "idle connections are closed", func() bool { return descriptors(t) <= 64 })
	goroutines, files := runtime.NumGoroutine(), descriptors(t)
	var succeeded, others, next atomic.Int64
	var all sync.WaitGroup
	for range 32 {
		all.Go(func() {
			for i := next.Add(1); i <= int64(requests); i = next.Add(1) {
				switch {
				case i%50 == 0:
					probed(t, server, "127.0.0.1:9", "m")
				case i%10 == 1:
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%7)*time.Millisecond)
					r, _ := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/probe?module=m&target="+reflector, nil)
					if resp, err := server.Client().Do(r); err == nil {
						_ = resp.Body.Close()
					}
					cancel()
				case i%10 == 2:
					if status, _ := probed(t, server, "192.0.2.1", "m"); status != http.StatusForbidden {
						others.Add(1)
					}
				default:
					if status, body := probed(t, server, reflector, "m"); status == http.StatusOK && strings.Contains(body, "probe_success 1") {
						succeeded.Add(1)
					} else {
						others.Add(1)
					}
				}
			}
		})
	}
	all.Wait()
	t.Logf("%d of %d requests measured, %d not as expected", succeeded.Load(), requests, others.Load())
	if others.Load() > int64(requests)/100 { // a loaded host may lose a packet
		t.Errorf("%d of %d requests ended otherwise than expected", others.Load(), requests)
	}
	server.Client().CloseIdleConnections()
	more := ""
	if !await.Within(await.Timeout, func() bool { return runtime.NumGoroutine() <= goroutines && descriptors(t) <= files }) {
		stacks := make([]byte, 1<<20)
		more = string(stacks[:runtime.Stack(stacks, true)])
		t.Errorf("%d goroutines, %d before; %d files, %d before\n%s", runtime.NumGoroutine(), goroutines, descriptors(t), files, more)
	}
	resp, err := server.Client().Get(server.URL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || strings.Contains(string(body), reflector) || !strings.Contains(string(body), "oneway_on_demand_probes_running 0\n") {
		t.Errorf("%v; /metrics has series of a request, or one is running:\n%s", err, body)
	}
}

// descriptors is the number of open files of this process.
func descriptors(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}
