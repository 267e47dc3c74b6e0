package rules

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"oneway.example/tests/oneway"
)

// TestPrometheusDiscoversTheAgentsOfAMesh: promtool runs the discovery of file_sd_configs.
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
	file := write("prometheus.yml", []byte(`scrape_configs:
  - job_name: oneway
    file_sd_configs: [{files: [targets.json]}]
    relabel_configs:
      - {source_labels: [__meta_oneway_host], target_label: host}
      - {source_labels: [__meta_oneway_label_region], target_label: part}
`))
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
	var found []string
	for _, one := range discovered {
		found = append(found, one.Labels["instance"]+" "+one.Labels["host"]+" "+one.Labels["part"])
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
