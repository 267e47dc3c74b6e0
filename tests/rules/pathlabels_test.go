package rules

import (
	"fmt"
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
      - {series: 'oneway_path_state{job="oneway",instance="a:9862",path="seoul-to-lima",probe="stamp"}', values: '3x40'}
      - {series: 'oneway_path_labels_info{job="oneway",instance="a:9862",path="seoul-to-lima",site="lima"}', values: '1x40'}
      - {series: 'oneway_path_state{job="oneway",instance="a:9862",path="oslo-to-lima",probe="stamp"}', values: '3x40'}
      - {series: 'oneway_path_labels_info{job="oneway",instance="a:9862",path="oslo-to-lima",site="lima"}', values: '1x40'}
      - {series: 'oneway_path_state{job="oneway",instance="a:9862",path="paris-to-lima",probe="stamp"}', values: '3x40'}
      - {series: 'oneway_path_labels_info{job="oneway",instance="a:9862",path="paris-to-lima",site="lima"}', values: '1x40'}
    promql_expr_test:
      - expr: count by (alertname, path, site) (ALERTS{alertname=~"OnewayProbeFailing|OnewaySiteDegraded|OnewayTargetDown|OnewayDataQuotaNotSaved",alertstate="firing"})
        eval_time: 15m
        exp_samples:
          - {labels: '{alertname="OnewayProbeFailing",path="seoul-to-paris",site="paris"}', value: 1}
          - {labels: '{alertname="OnewayProbeFailing",path="bare",site="none"}', value: 1}
          - {labels: '{alertname="OnewayTargetDown",site="none"}', value: 1}
          - {labels: '{alertname="OnewaySiteDegraded",site="lima"}', value: 1}
          - {labels: '{alertname="OnewayDataQuotaNotSaved",site="none"}', value: 1}
`
	name := filepath.Join(work, "rules", "test.yml")
	if err := os.WriteFile(name, []byte(test), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, promtool, "test", "rules", name)
}

// TestDocumentedQueriesNameTheSiteThatReachesNoOther: its host is still scraped, so that its paths to all sites fail.
func TestDocumentedQueriesNameTheSiteThatReachesNoOther(t *testing.T) {
	promtool := need(t, "promtool", "prometheus")
	text, err := os.ReadFile(root + "/exporter/doc/mesh.md")
	if err != nil {
		t.Fatal(err)
	}
	query := func(begin string) string {
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, begin) {
				return strings.TrimSpace(line)
			}
		}
		t.Fatalf("mesh.md has no query that begins with %s", begin)
		return ""
	}
	sites := []string{"busan", "lima", "oslo", "paris", "seoul", "ship"}
	series := []attributes{}
	for _, from := range sites {
		for _, to := range sites {
			if from == to {
				continue
			}
			loss, up := "0x4", "1x4"
			if from == "ship" || to == "ship" {
				loss, up = "1x4", "0x4"
			}
			labels := fmt.Sprintf(`{job="oneway",instance="%s:9862",path="%[1]s-to-%s"`, from, to)
			series = append(series,
				attributes{"series": "oneway_path_labels_info" + labels + `,site="` + to + `"}`, "values": "1x4"},
				attributes{"series": "oneway_round_trip_loss_ratio" + labels + `,probe="stamp"}`, "values": loss},
				attributes{"series": "oneway_probe_up" + labels + `,probe="stamp"}`, "values": up})
		}
	}
	worst := strings.Replace(query("topk(5, "), "topk(5, ", "topk(1, ", 1)
	samples := func(expr string, value float64) attributes {
		return attributes{"expr": expr, "eval_time": "1m", "exp_samples": []attributes{{"labels": `{site="ship"}`, "value": value}}}
	}
	file := writeYAML(t, t.TempDir(), "sites.yml", attributes{"tests": []attributes{{
		"interval": "30s", "input_series": series,
		"promql_expr_test": []attributes{samples(worst, 1), samples(query("max by (site) "), 0)},
	}}})
	run(t, promtool, "test", "rules", file)
}
