package bench

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"oneway.example/tests/lab"
	"oneway.example/tests/program"
)

// Accept headers of Prometheus: with native histograms, and without.
const (
	acceptProtobuf = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.6," +
		"application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
	acceptText = "text/plain;version=0.0.4;q=0.5,*/*;q=0.2"
)

// A program has settled when windows of 20 packets have ended; then it is measured for scrapes times scrapeEvery.
const (
	windowTime  = 21 * time.Second
	scrapes     = 3
	scrapeEvery = 5 * time.Second
)

// scraped is one scrape: its duration, its bytes on the wire, and its content.
type scraped struct {
	took time.Duration
	wire int
	text []byte
}

func scrape(b *testing.B, c *http.Client, url, accept string) (s scraped) {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, url, nil)
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("Accept", accept)
	r.Header.Set("Accept-Encoding", "gzip")
	start := time.Now()
	response, err := c.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	s.took, s.wire, s.text = time.Since(start), len(body), body
	response.Body.Close()
	if err != nil || response.StatusCode != http.StatusOK {
		b.Fatalf("GET %s: %s, %v", url, response.Status, err)
	}
	if response.Header.Get("Content-Encoding") == "gzip" {
		zip, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		if s.text, err = io.ReadAll(zip); err != nil {
			b.Fatal(err)
		}
	}
	return s
}

// footprint is what a running program takes.
type footprint struct {
	core     float64 // share of one core, scrapes included
	resident float64 // bytes, after the scrapes
	scrape   scraped // the last one
	median   time.Duration
}

// measureFootprint scrapes a program as Prometheus does, and reads what the kernel counts of it.
func measureFootprint(b *testing.B, p *program.Program, c *http.Client, url string) (f footprint) {
	b.Helper()
	proc := fmt.Sprintf("/proc/%d/", p.Cmd.Process.Pid)
	start, before := time.Now(), cpuOf(b, proc)
	var took [scrapes]time.Duration
	for i := range scrapes {
		time.Sleep(time.Until(start.Add(time.Duration(i+1) * scrapeEvery))) // the interval of the scrapes
		f.scrape = scrape(b, c, url, acceptProtobuf)
		took[i] = f.scrape.took
	}
	f.core = (cpuOf(b, proc) - before).Seconds() / time.Since(start).Seconds()
	slices.Sort(took[:])
	f.median = took[scrapes/2]
	f.resident = 1024 * numberAfter(b, read(b, proc+"status"), "VmRSS:")
	return f
}

// cpuOf is what a process has used so far: utime and stime of proc_pid_stat(5), in ticks of 10 ms.
func cpuOf(b *testing.B, proc string) time.Duration {
	b.Helper()
	text := read(b, proc+"stat")
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	sum := 0
	for _, field := range fields[11:13] {
		n, err := strconv.Atoi(field)
		if err != nil {
			b.Fatal(err)
		}
		sum += n
	}
	return time.Duration(sum) * 10 * time.Millisecond
}

func read(b *testing.B, name string) string {
	b.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		b.Fatal(err)
	}
	return string(text)
}

// numberAfter is the number that follows a word.
func numberAfter(b *testing.B, text, word string) float64 {
	b.Helper()
	_, rest, _ := strings.Cut(text, word)
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		b.Fatalf("no %q in %.300s", word, text)
	}
	n, err := strconv.ParseFloat(fields[0], 64)
	if err != nil {
		b.Fatal(err)
	}
	return n
}

// BenchmarkFootprint runs `oneway agent` with many paths to one reflector on loopback, a packet a second each: memory,
// CPU and scrapes. Beside it, at the same rate: smokeping_prober, and blackbox_exporter, of which every
// target is asked for once a second.
func BenchmarkFootprint(b *testing.B) {
	network := newLab(b)
	for _, count := range []int{100, 1000, 10_000} {
		for _, profile := range []string{"full", "slim"} {
			b.Run(fmt.Sprintf("%d/%s", count, profile), func(b *testing.B) {
				for b.Loop() {
					agentFootprint(b, network.Client, count, profile)
				}
			})
		}
	}
	b.Run("peers", func(b *testing.B) {
		for b.Loop() {
			const count = 1000
			if oursAs(count, "share of a core") == nil {
				agentFootprint(b, network.Client, count, "slim")
			}
			smokepingFootprint(b, network.Client, count)
			blackboxFootprint(b, network.Client, count)
		}
	})
}

