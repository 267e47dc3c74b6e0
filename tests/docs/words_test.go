package docs

import (
	"regexp"
	"strings"
	"testing"
)

// TestNamesInDocumentsExist: a name with underscores that a runbook or a document of the exporter has as code, such as a reason or an option,
// is in the source, which includes the role of deploy/ansible, or, of other programs and of lists that are built from parts, in otherNames.
func TestNamesInDocumentsExist(t *testing.T) {
	var source strings.Builder
	for _, path := range append(files(t, ".go"), files(t, ".yml")...) {
		if isShipped(path) && !strings.HasSuffix(path, "_test.go") && (strings.HasSuffix(path, ".go") || strings.Contains(path, "deploy/ansible/")) {
			source.WriteString(read(t, path))
		}
	}
	word := regexp.MustCompile(`\b[a-z][a-z0-9]*(?:_[a-z0-9]+)+\b`)
	known := map[string]bool{}
	for _, one := range word.FindAllString(source.String(), -1) {
		known[one] = true
	}
	for _, one := range otherNames() {
		if known[one] {
			t.Errorf("%s is in the source: remove it from otherNames", one)
		}
		known[one] = true
	}
	code, found := regexp.MustCompile("`([a-z][a-z0-9]*(?:_[a-z0-9]+)+)`"), 0
	for _, path := range files(t, ".md") {
		if !strings.Contains(path, "exporter/serve/runbook/") && !strings.Contains(path, "exporter/doc/") || strings.Contains(path, "exporter/doc/from/") {
			continue
		}
		if strings.HasSuffix(path, "METRICS.md") || strings.HasSuffix(path, "MEASUREMENTS.md") { // generated
			continue
		}
		for _, m := range code.FindAllStringSubmatch(read(t, path), -1) {
			if found++; !known[m[1]] {
				t.Errorf("%s has the name %s, which the source does not have", path, m[1])
			}
		}
	}
	if found < 100 {
		t.Errorf("%d names found", found)
	}
}

// otherNames are names of the kernel, of Prometheus and of the sidecar of Grafana, and columns of "oneway report" with a direction.
func otherNames() []string {
	return []string{
		"tcpi_rcv_ooopack", "fq_codel", "rule_files", "grafana_dashboard", "delay_forward_max_seconds", "delays_forward_low_confidence_ratio",
		"delays_forward_negative_ratio", "delays_forward_withheld_ratio", "loss_forward_ratio", "loss_forward_highest_ratio", "loss_reverse_ratio", "loss_reverse_highest_ratio",
	}
}
