package loadtest

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"oneway.example/exporter/sample"
	"oneway.example/tests/lab"
	"oneway.example/tests/program"
)

// agent is an agent on a host of the site.
type agent struct {
	*process
	config string
	state  string
	http   *http.Client
}

const agentAddress = "127.0.0.1:9862"

// agent starts an agent on the client with a configuration, and waits until it serves.
func (s *site) agent(t *testing.T, config string) *agent {
	t.Helper()
	return s.agentOn(t, s.network.Client, config)
}

func (s *site) agentOn(t *testing.T, host *lab.Host, config string, more ...string) *agent {
	t.Helper()
	args := []string{"--web.listen-address=" + agentAddress}
	if len(more) == 0 {
		args = append(args, "--test.socket=") // tests here do not use the agent's leases
	}
	a := &agent{config: filepath.Join(s.dir, host.Name+".yml"), state: "state-" + host.Name}
	a.http = program.Client(t, host)
	a.configure(t, config)
	args = append([]string{binary, "agent", "--config.file=" + a.config}, append(args, more...)...)
	if s.disk != nil {
		args = append([]string{"nsenter", "--mount=" + s.disk.mounts()}, args...)
	}
	a.process = &process{program.Start(t, host, args[0], args[1:]...)}
	a.Serves(t, a.http, agentAddress)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the agent: %s", &a.Stderr)
		}
	})
	return a
}

func (a *agent) configure(t *testing.T, sections string) {
	t.Helper()
	head := "clock: {source: static, bound: 1ms}\nstate_dir: " + a.state + "\n"
	if err := os.WriteFile(a.config, []byte(head+sections), 0o600); err != nil {
		t.Fatal(err)
	}
}

// path returns the configuration of a path with a load test of the site's load server every ten seconds.
func (s *site) path(name string, options ...string) string {
	return path(name, s.at, s.pin, options...)
}

func path(name string, to netip.AddrPort, pin string, options ...string) string {
	options = append([]string{
		"type: saturation", "every: 10s", "link: uplink", "load_server: " + strconv.Quote(to.String()), "token_file: token", "pin: " + pin,
		"idle: {duration: 200ms, interval: 20ms}", "skip: 200ms",
	}, options...)
	if !slices.ContainsFunc(options, func(o string) bool { return strings.HasPrefix(o, "drain_timeout:") }) {
		options = append(options, "drain_timeout: 1s")
	}
	return fmt.Sprintf("  - {name: %s, peer: %q, probes: [{%s}]}\n", name, to.Addr(), strings.Join(options, ", "))
}

// reload makes the agent reload its configuration, and returns the time after it.
func (a *agent) reload(t *testing.T) time.Time {
	t.Helper()
	r, err := a.http.Post("http://"+agentAddress+"/-/reload", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if text, err := io.ReadAll(r.Body); err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("reload: %s: %s, %v", r.Status, text, err)
	}
	return time.Now()
}