// startAgent starts an agent with many paths to a reflector on the same host, which it starts too. The agent serves at an address.
func startAgent(b *testing.B, host *lab.Host, count int, profile, at string, more ...string) (remote *process, agent *program.Program) {
	b.Helper()
	const reflectorAt = "127.0.0.1:862"
	remote = ours(b, host, "reflect", reflectorAt)
	remote.ready(b)
	var config strings.Builder
	fmt.Fprintf(&config, "version: 1\nclock: {source: static, bound: 1ms}\nprofile: %s\npaths:\n", profile)
	for i := range count {
		fmt.Fprintf(&config, "  - {name: path-%d, peer: \"%s\", probes: [{type: stamp, interval: 1s}]}\n", i, reflectorAt)
	}
	file := filepath.Join(b.TempDir(), "oneway.yml")
	if err := os.WriteFile(file, []byte(config.String()), 0o600); err != nil {
		b.Fatal(err)
	}
	args := []string{"agent", "--config.file=" + file, "--web.listen-address=" + at, "--test.socket="}
	return remote, program.Start(b, host, binary, append(args, more...)...)
}

func agentFootprint(b *testing.B, host *lab.Host, count int, profile string) {
	b.Helper()
	const at = "127.0.0.1:9862"
	profiles := os.Getenv(profilesVariable)
	var more []string
	if profiles != "" {
		more = append(more, "--web.enable-pprof") // its tables are part of what is measured then
	}
	remote, p := startAgent(b, host, count, profile, at, more...)
	c := program.Client(b, host)
	p.Serves(b, c, at)
	time.Sleep(windowTime + time.Duration(count)*startGap) // all of its sessions have ended a window
	f := measureFootprint(b, p, c, "http://"+at+"/metrics")
	text := scrape(b, c, "http://"+at+"/metrics", acceptText)
	if profiles != "" {
		keep(b, c, at, filepath.Join(profiles, fmt.Sprintf("%s-%d.heap", profile, count)))
	}
	p.Kill(b)
	remote.finish(b, nil)

	stored := 0
	for line := range strings.Lines(string(text.text)) {
		if strings.Contains(line, `path="path-1"`) {
			stored++
		}
	}
	if up := strings.Count(string(text.text), "oneway_probe_up{"); up != count {
		b.Fatalf("%d paths are up or down, want %d", up, count)
	}
	what := fmt.Sprintf("%d %s paths at 1/s: ", count, profile)
	comparison.add(b, row{what: what + "share of a core", unit: "%core", ours: 100 * f.core, lower: true})
	comparison.add(b, row{what: what + "resident memory after scrapes", unit: "MB-resident", ours: f.resident / 1e6, lower: true})
	comparison.add(b, row{what: what + "live heap", unit: "MB-live", ours: numberAfter(b, string(text.text), "\ngo_gc_heap_live_bytes") / 1e6, lower: true})
	comparison.add(b, row{what: what + "series of a path in text", unit: "series/path", ours: float64(stored), lower: true})
	scrapeRows(b, what+"scrape by protocol buffers", "proto", f.scrape, f.median)
	scrapeRows(b, what+"scrape by text", "text", text, text.took)
}

func scrapeRows(b *testing.B, what, unit string, s scraped, took time.Duration) {
	b.Helper()
	comparison.add(b, row{what: what, unit: "MB-" + unit, ours: float64(len(s.text)) / 1e6, lower: true})
	comparison.add(b, row{what: what + ", gzip", unit: "MB-" + unit + "-gzip", ours: float64(s.wire) / 1e6, lower: true})
	comparison.add(b, row{what: what + ", time", unit: "ms-" + unit, ours: float64(took.Microseconds()) / 1e3, lower: true})
}

// profilesVariable is the environment variable that names a directory for heap profiles of the agents.
const profilesVariable = "ONEWAY_BENCH_PROFILES"

// keep writes the heap profile of an agent.
func keep(b *testing.B, c *http.Client, at, file string) {
	b.Helper()
	heap := scrape(b, c, "http://"+at+"/debug/pprof/heap?gc=1", acceptText)
	if err := os.WriteFile(file, heap.text, 0o600); err != nil {
		b.Fatal(err)
	}
}

// loopback is an address of its own for each number, which receives pings on loopback.
func loopback(i int) string { return fmt.Sprintf("127.1.%d.%d", i/200, 1+i%200) }

