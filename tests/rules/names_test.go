package rules

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/pathstate"
	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/estimate/capacity"
	"oneway.example/exporter/estimate/queue"
	"oneway.example/exporter/estimate/voice"
	"oneway.example/exporter/families"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/tests/expr"
)

// targetLabels come from the scrape; classic histograms have le besides.
var targetLabels = []string{"job", "instance", "alertname", "alertstate"}

// recordedLabels are all labels that the recording rules keep or add.
var recordedLabels = []string{
	"job", "instance", metric.Path, metric.Probe, metric.Direction, metric.SiteL, metric.SitePairL, "quantile_rank", "cause", "hour", "day_type", metric.StateL, metric.CodecL, metric.ModelL, metric.BufferL, "host", "url",
}

func table() map[string]*metric.Desc {
	out := map[string]*metric.Desc{}
	for _, g := range families.All() {
		for _, d := range g.Descs {
			out[d.Name] = d
		}
	}
	return out
}

func load(t *testing.T) ([]expr.Rule, []expr.Expr) {
	t.Helper()
	rules, err := expr.Rules(root)
	if err != nil {
		t.Fatal(err)
	}
	all, err := expr.Expressions(root)
	if err != nil {
		t.Fatal(err)
	}
	return rules, all
}

func recorded(rules []expr.Rule) map[string]bool {
	out := map[string]bool{}
	for _, r := range rules {
		if r.Record != "" {
			out[r.Record] = true
		}
	}
	return out
}

// exists reports whether a name is a family of the table, one of the classic
// series of its histogram, or recorded.
func exists(name string, families map[string]*metric.Desc, records map[string]bool) bool {
	if families[name] != nil || records[name] || name == "oneway_build_info" { // of client_golang
		return true
	}
	d := families[expr.Family(name)]
	return d != nil && d.Kind == metric.Histogram
}

// paperValues are the values of the papers in the tables of the dashboard Paper, beside the one here.
var paperValues = regexp.MustCompile(`^paper\.json: .*: paper and here [BC]$`)

func TestEveryNameInAnExpressionExists(t *testing.T) {
	rules, all := load(t)
	families, records := table(), recorded(rules)
	for _, e := range all {
		found := expr.Selectors(e.Query)
		for _, s := range found {
			if !exists(s.Name, families, records) {
				t.Errorf("%s: %s is neither exported nor recorded", e.Source, s.Name)
			}
		}
		if len(found) == 0 && !strings.Contains(e.Query, "up{") && !strings.Contains(e.Query, "ALERTS{") &&
			!strings.HasPrefix(e.Source, "oneway-thresholds.yml") && !paperValues.MatchString(e.Source) {
			t.Errorf("%s: no oneway series in %s: did the scan miss it?", e.Source, e.Query)
		}
	}
}

// measurements are the names of the line protocol that are of no family.
func measurements(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(root + "/exporter/doc/MEASUREMENTS.md")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^#+ `?(oneway_[a-z0-9_]+)`?$").FindAllStringSubmatch(string(text), -1) {
		out[m[1]] = true
	}
	if !out["oneway_hour"] {
		t.Fatalf("MEASUREMENTS.md has the headings %v, want oneway_hour among them", out)
	}
	return out
}

// Annotations, descriptions and runbooks contain names; without this test a wrong one
// is found only when the alert fires.
func TestEveryNameInTextExists(t *testing.T) {
	rules, _ := load(t)
	families, records, points := table(), recorded(rules), measurements(t)
	names := regexp.MustCompile(`\b(?:path_hour:)?oneway[_:][a-z0-9_:]*[a-z0-9](\*?)`)
	for _, pattern := range []string{deploy + "/*.md", deploy + "/*.yml", deploy + "/rules/*.yml", root + "/exporter/serve/runbook/*.md"} {
		for _, file := range files(t, pattern) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range names.FindAllStringSubmatch(string(text), -1) {
				name := m[0]
				if m[1] == "*" || name == "oneway:threshold" || name == "oneway:long" {
					continue
				}
				if !exists(name, families, records) && !points[name] {
					t.Errorf("%s: %s is neither exported nor recorded", file, name)
				}
			}
		}
	}
}

func TestEveryMatcherMatchesALabelThatTheSeriesHas(t *testing.T) {
	rules, all := load(t)
	families := table()
	for _, r := range rules {
		for k, v := range r.Annotations {
			all = append(all, expr.Expr{Source: r.Alert + " " + k, Query: v})
		}
	}
	for _, e := range all {
		for _, s := range expr.Selectors(e.Query) {
			labels := recordedLabels
			if d := families[expr.Family(s.Name)]; d != nil {
				labels = append(slices.Clone(d.Labels), targetLabels...)
				if strings.HasSuffix(s.Name, "_bucket") {
					labels = append(labels, "le")
				}
			}
			for _, m := range s.Matchers {
				d := families[expr.Family(s.Name)]
				if !slices.Contains(labels, m.Label) && (d == nil || !d.More) {
					t.Errorf("%s: %s has no label %s", e.Source, s.Name, m.Label)
				}
			}
		}
	}
}

