package rules

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"oneway.example/exporter/core/metric"
	"oneway.example/tests/await"
	"oneway.example/tests/expr"
	"oneway.example/tests/freeport"
	"oneway.example/tests/oneway"
	"oneway.example/tests/promserver"
)

// Each server that we ship a scrape file for ingests a real agent's histograms in its own way. Whatever
// a rule or a panel reads of them, it must find there.

// store is a server and what it keeps of histograms.
type store struct {
	program, config string
	flags           []string
	native          bool
}

// built finds the program of Prometheus 3 that tests/rules/prometheus3.sh built, such as promtool of "3.7.*".
func built(t *testing.T, program, version string) string {
	t.Helper()
	found, err := filepath.Glob(root + "/build/prometheus-" + version + "/" + program)
	if err != nil || len(found) == 0 {
		t.Skipf("NOT TESTED: no %s %s in build: tests/rules/prometheus3.sh builds it from its Go module", program, version)
	}
	path, err := filepath.Abs(found[len(found)-1])
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// The versions that each scrape file is tested with.
const before38, from38 = "3.7.*", "3.1[0-9].*"

func TestConfigurationOfPrometheus30Loads(t *testing.T) {
	run(t, built(t, "promtool", before38), "check", "config", deploy+"/prometheus-3.0.yml")
}

func TestConfigurationOfPrometheus38Loads(t *testing.T) {
	run(t, built(t, "promtool", from38), "check", "config", deploy+"/prometheus-3.8.yml")
}

func TestHistogramsAreReadInPrometheus242(t *testing.T) {
	prometheus := need(t, "prometheus", "prometheus")
	classic := store{program: prometheus, config: "prometheus-2.42.yml"}
	native := classic
	native.flags, native.native = []string{"--enable-feature=native-histograms"}, true
	agent := startAgent(t)
	t.Run("classic", func(t *testing.T) { classic.holds(t, agent) })
	t.Run("native", func(t *testing.T) { native.holds(t, agent) })
}

func TestHistogramsAreReadInPrometheus30(t *testing.T) {
	store{built(t, "prometheus", before38), "prometheus-3.0.yml", []string{"--enable-feature=native-histograms"}, true}.holds(t, startAgent(t))
}

func TestHistogramsAreReadInPrometheus38(t *testing.T) {
	store{built(t, "prometheus", from38), "prometheus-3.8.yml", nil, true}.holds(t, startAgent(t))
}

// agentConfig is of an agent that measures itself, by a full path and a slim one. Each has a socket of its own: what
// is exported of a socket depends on the profile of the path that opened it.
const agentConfig = `clock: {source: static, bound: 20us}
reflector: {listen: ["%[1]s"]}
paths:
  - name: full
    peer: "%[1]s"
    probes: [{type: stamp, interval: 20ms, window: 1s}]
  - name: slim
    peer: "%[1]s"
    profile: slim
    probes: [{type: stamp, interval: 20ms, window: 1s, local: 127.0.0.2}]
`

// startAgent returns where the agent serves its metrics.
func startAgent(t *testing.T) string {
	t.Helper()
	return startAgentOf(t, fmt.Sprintf(agentConfig, freeport.Address(t)))
}

// startAgentOf is startAgent with a configuration.
func startAgentOf(t *testing.T, configuration string) (metrics string) {
	t.Helper()
	dir := t.TempDir()
	config, metrics := filepath.Join(dir, "agent.yml"), freeport.Address(t)
	binary, err := oneway.Build(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	ipv6 := strings.Replace(metrics, "127.0.0.1", "[::1]", 1) // the agents at the peers of its paths are itself
	start(t, binary, "agent", "--test.socket=", "--config.file="+config, "--web.listen-address="+metrics, "--web.listen-address="+ipv6)
	return metrics
}

// start runs a program until the test ends.
func start(t *testing.T, program string, args ...string) {
	t.Helper()
	var output await.Text
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s: %s", filepath.Base(program), output.String())
		}
	})
}