func (a *agent) get(t *testing.T, what string) []byte {
	t.Helper()
	r, err := a.http.Get("http://" + agentAddress + what)
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

// metrics returns those of a name, by their labels as in the scrape.
func (a *agent) metrics(t *testing.T, name string) map[string]float64 {
	t.Helper()
	all := map[string]float64{}
	for line := range strings.Lines(string(a.get(t, "/metrics"))) {
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

func sum(all map[string]float64, labels ...string) (n float64) {
	for key, v := range all {
		if !slices.ContainsFunc(labels, func(l string) bool { return !strings.Contains(key, l) }) {
			n += v
		}
	}
	return n
}

// reported is a run in the agent's list.
type reported struct {
	ID     string `json:"id"`
	Path   string `json:"path"`
	Result string `json:"result"`
	Reason string `json:"reason"`
}

// runs returns all runs with reports, the newest first.
func (a *agent) runs(t *testing.T) (all []reported) {
	t.Helper()
	text := a.get(t, "/runs")
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return all
}

// Two paths share a link. Their runs, each due every ten seconds, take turns; each is counted once, has
// one report and is once on the link.
func TestRunsOfTwoPathsOnOneLinkNeverOverlapAndEachIsCountedOnce(t *testing.T) {
	link := slow()
	link.Forward.Queue, link.Reverse.Queue = 1_000_000, 2_000_000 // all that a run sends
	s := newSite(t, lab.Options{Profile: link})
	// A run takes about four seconds, so that runs mostly wait for each other. No queue overflows, even if a
	// stalled host sends all at once, and a pause of a second is within the drain timeout.
	load := []string{"duration: 1500ms", "drain_timeout: 10s", "rate: {forward: 5Mbit, reverse: 10Mbit}"}
	a := s.agent(t, "paths:\n"+s.path("a", load...)+s.path("b", load...))
	const wanted = 2 // runs of each path
	var runs map[string]float64
	program.Eventually(t, fmt.Sprintf("%d runs of both paths", wanted), func() bool {
		if n := sum(a.metrics(t, "oneway_test_running")); n > 1 {
			t.Errorf("%v tests run concurrently", n)
		}
		runs = a.metrics(t, "oneway_probe_runs_total")
		return sum(runs, `path="a"`, `"completed"`) >= wanted && sum(runs, `path="b"`, `"completed"`) >= wanted
	})
	a.Signal(t, syscall.SIGTERM) // and possibly ends a run
	a.Wait(t)
	all := spans(s.drained(t))
	disjoint(t, all)
	s.loadServer.Signal(t, syscall.SIGTERM)
	s.loadServer.Wait(t)
	// A run that ended before its first packet is also a session of the load server.
	said, unsent := s.loadServer.Stdout.String(), strings.Count(a.Stderr.String(), "result=skipped reason=stopped")
	if !strings.Contains(said, fmt.Sprintf("\n%d sessions, ", len(all))) && !strings.Contains(said, fmt.Sprintf("\n%d sessions, ", len(all)+unsent)) {
		t.Errorf("%d sessions were on the link, %d ended before; the load server: %s", len(all), unsent, said)
	}
	t.Logf("counted: %v", runs)
	// One more run may have begun since the scrape and then ended early.
	if n := len(all) - int(sum(runs, `"completed"`)); n != strings.Count(a.Stderr.String(), "result=incomplete reason=stopped") {
		t.Errorf("%d sessions were on the link, counted are %v", len(all), runs)
	}
	for _, p := range []string{"a", "b"} {
		logged := strings.Count(a.Stderr.String(), `msg="Run completed" path=`+p+" ")
		if counted := sum(runs, `path="`+p+`"`, `"completed"`); int(counted) != logged {
			t.Errorf("path %s: %v runs are counted, %d were logged", p, counted, logged)
		}
	}
	// On a busy machine runs that take longer than ten seconds overrun the next.
	if n := sum(runs) - sum(runs, `"completed"`) - sum(runs, `"overrun"`); n != 0 {
		t.Errorf("%v runs did not complete, want 0", n)
	}
}

// Two agents test each other over one link, each with its own load server. The second is refused as
// busy, and there is no deadlock.
func TestAgentsThatTestEachOtherTakeTurns(t *testing.T) {
	s := newSite(t, overSlow())
	const port = 8621
	hosts := []*lab.Host{s.network.Client, s.network.Server}
	var agents [2]*agent
	var pins, loadServers [2]string
	for i, h := range hosts {
		loadServers[i] = fmt.Sprintf("load_server: {listen: [%q], tokens_file: tokens, link: uplink}\n", netip.AddrPortFrom(h.Addr4, port))
		agents[i] = s.agentOn(t, h, loadServers[i])
		program.Eventually(t, "the load server's pin", func() bool {
			_, rest, ok := strings.Cut(agents[i].Stderr.String(), "pin=")
			pins[i], _, _ = strings.Cut(rest, "\n")
			pins[i], _, _ = strings.Cut(pins[i], " ")
			return ok
		})
	}
	for i, a := range agents {
		load := []string{"duration: 1500ms", "drain_timeout: 10s", "rate: {forward: 5Mbit, reverse: 5Mbit}"}
		a.configure(t, loadServers[i]+"paths:\n"+path("p", netip.AddrPortFrom(hosts[1-i].Addr4, port), pins[1-i], load...))
		a.reload(t)
	}
	for _, a := range agents {
		program.Eventually(t, "two runs of each agent", func() bool {
			return sum(a.metrics(t, "oneway_probe_runs_total"), `"completed"`) >= 2
		})
	}
	for _, a := range agents {
		runs := a.metrics(t, "oneway_probe_runs_total")
		t.Logf("counted: %v", runs)
		// A run may be due while the previous one waits.
		if sum(runs) != sum(runs, `"completed"`)+sum(runs, `"overrun"`) {
			t.Error("runs that began did not complete")
		}
	}
	for _, a := range agents { // only now: the other agent may still start a run
		a.Signal(t, syscall.SIGTERM)
		a.Wait(t)
	}
	disjoint(t, spans(s.drained(t)))
}

// A reload that does not change a probe does not end its run; one that changes it ends the run at both
// ends, and the next run has the new configuration.
func TestReloadEndsOnlyTheRunsOfProbesThatItChanges(t *testing.T) {
	s := newSite(t, overSlow())
	load := []string{"directions: [reverse]", "duration: 4s"}
	before := "paths:\n" + s.path("p", append(load, "rate: {reverse: 24Mbit}")...)
	a := s.agent(t, before)

	s.underLoad(t, a.process, sample.Reverse)
	a.configure(t, before+`  - {name: other, peer: "127.0.0.1:862", probes: [{type: stamp}]}`+"\n")
	a.reload(t)
	program.Eventually(t, "the run completes", func() bool { return sum(a.metrics(t, "oneway_probe_runs_total"), `"completed"`) == 1 })
	// On a busy machine the next run may have begun; none must have ended early.
	if runs := a.metrics(t, "oneway_probe_runs_total"); sum(runs) != sum(runs, `"completed"`)+sum(runs, `"overrun"`) {
		t.Errorf("%v runs are counted, want completed ones only", runs)
	}

	c, _ := s.network.Counts(sample.Reverse)
	program.Eventually(t, "the next run", func() bool {
		now, _ := s.network.Counts(sample.Reverse)
		return now.Entered > c.Entered+1000
	})
	a.configure(t, "paths:\n"+s.path("p", append(load, "rate: {reverse: 12Mbit}")...))
	changed := a.reload(t)
	program.Eventually(t, "the first run of the new configuration", func() bool {
		return sum(a.metrics(t, "oneway_probe_runs_total"), `"completed"`) == 1 && len(a.runs(t)) == 3
	})
	all := spans(s.drained(t))
	disjoint(t, all)
	if len(all) != 3 {
		t.Fatalf("%d sessions were on the link, want 3", len(all))
	}
	if all[1].packets >= all[0].packets {
		t.Errorf("%d packets of the run that ended early, %d of a complete one", all[1].packets, all[0].packets)
	}
	punctual(t, "the load server's last packet", all[1].sent.Time().Sub(changed), time.Second)
	// The newest is first; runs that began in the same second are in no order.
	got := a.runs(t)
	stopped := slices.IndexFunc(got, func(r reported) bool { return r.Result == "incomplete" && r.Reason == "stopped" })
	if stopped != 0 && stopped != 1 || got[1-stopped].Result != "completed" || got[2].Result != "completed" {
		t.Errorf("the reports: %+v", got)
	}
}

// Without a checksum, packets that the link corrupts arrive. They are in the metrics by kind, and with
// samples in the run's report.
func TestCorruptedPacketsAreCountedByKindAndSampled(t *testing.T) {
	link := lab.Link{Rate: 20e6, Delay: 5 * time.Millisecond, Corrupt: 0.05}
	s := newSite(t, lab.Options{Profile: lab.Profile{Name: "corrupting", Forward: link, Reverse: link}, SpareOthers: true})
	// Small packets, so that some have a corrupted header.
	a := s.agent(t, "paths:\n"+s.path("p", "checksum: false", "duration: 2s", "packet_bytes: 200", "rate: {forward: 1Mbit, reverse: 1Mbit}"))
	program.Eventually(t, "a run", func() bool { return sum(a.metrics(t, "oneway_probe_runs_total")) > 0 })
	s.drained(t)
	corrupted := a.metrics(t, "oneway_run_packets_corrupted_total")
	t.Logf("corrupted: %v", corrupted)
	list := a.runs(t)
	if len(list) != 1 || list[0].Result != "completed" {
		t.Fatalf("the reports: %+v", list)
	}
	var report struct{ Body result }
	if err := json.Unmarshal(a.get(t, "/runs/"+list[0].ID), &report); err != nil {
		t.Fatal(err)
	}
	if page := string(a.get(t, "/runs/"+list[0].ID+"/view")); strings.Count(page, "<figure>") != 8 || !strings.Contains(page, "forward: throughput by second") {
		t.Errorf("the page of the run has not the eight drawings of a load in both directions:\n%.500s", page)
	}
	r := report.Body
	if len(r.Transfers) != 2 {
		t.Fatalf("the report has %d transfers, want one in each direction", len(r.Transfers))
	}
	for i, d := range sample.Directions() {
		truth := 0
		for _, p := range s.network.Log(d) {
			if p.Corrupted {
				truth++
			}
		}
		way := `direction="` + d.String() + `"`
		if n := sum(corrupted, way); int(n) != truth || truth == 0 {
			t.Errorf("%s: %v corrupted packets are counted; the link corrupted %d", d, n, truth)
		}
		for _, kind := range []string{"bit_errors", "bad_header"} {
			if sum(corrupted, way, `kind="`+kind+`"`) == 0 {
				t.Errorf("%s: no %s", d, kind)
			}
		}
		told := r.Transfers[i]
		inReport := 0
		for n := range maps.Values(told.Counts.Damaged) {
			inReport += n
		}
		if told.Direction != d.String() || inReport != truth || len(told.Received.Corrupt) == 0 || told.Received.ChecksumErrors != 0 {
			t.Errorf("%s: the report has %d corrupted packets of %d, %d samples, and %d checksum errors of the kernel",
				told.Direction, inReport, truth, len(told.Received.Corrupt), told.Received.ChecksumErrors)
		}
		for _, c := range told.Received.Corrupt {
			if c.Damage == "bit_errors" && (c.Differing != 1 || len(c.Got) == 0 || len(c.Want) != len(c.Got) || c.Got[0] == c.Want[0]) {
				t.Errorf("%s: want a packet with one different byte: %+v", d, c)
			}
		}
	}
}
