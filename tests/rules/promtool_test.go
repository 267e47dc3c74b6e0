// Package rules tests the rules and scrape files of deploy/prometheus and deploy/unscraped: with promtool, in servers, and by
// comparing every name in rules and dashboards with the exporter's table.
package rules

import (
	"os/exec"
	"path/filepath"
	"testing"
)

const (
	root   = "../.."
	deploy = root + "/deploy/prometheus"
)

// need finds a program, or skips with the reason.
func need(t *testing.T, program, debian string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Skipf("NOT TESTED: %s is not installed (Debian package %s)", program, debian)
	}
	return path
}

func run(t *testing.T, program string, args ...string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	if err != nil {
		t.Errorf("%s %v: %v\n%s", program, args, err, out)
	}
}

func files(t *testing.T, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("no file matches %s (%v)", pattern, err)
	}
	return names
}

func TestRulesLoad(t *testing.T) {
	promtool := need(t, "promtool", "prometheus")
	run(t, promtool, append([]string{"check", "rules"}, files(t, deploy+"/rules/*.yml")...)...)
}

func TestConfigurationLoads(t *testing.T) {
	promtool := need(t, "promtool", "prometheus")
	run(t, promtool, "check", "config", deploy+"/prometheus-2.42.yml")
}

func TestAlertmanagerConfigurationLoads(t *testing.T) {
	run(t, need(t, "amtool", "prometheus-alertmanager"), "check-config", deploy+"/alertmanager.yml")
}

// The unit tests of the rules themselves. They are one process each, and run at
// the same time.
func TestRulesBehave(t *testing.T) {
	promtool := need(t, "promtool", "prometheus")
	for _, name := range files(t, "*.yml") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			run(t, promtool, "test", "rules", narrow(t, name, dir), coarsen(t, name, dir))
		})
	}
}

// Rules over native histograms, which the promtool of Prometheus 2.42 cannot express.
func TestRulesOfNativeHistogramsBehave(t *testing.T) {
	for _, version := range []string{before38, from38} {
		promtool := built(t, "promtool", version)
		for _, name := range files(t, "native/*.yml") {
			run(t, promtool, "test", "rules", name)
		}
	}
}

// Of Prometheus 3, whose ranges do not have their first instant: the texts of alerts, with their queries, and the time lines.
func TestAlertsAreRaisedInPrometheus3(t *testing.T) {
	promtool := built(t, "promtool", before38)
	for _, name := range []string{"agent.yml", "blow_up.yml", "load_test_split.yml", "order.yml", "thresholds_missing.yml"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, promtool, "test", "rules", name)
		})
	}
}

// Prometheus 2.42 neither ingests both kinds of histogram nor lets promtool write
// native ones.
func TestRulesReadNativeHistograms(t *testing.T) {
	promtool := built(t, "promtool", from38)
	for _, name := range files(t, "native/*.yml") {
		run(t, promtool, "test", "rules", name)
	}
}
