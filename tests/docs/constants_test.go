package docs

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"oneway.example/exporter/agent/incident"
	"oneway.example/exporter/agent/linklease"
	"oneway.example/exporter/core/document"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/rules"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/estimate/tcpdelay"
	"oneway.example/exporter/estimate/tcpstate"
	"oneway.example/exporter/load/loadserver"
	"oneway.example/exporter/net/tstamp"
	"oneway.example/exporter/probes/stamp/ledger"
	"oneway.example/exporter/watchers/pps"
)

// TestTextsHaveTheNumbersOfTheProgram: a constant that changes changes the texts that have it by hand.
func TestTextsHaveTheNumbersOfTheProgram(t *testing.T) {
	const metrics = "exporter/doc/METRICS.md"
	words := map[int]string{3: "three", 24: "a day"}
	incidents := fmt.Sprintf("last %.0f minutes", incident.Span.Minutes())
	for _, c := range []struct{ file, text string }{
		{runbooks + "OnewayDataQuotaNotSaved.md", "retries every " + unit.Duration(metric.QuotaSaveInterval)},
		{runbooks + "OnewayDataQuotaNotSaved.md", "within " + unit.Duration(metric.QuotaSaveInterval)},
		{runbooks + "OnewaySocketDrops.md", fmt.Sprintf("Below %d,", tstamp.DefaultBufferBytes)},
		{runbooks + "OnewaySocketDrops.md", fmt.Sprintf("than the %d MiB", tstamp.DefaultBufferBytes>>20)},
		{runbooks + "OnewaySocketDrops.md", fmt.Sprintf("rmem_max=%d`", tstamp.DefaultBufferBytes)},
		{runbooks + "OnewayDelayBlowUp.md", incidents},
		{"exporter/serve/httpd/page.html", incidents},
		{metrics, fmt.Sprintf("within the last %s intervals (at least %s)", say(t, words, ledger.UpIntervals), unit.Duration(ledger.UpTime))},
		{"exporter/doc/report.md", fmt.Sprintf("within the %s test intervals before (at least %s)", say(t, words, ledger.UpIntervals), unit.Duration(ledger.UpTime))},
		{metrics, fmt.Sprintf("and for %.0f minutes after it unless a clock is stepped", sample.FaultTime.Minutes())},
		{metrics, fmt.Sprintf("last %d intervals between pulses", pps.JitterIntervals)},
		{"grafana-dashboards/dashboards/clock.json", fmt.Sprintf("last %d intervals between pulses", pps.JitterIntervals)},
		{metrics, fmt.Sprintf("in less than %g of the time between", tcpdelay.CompressedRatio)},
		{"exporter/doc/tcpdelay.md", fmt.Sprintf("less than %g of the time between", tcpdelay.CompressedRatio)},
		{"grafana-dashboards/dashboards/tcp.json", fmt.Sprintf("in less than %g of the time between", tcpdelay.CompressedRatio)},
		{"exporter/doc/tcpdelay.md", fmt.Sprintf("at least %d sampled bytes were acknowledged", tcpdelay.LeastEarly)},
		{"exporter/doc/tcpdelay.md", fmt.Sprintf("among at least %d sampled bytes", tcpdelay.LeastTested)},
		{runbooks + "OnewaySplitTCPChanged.md", fmt.Sprintf("at least %d sampled bytes", tcpdelay.LeastEarly)},
		{metrics, fmt.Sprintf("reaches %g %% of the best", tcpstate.KneeShare*100)},
		{"grafana-dashboards/dashboards/buffer_sweep.json", fmt.Sprintf("reaches %g %% of", tcpstate.KneeShare*100)},
		{"deploy/systemd/oneway-agent.service", "RuntimeDirectory=" + filepath.Base(filepath.Dir(linklease.DefaultSocket)) + "\n"},
		{"deploy/prometheus/README.md", fmt.Sprintf("the %.0f minutes that the rules look back", metric.TestedRecent.Minutes())},
		{"deploy/prometheus/README.md", say(t, words, int(rules.ThresholdBaselineHours.Default)) + " of history"},
	} {
		if text := read(t, filepath.Join(root, c.file)); !strings.Contains(text, c.text) {
			t.Errorf("%s has no %q", c.file, c.text)
		}
	}
}