// holds runs the server on its scrape file, with this agent as its target, and asks it for everything.
func (s store) holds(t *testing.T, agent string) {
	text, err := os.ReadFile(filepath.Join(deploy, s.config))
	if err != nil {
		t.Fatal(err)
	}
	rules, err := filepath.Abs(deploy + "/rules")
	if err != nil {
		t.Fatal(err)
	}
	filled := strings.NewReplacer(`"a.example:9862", "b.example:9862"`, `"`+agent+`"`, "rules/", rules+"/",
		"scrape_interval: 10s", "scrape_interval: 1s").Replace(string(text))
	server := promserver.Start(t, promserver.Options{Program: s.program, Config: filled, Args: s.flags}).URL
	// Two windows of 1 s, and rates of a range need two scrapes.
	await.That(t, "both profiles are scraped", func() bool {
		return len(query(t, server, `count by (path) (count_over_time(oneway_delay_quantile_seconds{quantile_rank="0.5"}[1m]) > 5)`)) == 2
	})
	empty := s.expected(t)
	if !await.Within(await.Timeout, func() bool {
		empty = slices.DeleteFunc(empty, func(e expr.Expr) bool { return len(query(t, server, e.Query)) > 0 })
		return len(empty) == 0
	}) {
		for _, e := range empty {
			t.Errorf("%s: nothing from %s", e.Source, e.Query)
		}
	}
	s.expectNativeHistograms(t, server)
}

// expected are all expressions that read histograms and have a result in a healthy system, by path.
func (s store) expected(t *testing.T) []expr.Expr {
	_, all := load(t)
	families := table()
	var out []expr.Expr
	for _, e := range all {
		reads, slim, nativeOnly := false, true, false
		for _, sel := range expr.Selectors(e.Query) {
			d := families[expr.Family(sel.Name)]
			if d == nil || d.Kind != metric.Histogram {
				slim = slim && d != nil && d.Slim
				continue
			}
			reads, slim, nativeOnly = true, slim && d.Slim, nativeOnly || d.NativeOnly
		}
		if strings.Contains(e.Source, ":native_rate") && !s.native { // which histograms are native, for the rules of both kinds
			continue
		}
		if !reads || e.MayBeEmpty == expr.NoLoadTest || e.MayBeEmpty != "" && (!nativeOnly || !s.native) {
			continue
		}
		out = append(out, e)
		if slim && s.native {
			e.Source, e.Query = e.Source+", slim path", strings.ReplaceAll(e.Query, `path=~".*"`, `path="slim"`)
			out = append(out, e)
		}
	}
	if len(out) < 20 {
		t.Errorf("%d expressions read histograms: fewer than there are", len(out))
	}
	return out
}

// expectNativeHistograms holds the CDF's names and the stand-in of p95 against what the server keeps.
func (s store) expectNativeHistograms(t *testing.T, server string) {
	_, all := load(t)
	for _, e := range all {
		if e.Source != "path.json: Delay CDF A" {
			continue
		}
		for _, name := range query(t, server, `count by (direction) (`+e.Query+`)`) {
			if ofBuckets := strings.HasSuffix(name["direction"], ", classic buckets"); ofBuckets == s.native && name["direction"] != "-1" {
				t.Errorf("the CDF has %v from a server with native histograms: %v", name, s.native)
			}
		}
	}
	p95 := query(t, server, `oneway_delay_quantile_seconds{path="slim",quantile_rank="0.95"}`)
	if (len(p95) == 0) != s.native {
		t.Errorf("the slim path has p95 %v in a server with native histograms: %v", p95, s.native)
	}
}

// query sends the server an instant query over the last minutes, and returns the labels of what it has.
func query(t *testing.T, server, query string) []map[string]string {
	t.Helper()
	client := http.Client{Timeout: time.Minute}
	resp, err := client.PostForm(server+"/api/v1/query", url.Values{"query": {query}})
	if err != nil {
		return nil // it has not begun to listen
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode == http.StatusServiceUnavailable {
		return nil // it is not ready
	}
	var reply struct {
		Data struct {
			Result json.RawMessage `json:"result"`
		} `json:"data"`
	}
	var found []struct {
		Metric map[string]string `json:"metric"`
	}
	if err := json.Unmarshal(body, &reply); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", query, body)
	}
	if err := json.Unmarshal(reply.Data.Result, &found); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	var out []map[string]string
	for _, f := range found {
		// A panel's reason for having nothing is no result.
		if f.Metric["direction"] != "-1" && f.Metric["packet_bytes"] != "-1" {
			out = append(out, f.Metric)
		}
	}
	return out
}
