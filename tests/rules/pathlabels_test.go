package rules

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The command of the documentation adds the label site to the alerts of paths with that label, of dead ones too.
func TestDocumentedCommandGivesAlertsTheLabelOfTheirPath(t *testing.T) {
	promtool := need(t, "promtool", "prometheus")
	text, err := os.ReadFile(root + "/exporter/doc/mesh.md")
	if err != nil {
		t.Fatal(err)
	}
	_, command, found := strings.Cut(string(text), "```sh\n")
	if command, _, _ = strings.Cut(command, "```"); !found {
		t.Fatal("mesh.md has no such command")
	}
	work := t.TempDir()
	dir := filepath.Join(work, "deploy", "prometheus", "rules")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range files(t, deploy+"/rules/*.yml") {
		rules, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(name)), rules, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	shell := exec.CommandContext(t.Context(), "sh", "-e", "-c", command)
	shell.Dir = work
	if out, err := shell.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	const test = `rule_files: [oneway-thresholds.yml, oneway-recording.yml, oneway-alerts.yml, oneway-load-test-alerts.yml]
evaluation_interval: 30s
tests:
  - interval: 30s
    input_series:
      - {series: 'up{job="oneway",instance="b:9862"}', values: '0x40'}
      - {series: 'oneway_probe_up{job="oneway",instance="a:9862",path="seoul-to-paris",probe="stamp"}', values: '1x10 0x30'}
      - {series: 'oneway_probe_up{job="oneway",instance="a:9862",path="bare",probe="stamp"}', values: '1x10 0x30'}
      - {series: 'oneway_path_labels_info{job="oneway",instance="a:9862",path="seoul-to-paris",site="paris"}', values: '1x40'}
      - {series: 'oneway_path_labels_info{job="oneway",instance="a:9862",path="bare",region="asia"}', values: '1x40'}
      - {series: 'oneway_data_quota_saved{job="oneway",instance="a:9862",kind="links"}', values: '0x40'}
    promql_expr_test:
      - expr: count by (alertname, path, site) (ALERTS{alertname=~"OnewayProbeFailing|OnewayTargetDown|OnewayDataQuotaNotSaved",alertstate="firing"})
        eval_time: 15m
        exp_samples:
          - {labels: '{alertname="OnewayProbeFailing",path="seoul-to-paris",site="paris"}', value: 1}
          - {labels: '{alertname="OnewayProbeFailing",path="bare",site="none"}', value: 1}
          - {labels: '{alertname="OnewayTargetDown",site="none"}', value: 1}
          - {labels: '{alertname="OnewayDataQuotaNotSaved",site="none"}', value: 1}
`
	name := filepath.Join(work, "rules", "test.yml")
	if err := os.WriteFile(name, []byte(test), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, promtool, "test", "rules", name)
}