// oursAs is the row of so many slim paths; nil: they were not measured.
func oursAs(count int, what string) *row {
	i := slices.IndexFunc(comparison.all, func(r row) bool { return r.what == fmt.Sprintf("%d slim paths at 1/s: %s", count, what) })
	if i < 0 {
		return nil
	}
	return &comparison.all[i]
}

func peerRows(b *testing.B, name string, count int, f footprint) {
	b.Helper()
	for _, one := range []row{
		{what: "share of a core", unit: "%core", ours: 100 * f.core},
		{what: "resident memory after scrapes", unit: "MB-resident", ours: f.resident / 1e6},
	} {
		comparison.add(b, row{
			what: fmt.Sprintf("%d targets at 1/s (slim): %s", count, one.what), unit: one.unit, ours: oursAs(count, one.what).ours,
			peers: []peer{{name, one.ours}}, lower: true,
		})
	}
}

func smokepingFootprint(b *testing.B, host *lab.Host, count int) {
	b.Helper()
	path, ok := have(b, "prometheus-smokeping-prober")
	if !ok {
		return
	}
	const at = "127.0.0.1:9374"
	file := filepath.Join(b.TempDir(), "smokeping.yml")
	if err := os.WriteFile(file, []byte("targets: []\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	// Raw sockets, one for each target, would each be given the replies to all.
	if out, err := host.Command("sh", "-c", "echo 0 2147483647 >/proc/sys/net/ipv4/ping_group_range").CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	args := []string{"--no-privileged", "--config.file=" + file, "--web.listen-address=" + at, "--ping.interval=1s"}
	for i := range count {
		args = append(args, loopback(i))
	}
	p := program.Start(b, host, path, args...)
	c := program.Client(b, host)
	p.Serves(b, c, at)
	time.Sleep(windowTime) // it pings all of them, as our own did before it was measured
	f := measureFootprint(b, p, c, "http://"+at+"/metrics")
	text := string(scrape(b, c, "http://"+at+"/metrics", acceptText).text)
	p.Kill(b)
	if got := strings.Count(text, "smokeping_response_duration_seconds_count{"); got < count {
		b.Fatalf("smokeping_prober has %d targets, want %d: %s", got, count, &p.Stderr)
	}
	peerRows(b, "smokeping_prober", count, f)
}

func blackboxFootprint(b *testing.B, host *lab.Host, count int) {
	b.Helper()
	path, ok := have(b, "prometheus-blackbox-exporter")
	if !ok {
		return
	}
	const at = "127.0.0.1:9115"
	file := filepath.Join(b.TempDir(), "blackbox.yml")
	if err := os.WriteFile(file, []byte("modules: {icmp: {prober: icmp, timeout: 1s}}\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	p := program.Start(b, host, path, "--config.file="+file, "--web.listen-address="+at)
	c := program.Client(b, host)
	p.Serves(b, c, at)
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	var asking sync.WaitGroup
	var mu sync.Mutex
	succeeded, asked := 0, 0
	begin := time.Now()
	for i := range count {
		asking.Go(func() {
			for due := begin.Add(time.Duration(i) * time.Second / time.Duration(count)); ; due = due.Add(time.Second) {
				select {
				case <-ctx.Done():
					return
				case <-time.After(time.Until(due)):
				}
				up := probed(ctx, c, "http://"+at+"/probe?module=icmp&target="+loopback(i))
				mu.Lock()
				asked++
				if up {
					succeeded++
				}
				mu.Unlock()
			}
		})
	}
	time.Sleep(scrapeEvery) // its connections and buffers are those of the load
	f := measureFootprint(b, p, c, "http://"+at+"/metrics")
	rate := time.Since(begin).Seconds() * float64(count)
	cancel()
	asking.Wait()
	p.Kill(b)
	if float64(succeeded) < 0.9*rate {
		b.Logf("NOT COMPARED with blackbox_exporter: %d of %d probes succeeded, %.0f were due", succeeded, asked, rate)
		return
	}
	peerRows(b, "blackbox_exporter", count, f)
}

// probed tells whether a probe that blackbox_exporter is asked for succeeds.
func probed(ctx context.Context, c *http.Client, url string) bool {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	response, err := c.Do(r)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return err == nil && bytes.Contains(text, []byte("\nprobe_success 1"))
}
