package loadtest

import (
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"oneway.example/tests/loadsite"
	"oneway.example/tests/program"
)

// scrape gets /metrics with an Accept header.
func scrape(t *testing.T, a *loadsite.Agent, accept string) (text, format string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+loadsite.AgentAddress+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", accept)
	w, err := a.HTTP.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Body.Close()
	all, err := io.ReadAll(w.Body)
	if err != nil || w.StatusCode != http.StatusOK {
		t.Fatalf("%s, %v", w.Status, err)
	}
	return string(all), w.Header.Get("Content-Type")
}

// exemplar matches a bucket of the delay under load with an exemplar: bound, ID and value.
var exemplar = regexp.MustCompile(`^oneway_saturation_delay_seconds_bucket\{.*le="([^"]+)"\} \S+ # \{run_id="([^"]+)"\} (\S+)`)

// The exemplar in a path's histogram has the ID of the run of the value, and that leads to the run's
// report.
func TestExemplarsOfAScrapeLeadToTheReportOfTheirRun(t *testing.T) {
	s := newSite(t, loadsite.OverSlow())
	a := s.Agent(t, "paths:\n"+s.Path("p", "duration: 1500ms", "rate: {forward: 5Mbit, reverse: 10Mbit}"))
	program.Eventually(t, "a run", func() bool { return loadsite.Sum(a.Metrics(t, "oneway_probe_runs_total"), `"completed"`) > 0 })
	known := map[string]bool{}
	text, format := "", ""
	program.Eventually(t, "buckets with exemplars", func() bool { // delays are exported shortly after the run is counted
		text, format = scrape(t, a, "application/openmetrics-text; version=1.0.0")
		return strings.Contains(text, "# {")
	})
	for _, r := range a.Runs(t) {
		known[r.ID] = true
	}
	found := 0
	for line := range strings.Lines(text) {
		m := exemplar.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		found++
		v, err := strconv.ParseFloat(m[3], 64)
		bound, bad := strconv.ParseFloat(m[1], 64)
		if err != nil || bad != nil || !(v <= bound) || !known[m[2]] {
			t.Errorf("%s: %v, %v; the runs are %v", line, err, bad, known)
			continue
		}
		if report := a.Get(t, "/runs/"+m[2]); !strings.Contains(string(report), m[2]) {
			t.Errorf("the report of %s does not contain the ID: %.200s", m[2], report)
		}
	}
	if found == 0 {
		t.Errorf("no bucket has an exemplar of %s in %s", "run_id", format)
	}
	if plain, format := scrape(t, a, "text/plain; version=0.0.4"); strings.Contains(plain, "run_id") {
		t.Errorf("%s has exemplars, which the format does not allow", format)
	}
}
