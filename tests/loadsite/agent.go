package loadsite

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/document"
	"oneway.example/exporter/core/hostport"
	"oneway.example/tests/documents"

	"oneway.example/tests/lab"
	"oneway.example/tests/program"
)

// Agent is an agent on a host of the site.
type Agent struct {
	*Process
	// HTTP is a client on its host.
	HTTP   *http.Client
	config string
	state  string
}

// AgentAddress is where it serves HTTP.
const AgentAddress = "127.0.0.1:" + hostport.Agent

// Agent starts an agent on the client with a configuration, and waits until it serves.
func (s *Site) Agent(t *testing.T, config string) *Agent {
	t.Helper()
	return s.AgentOn(t, s.Client, config)
}

// AgentOn is Agent on any host, with more flags.
func (s *Site) AgentOn(t *testing.T, host *lab.Host, config string, more ...string) *Agent {
	t.Helper()
	args := []string{"--web.listen-address=" + AgentAddress}
	if len(more) == 0 {
		args = append(args, "--test.socket=") // tests here do not use the agent's leases
	}
	a := &Agent{config: filepath.Join(s.Dir, host.Name+".yml"), state: "state-" + host.Name}
	a.HTTP = program.Client(t, host)
	a.Configure(t, config)
	args = append([]string{s.binary, "agent", "--config.file=" + a.config}, append(args, more...)...)
	if s.Mounts != "" {
		args = append([]string{"nsenter", "--mount=" + s.Mounts}, args...)
	}
	a.Process = &Process{Program: program.Start(t, host, args[0], args[1:]...)}
	a.Serves(t, a.HTTP, AgentAddress)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the agent: %s", &a.Stderr)
		}
	})
	return a
}

// Configure writes its configuration, from these sections.
func (a *Agent) Configure(t *testing.T, sections string) {
	t.Helper()
	head := "clock: {source: static, bound: 1ms}\nstate_dir: " + a.state + "\n"
	if err := os.WriteFile(a.config, []byte(head+sections), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Path returns the configuration of a path with a load test of the site's load server every ten seconds.
func (s *Site) Path(name string, options ...string) string {
	return Path(name, s.At, s.Pin, options...)
}

// Path is Site.Path of any load server.
func Path(name string, to netip.AddrPort, pin string, options ...string) string {
	options = append([]string{
		"type: saturation", "every: 10s", "link: uplink", "load_server: " + strconv.Quote(to.String()), "token_file: token", "pin: " + pin,
		"idle: {duration: 200ms, interval: 20ms}", "skip: 200ms",
	}, options...)
	if !slices.ContainsFunc(options, func(o string) bool { return strings.HasPrefix(o, "drain_timeout:") }) {
		options = append(options, "drain_timeout: 1s")
	}
	return fmt.Sprintf("  - {name: %s, peer: %q, probes: [{%s}]}\n", name, to.Addr(), strings.Join(options, ", "))
}

// Reload makes the agent reload its configuration, and returns the time after it.
func (a *Agent) Reload(t *testing.T) time.Time {
	t.Helper()
	r, err := a.HTTP.Post("http://"+AgentAddress+"/-/reload", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if text, err := io.ReadAll(r.Body); err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("reload: %s: %s, %v", r.Status, text, err)
	}
	return time.Now()
}

// Get returns the response to a request.
func (a *Agent) Get(t *testing.T, what string) []byte {
	t.Helper()
	r, err := a.HTTP.Get("http://" + AgentAddress + what)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s: %s, %v", what, r.Status, text, err)
	}
	return text
}

// Metrics returns those of a name, by their labels as in the scrape.
func (a *Agent) Metrics(t *testing.T, name string) map[string]float64 {
	t.Helper()
	all := map[string]float64{}
	for line := range strings.Lines(string(a.Get(t, "/metrics"))) {
		labels, ok := strings.CutPrefix(line, name+"{")
		if !ok {
			continue
		}
		labels, text, _ := strings.Cut(labels, "} ")
		v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		all[labels] = v
	}
	return all
}

// Sum is that of the metrics with all of these labels.
func Sum(all map[string]float64, labels ...string) (n float64) {
	for key, v := range all {
		if !slices.ContainsFunc(labels, func(l string) bool { return !strings.Contains(key, l) }) {
			n += v
		}
	}
	return n
}

// Reported is a run in the agent's list.
type Reported struct {
	ID     string `json:"id"`
	Path   string `json:"path"`
	Result string `json:"result"`
	Reason string `json:"reason"`
	Error  string `json:"error"`
}

// Runs returns all runs with reports, the newest first.
func (a *Agent) Runs(t *testing.T) []Reported {
	t.Helper()
	text := a.Get(t, "/runs")
	documents.Valid(t, document.Runs, text)
	var list struct {
		Runs []Reported `json:"runs"`
	}
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return list.Runs
}
