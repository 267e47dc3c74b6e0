package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oneway.example/tests/lab"
	"oneway.example/tests/program"
	"oneway.example/tests/promserver"
)

// serverVariable is the environment variable that has BenchmarkServer run. Its value is how long each server scrapes, such as 7m: the
// slowest group of rules is evaluated each 5 minutes. The last quarter is measured.
const serverVariable = "ONEWAY_BENCH_SERVER"

// BenchmarkServer runs a Prometheus with the configuration and all rules of deploy/prometheus, which scrapes one agent with many
// paths: its memory, CPU, series, and how long the slowest group of rules takes of its interval.
func BenchmarkServer(b *testing.B) {
	whole, err := time.ParseDuration(os.Getenv(serverVariable))
	if err != nil {
		b.Skipf("NOT MEASURED: %s is no duration; make bench-server sets it", serverVariable)
	}
	prometheus := promserver.Debian(b)
	network := newLab(b)
	for _, c := range []struct {
		paths   int
		profile string
		native  bool
	}{{1000, "slim", true}, {5000, "slim", true}, {1000, "full", false}, {1000, "full", true}} {
		histograms := "classic"
		if c.native {
			histograms = "native"
		}
		b.Run(fmt.Sprintf("%d/%s/%s", c.paths, c.profile, histograms), func(b *testing.B) {
			for b.Loop() {
				serverFootprint(b, network.Client, prometheus, c.paths, c.profile, histograms, whole)
			}
		})
	}
}

func serverFootprint(b *testing.B, host *lab.Host, prometheus string, count int, profile, histograms string, whole time.Duration) {
	b.Helper()
	const at, server = "127.0.0.1:9862", "127.0.0.1:9090"
	remote, agent := startAgent(b, host, count, profile, at)
	c := program.Client(b, host)
	agent.Serves(b, c, at)
	dir := b.TempDir()
	args := []string{"--config.file=" + serverConfig(b, dir, at), "--storage.tsdb.path=" + filepath.Join(dir, "data"), "--web.listen-address=" + server}
	if histograms == "native" {
		args = append(args, "--enable-feature=native-histograms")
	}
	p := program.Start(b, host, prometheus, args...)
	p.Serves(b, c, server)
	time.Sleep(whole * 3 / 4) // the server works meanwhile
	proc := fmt.Sprintf("/proc/%d/", p.Cmd.Process.Pid)
	start, before := time.Now(), cpuOf(b, proc)
	time.Sleep(whole / 4) // the measured part
	core := (cpuOf(b, proc) - before).Seconds() / time.Since(start).Seconds()
	resident := 1024 * numberAfter(b, read(b, proc+"status"), "VmRSS:")
	own := string(scrape(b, c, "http://"+server+"/metrics", acceptText).text)
	group, took, interval := slowestGroup(b, scrape(b, c, "http://"+server+"/api/v1/rules", "application/json").text)
	p.Kill(b)
	agent.Kill(b)
	remote.finish(b, nil)

	what := fmt.Sprintf("server of %d %s paths, %s histograms: ", count, profile, histograms)
	comparison.add(b, row{what: what + "share of a core", unit: "%core", ours: 100 * core, lower: true})
	comparison.add(b, row{what: what + "resident memory", unit: "MB-resident", ours: resident / 1e6, lower: true})
	comparison.add(b, row{what: what + "series", unit: "series", ours: numberAfter(b, own, "\nprometheus_tsdb_head_series"), lower: true})
	comparison.add(b, row{what: what + fmt.Sprintf("evaluation of %s, of its %v", group, interval), unit: "s", ours: took.Seconds(), lower: true})
}

// serverConfig is the delivered configuration with the agent as the only target.
func serverConfig(b *testing.B, dir, target string) string {
	b.Helper()
	const deploy = "../../deploy/prometheus"
	if err := os.CopyFS(filepath.Join(dir, "rules"), os.DirFS(deploy+"/rules")); err != nil {
		b.Fatal(err)
	}
	text := read(b, deploy+"/prometheus-2.42.yml")
	const delivered = `["a.example:9862", "b.example:9862"]`
	if !strings.Contains(text, delivered) {
		b.Fatalf("the configuration has no targets %s", delivered)
	}
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, delivered, `["`+target+`"]`)), 0o600); err != nil {
		b.Fatal(err)
	}
	return file
}

// slowestGroup is the group of rules whose last evaluation took the largest part of its interval.
func slowestGroup(b *testing.B, reply []byte) (name string, took, interval time.Duration) {
	b.Helper()
	var rules struct {
		Data struct {
			Groups []struct {
				Name     string  `json:"name"`
				Interval float64 `json:"interval"`
				Took     float64 `json:"evaluationTime"`
			} `json:"groups"`
		} `json:"data"`
	}
	if err := json.Unmarshal(reply, &rules); err != nil || len(rules.Data.Groups) == 0 {
		b.Fatalf("rules: %v, %d groups", err, len(rules.Data.Groups))
	}
	most := -1.0
	for _, g := range rules.Data.Groups {
		if g.Took/g.Interval > most {
			most, name = g.Took/g.Interval, g.Name
			took, interval = time.Duration(g.Took*1e9), time.Duration(g.Interval*1e9)
		}
	}
	return name, took, interval
}
