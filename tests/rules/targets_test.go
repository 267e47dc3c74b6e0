package rules

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"oneway.example/tests/oneway"
)

// TestPrometheusDiscoversTheAgentsOfAMesh: promtool runs the discovery of the scrape configuration in mesh.md.
func TestPrometheusDiscoversTheAgentsOfAMesh(t *testing.T) {
	promtool := need(t, "promtool", "prometheus")
	dir := t.TempDir()
	program, err := oneway.Build(dir)
	if err != nil {
		t.Fatal(err)
	}
	targets, err := exec.CommandContext(t.Context(), program, "targets", "../../deploy/mesh/oneway.yml").Output()
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, text []byte) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	write("targets.json", targets)
	page, err := os.ReadFile("../../exporter/doc/mesh.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "```yaml\nscrape_configs:")
	text, _, _ = strings.Cut(text, "```")
	file := write("prometheus.yml", []byte("scrape_configs:"+strings.ReplaceAll(text, "/etc/prometheus/oneway-targets.json", "targets.json")+
		"      - {source_labels: [__meta_oneway_label_region], target_label: part}\n"))
	run(t, promtool, "check", "config", file)
	out, err := exec.CommandContext(t.Context(), promtool, "check", "service-discovery", "--timeout=2s", file, "oneway").Output()
	if err != nil {
		t.Fatal(err)
	}
	var discovered []struct {
		Labels map[string]string `json:"labels"`
	}
	if err := json.Unmarshal(out, &discovered); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	// A label by which an alert names the host with the fault would name the agent then.
	var names []string
	for _, i := range inhibitions(t) {
		names = append(names, i.Equal...)
	}
	var found []string
	for _, one := range discovered {
		for name := range one.Labels {
			if name != "job" && name != "instance" && slices.Contains(names, name) {
				t.Errorf("the target has the label %s, which alerts set", name)
			}
		}
		found = append(found, one.Labels["instance"]+" "+one.Labels["agent"]+" "+one.Labels["part"])
	}
	slices.Sort(found)
	want := []string{
		"192.0.2.17:9862 busan-1 asia", "[2001:db8:7::1]:9862 paris-1 europe", "[2001:db8:7::2]:9862 paris-2 europe",
		"seoul-1.example.net:9862 seoul-1 asia", "seoul-2.example.net:9862 seoul-2 asia", "ship-1.example.net:9862 ship-1 sea",
	}
	if !slices.Equal(found, want) {
		t.Errorf("discovered %q\nwant %q", found, want)
	}
}
