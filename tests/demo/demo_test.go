package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"oneway.example/exporter/core/instant"
	"oneway.example/tests/lab"
	"oneway.example/tests/oneway"
	"oneway.example/tests/standstill"
)

// odd is a profile that is not built in.
const odd = `name: odd
forward: {rate: 3.3Mbit, delay: 47ms, jitter: 0ms, queue: 77KB, loss: 2%, duplicate: 1%, corrupt: 1%}
reverse: {rate: 700kbit, delay: 23ms, jitter: 4ms, queue: 33KB, loss: 1%, reorder: 2%}
`

func TestDemoTableIsCorrectForAnyProfile(t *testing.T) {
	lab.Require(t)
	if _, err := exec.LookPath("prometheus"); err != nil {
		t.Skip("prometheus is not installed: apt-get install prometheus")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	program, err := oneway.Build(dir)
	if err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", dir, "./tests/demo")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	profile, report := filepath.Join(dir, "odd.yaml"), filepath.Join(dir, "out", "report.json")
	if err := os.WriteFile(profile, []byte(odd), 0o600); err != nil {
		t.Fatal(err)
	}
	demo := exec.CommandContext(t.Context(), filepath.Join(dir, "demo"), "--profile", profile, "--report", report,
		"--oneway", program, "--measure", "45s", "--exit")
	demo.Dir = root
	watch, begin := standstill.Begin(t), instant.Now()
	out, err := demo.CombinedOutput()
	t.Logf("%s", out)
	var exit *exec.ExitError
	if still := watch.FoundFrom(begin); errors.As(err, &exit) && exit.ExitCode() == exitOutside && still.Spans > 0 {
		standstill.CannotTell(t, still, "values are outside of their bounds, and a sender that stands still offers no load")
	}
	// Values missing because of a busy machine are not a fault: the agents report the reason.
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != exitUnreported) {
		t.Fatal(err)
	}
	checkReport(t, report)
}

// checkReport reads the table's JSON.
func checkReport(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var rows []map[string]any
	if err := json.Unmarshal(text, &rows); err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{"forward": 0.047, "reverse": 0.023}
	unreported := 0
	for _, r := range rows {
		if r["status"] == "unreported" {
			unreported++
		}
		for _, key := range []string{"name", "direction", "configured", "link_log", "measured", "bound", "unit", "status"} {
			if _, ok := r[key]; !ok {
				t.Errorf("no %s in %v", key, r)
			}
		}
		unlogged := r["name"] == "stamp_coverage_ratio" || r["name"] == "packets_unaccounted" || r["name"] == "tcp_throughput_bytes_per_second"
		if r["status"] == "ok" && !unlogged && r["link_log"] == nil {
			t.Errorf("%v %v is compared with the configuration: it has no value in the link's log", r["name"], r["direction"])
		}
	}
	// Queue and capacity of one direction, refused twice.
	if unreported > 3 {
		t.Errorf("%d of %d rows have no value", unreported, len(rows))
	}
	for direction, delay := range want {
		i := slices.IndexFunc(rows, func(r map[string]any) bool { return r["name"] == "delay_min_seconds" && r["direction"] == direction })
		if i < 0 {
			t.Errorf("%s: no row of the smallest delay", direction)
			continue
		}
		truth, _ := rows[i]["link_log"].(map[string]any)
		if low, _ := truth["low"].(float64); low < delay || low > delay+0.005 {
			t.Errorf("%s: the link's smallest delay was %v, by its log; configured is %v", direction, low, delay)
		}
	}
	for _, name := range []string{"udp_throughput_bytes_per_second", "queue_size_bytes", "capacity_bytes_per_second"} {
		for direction := range want {
			if !slices.ContainsFunc(rows, func(r map[string]any) bool { return r["name"] == name && r["direction"] == direction }) {
				t.Errorf("missing row %s, %s", name, direction)
			}
		}
	}
}