// TestJSONPageHasTheResults: the page lists the results of the schemas, of a light probe and of a test.
func TestJSONPageHasTheResults(t *testing.T) {
	results := func(kind document.Kind) []string {
		var one struct {
			Properties struct {
				Result struct{ Enum []string }
			}
		}
		if err := json.Unmarshal([]byte(read(t, filepath.Join(root, "exporter/doc/schema", string(kind)+".json"))), &one); err != nil {
			t.Fatal(err)
		}
		return one.Properties.Result.Enum
	}
	code := func(list string) (names []string) {
		for _, m := range regexp.MustCompile("`([a-z]+)`").FindAllStringSubmatch(list, -1) {
			names = append(names, m[1])
		}
		return names
	}
	page := read(t, filepath.Join(root, "exporter/doc/json.md"))
	m := regexp.MustCompile("`result` \\(([^;)]*); of a test also ([^)]*)\\)").FindStringSubmatch(page)
	if m == nil {
		t.Fatal("json.md does not list the results")
	}
	all := append(code(m[1]), code(m[2])...)
	slices.Sort(all)
	if want := results(document.Probe); len(want) == 0 || !slices.Equal(code(m[1]), want) {
		t.Errorf("json.md has the results %q of a probe; its schema has %q", code(m[1]), want)
	}
	if want := results(document.Test); !slices.Equal(all, want) {
		t.Errorf("json.md has the results %q of a test; its schema has %q", all, want)
	}
}

// TestSecurityHasTheLimitsOfATokenWithTheirDefault, as a list of the keys, in the order of a line.
func TestSecurityHasTheLimitsOfATokenWithTheirDefault(t *testing.T) {
	_, text, _ := strings.Cut(read(t, filepath.Join(root, "SECURITY.md")), "\n## What a token permits\n")
	text, _, _ = strings.Cut(text, "\n## ")
	var listed, keys []string
	for _, m := range regexp.MustCompile("(?m)^- `([a-z-]+)`: ").FindAllStringSubmatch(text, -1) {
		listed = append(listed, m[1])
	}
	for _, limit := range loadserver.TokenLimits() {
		keys = append(keys, limit.Key)
	}
	if !slices.Equal(listed, keys) {
		t.Errorf("SECURITY.md has the limits %q of a token; they are %q", listed, keys)
	}
	if want := fmt.Sprintf("by default %d (", loadserver.DefaultTokenSessions); !strings.Contains(text, want) {
		t.Errorf("SECURITY.md has no %q", want)
	}
}

// TestRunbooksNameDashboardsThatExist by their titles.
func TestRunbooksNameDashboardsThatExist(t *testing.T) {
	var titles []string
	boards, err := filepath.Glob(filepath.Join(root, "grafana-dashboards/dashboards/*.json"))
	if err != nil || len(boards) == 0 {
		t.Fatalf("no dashboards: %v", err)
	}
	for _, path := range boards {
		var board struct {
			Title string `json:"title"`
		}
		if err := json.Unmarshal([]byte(read(t, path)), &board); err != nil {
			t.Fatal(err)
		}
		titles = append(titles, strings.TrimPrefix(board.Title, "oneway / "))
	}
	named, found := regexp.MustCompile(`dashboards? ("[^"]+"(?:(?:, | and |, and )"[^"]+")*)`), 0
	for _, path := range files(t, ".md") {
		if !strings.Contains(path, "runbook") {
			continue
		}
		for _, m := range named.FindAllStringSubmatch(strings.ReplaceAll(read(t, path), "\n", " "), -1) {
			for _, title := range regexp.MustCompile(`"([^"]+)"`).FindAllStringSubmatch(m[1], -1) {
				if found++; !slices.Contains(titles, title[1]) {
					t.Errorf("%s: no dashboard has the title %q; they are %q", path, title[1], titles)
				}
			}
		}
	}
	if found < 5 {
		t.Errorf("%d names of dashboards found", found)
	}
}

// TestTextsHaveTheDaysOfBaselines: each text that has the days of a baseline, or the name of a recorded one, has the number of the rules.
func TestTextsHaveTheDaysOfBaselines(t *testing.T) {
	days, found := regexp.MustCompile(`(?i)\b(\d+)-day (?:baseline|median)|last (\d+) days|baseline \([^)]*\) uses up to (\d+) days|baseline of (\d+) days|:(?:quantile_)?baseline(\d+)d\b`), 0
	for _, suffix := range []string{".md", ".json", ".yml"} {
		for _, path := range files(t, suffix) {
			if strings.Contains(path, "CHANGELOG") {
				continue
			}
			for _, m := range days.FindAllStringSubmatch(strings.ReplaceAll(read(t, path), "\n", " "), -1) {
				if found++; strings.Join(m[1:], "") != strconv.Itoa(rules.BaselineDays) {
					t.Errorf("%s: %q; the rules have %d days", path, m[0], rules.BaselineDays)
				}
			}
		}
	}
	if found < 30 {
		t.Errorf("%d texts found", found)
	}
}