// Values of closed sets: a misspelled state or reason would match nothing, silently.
func TestEveryMatcherOfAClosedSetMatchesSomething(t *testing.T) {
	sets := map[string][]string{
		metric.Direction: {sample.Forward.String(), sample.Reverse.String()},
		"quantile_rank":  {"0", "0.05", "0.25", "0.5", "0.75", "0.95", "0.99", "1"},
		"cause":          {"queue", "queue or route", "route", "clock", "host"},
		metric.Path:      {"a-to-b", ""},
		"leap_status":    {"normal", "insert_second", "delete_second", "unsynchronized"},
		"reflector":      {"oneway", "stateful", "stateless", "unknown"},
		// Of quotas, of what a clock follows, and of what calibration found.
		"kind": {"links", "tokens", "pps", "nmea", "ptp", "ntp", "local", "other", "systematic", "random"},
	}
	for _, m := range voice.Models() {
		sets[metric.ModelL] = append(sets[metric.ModelL], m.Name)
	}
	for _, s := range clock.States() {
		sets["state"] = append(sets["state"], s.String())
	}
	for _, s := range pathstate.States() {
		sets["state"] = append(sets["state"], strconv.Itoa(int(s)))
	}
	for s := queue.Filled; s <= queue.TimeLimited; s++ {
		sets["state"] = append(sets["state"], s.String())
	}
	for _, d := range table() {
		for label, entries := range d.Values {
			for _, entry := range entries {
				value, _, _ := strings.Cut(entry, ":")
				sets[label] = append(sets[label], value)
			}
		}
	}
	for _, r := range sample.Reasons() {
		sets[metric.ReasonL] = append(sets[metric.ReasonL], r.String())
	}
	sets[metric.ReasonL] = append(sets[metric.ReasonL], runreason.Quota, runreason.Unsaved)
	for _, r := range []loadtest.Result{loadtest.Completed, loadtest.Incomplete, loadtest.Refused, loadtest.Failed, loadtest.Skipped} {
		sets[metric.ResultL] = append(sets[metric.ResultL], string(r))
	}
	for _, r := range capacity.Results() {
		sets[metric.ResultL] = append(sets[metric.ResultL], r.String())
	}
	_, all := load(t)
	checked := 0
	for _, e := range all {
		for _, s := range expr.Selectors(e.Query) {
			for _, m := range s.Matchers {
				set, ok := sets[m.Label]
				if !ok || m.Op == "!=" {
					continue
				}
				checked++
				for part := range strings.SplitSeq(m.Value, "|") {
					re := regexp.MustCompile("^(?:" + part + ")$")
					if !slices.ContainsFunc(set, re.MatchString) {
						t.Errorf("%s: %s{%s%s%q} matches none of %v", e.Source, s.Name, m.Label, m.Op, part, set)
					}
				}
			}
		}
	}
	if checked < 50 {
		t.Errorf("checked %d matchers: fewer than there are", checked)
	}
}

// The exposition formats write bounds with an exponent below 1e-4.
func TestRulesThatNameABucketNameOneThatExists(t *testing.T) {
	_, all := load(t)
	families := table()
	for _, e := range all {
		for _, s := range expr.Selectors(e.Query) {
			for _, m := range s.Matchers {
				if m.Label != "le" || m.Value == "+Inf" {
					continue
				}
				d := families[expr.Family(s.Name)]
				if d == nil || !slices.ContainsFunc(d.Buckets, func(b float64) bool { return strconv.FormatFloat(b, 'g', -1, 64) == m.Value }) {
					t.Errorf("%s: %s has no bucket le=%q", e.Source, s.Name, m.Value)
				}
			}
		}
	}
}

// Every recorded series has a use: an alert, a panel, another rule, or it is
// one for queries over months.
func TestEveryRecordedNameIsUsed(t *testing.T) {
	rules, all := load(t)
	longTerm := []string{
		"path_hour:", "oneway:long:", "oneway:delay_seconds:quantile1d", "oneway:delay_min_seconds:min1d",
		"oneway:delay_max_seconds:max1d", "oneway:packets_lost:ratio1d", "oneway:round_trips_lost:ratio1d",
	}
	used := map[string]bool{}
	for _, e := range all {
		for _, s := range expr.Selectors(e.Query) {
			used[s.Name] = true
		}
	}
	for _, r := range rules {
		for _, s := range expr.Selectors(strings.Join(slices.Collect(maps.Values(r.Annotations)), "\n")) {
			used[s.Name] = true
		}
	}
	for name := range recorded(rules) {
		if !used[name] && !slices.ContainsFunc(longTerm, func(p string) bool { return strings.HasPrefix(name, p) }) {
			t.Errorf("%s is recorded and nothing reads it", name)
		}
	}
}
