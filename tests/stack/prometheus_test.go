package stack

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"
)

// store is a Prometheus.
type store struct{ *service }

// kinds are the Prometheus versions, with the scrape files that deploy/ has for them.
var kinds = []struct {
	name, image, config string
	programs, flags     []string
}{
	{name: "prometheus-2", config: "prometheus-2.42.yml", flags: []string{"--enable-feature=native-histograms"}},
	{name: "prometheus-3", image: "prometheus3", programs: []string{"build/prometheus-3.16.0/prometheus"}, config: "prometheus-3.8.yml"},
}

// startStores starts each Prometheus there is.
func (s *stack) startStores(t *testing.T) {
	t.Helper()
	for _, k := range kinds {
		if smoke() && !built(k.programs) {
			continue
		}
		config := strings.NewReplacer(
			`"a.example:9862", "b.example:9862"`, `"a:9862", "b:9862"`, "localhost:9093", "alertmanager:9093",
			"evaluation_interval: 30s", "evaluation_interval: 10s\n  external_labels: {store: "+k.name+"}",
		).Replace(read(t, "deploy/prometheus/"+k.config))
		p := spec{
			name: k.name, image: k.image, programs: k.programs, networks: []string{s.monitoring}, ports: []string{"9090/tcp"},
			files: merged(fastRules(t), map[string]string{"/stack/prometheus.yml": config, "/stack/history.om": history(time.Now())}),
			// The history is imported once: a restarted container has it.
			command: []string{"/bin/sh", "-c", "[ -d /data ] || promtool tsdb create-blocks-from openmetrics /stack/history.om /data && " +
				"exec prometheus --config.file=/stack/prometheus.yml --storage.tsdb.path=/data --web.enable-lifecycle " + strings.Join(k.flags, " ")},
		}.start(t)
		p.serves(t, "9090", "/-/ready")
		s.stores = append(s.stores, &store{service: p})
	}
	for _, p := range s.stores {
		var build struct {
			Data struct {
				Version string `json:"version"`
			} `json:"data"`
		}
		getJSON(t, p.url(t, "9090")+"/api/v1/status/buildinfo", &build)
		t.Logf("%s is version %s", p.name, build.Data.Version)
	}
}

// built: the checkout has all programs.
func built(programs []string) bool {
	for _, name := range programs {
		if _, err := os.Stat(filepath.Join(root, name)); err != nil {
			return false
		}
	}
	return true
}

var (
	intervalRE = regexp.MustCompile(`(?m)^(    interval: )\d+[smh]$`)
	blowUpRE   = regexp.MustCompile(`(?m)^      - record: oneway:threshold:delay_blow_up_seconds\n.*\n`)
	minuteRE   = regexp.MustCompile(`(?m)^(        for: )1m$`)
)

// blowUpSeconds are half of the test's blow-up, so that a busy machine starts no alert.
const blowUpSeconds = `      - record: oneway:threshold:delay_blow_up_seconds
        expr: 0.75
`

// fastRules are our rules for an evaluation every 10 s, also of the groups with a longer interval. An alert with for: 1m
// waits for one further evaluation: p95 of 5 minutes has waited for 15 s of bad packets already.
func fastRules(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(root, "deploy/prometheus/rules/*.yml"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no rules: %v", err)
	}
	out := map[string]string{}
	for _, name := range names {
		text := read(t, strings.TrimPrefix(name, root))
		text = intervalRE.ReplaceAllString(text, "${1}10s")
		text = blowUpRE.ReplaceAllString(text, blowUpSeconds)
		out["/stack/rules/"+filepath.Base(name)] = minuteRE.ReplaceAllString(text, "${1}10s")
	}
	return out
}

// history is that of two paths for 26 hours until an hour ago, in OpenMetrics: alerts on a delay compare with its baseline.
func history(now time.Time) string {
	const delay, roundTrip = 0.0201, 0.0402
	var b strings.Builder
	series := func(name, labels string, value float64) {
		for at := now.Add(-27 * time.Hour); at.Before(now.Add(-time.Hour)); at = at.Add(5 * time.Minute) {
			fmt.Fprintf(&b, "%s{job=\"oneway\",probe=\"stamp\",%s} %g %d\n", name, labels, value, at.Unix())
		}
	}
	for _, f := range []struct {
		name, more string
		directions bool
		value      float64
	}{
		{"oneway:delay_seconds:quantile1h", `,quantile_rank="0.95"`, true, delay},
		{"oneway:delay_min_seconds:min1h", "", true, delay},
		{"oneway:round_trip_time_seconds:quantile1h", `,quantile_rank="0.95"`, false, roundTrip},
	} {
		fmt.Fprintf(&b, "# TYPE %s gauge\n", f.name)
		for _, target := range []string{`instance="a:9862",path="` + pathA + `"`, `instance="b:9862",path="` + pathB + `"`} {
			if !f.directions {
				series(f.name, target+f.more, f.value)
				continue
			}
			for _, d := range []string{"forward", "reverse"} {
				series(f.name, target+`,direction="`+d+`"`+f.more, f.value)
			}
		}
	}
	return b.String() + "# EOF\n"
}

// startAlertmanager starts it with the inhibitions of deploy/ and the test's receiver.
func (s *stack) startAlertmanager(t *testing.T) {
	t.Helper()
	var config map[string]any
	if err := yaml.Unmarshal([]byte(read(t, "deploy/prometheus/alertmanager.yml")), &config); err != nil {
		t.Fatal(err)
	}
	config["route"] = map[string]any{"receiver": "test", "group_by": []string{"..."}, "group_wait": "0s", "group_interval": "1s", "repeat_interval": "12h"}
	config["receivers"] = []any{map[string]any{"name": "test", "webhook_configs": []any{map[string]any{"url": s.alerts.url}}}}
	text, err := yaml.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	s.alertmanager = spec{
		name: "alertmanager", networks: []string{s.monitoring}, ports: []string{"9093/tcp"},
		files:   map[string]string{"/stack/alertmanager.yml": string(text)},
		command: []string{"prometheus-alertmanager", "--config.file=/stack/alertmanager.yml", "--storage.path=/data", "--cluster.listen-address="},
	}.start(t)
	s.alertmanager.serves(t, "9093", "/-/ready")
}

// sample is one result of an instant query.
type sample struct {
	Metric map[string]string `json:"metric"`
	Value  [2]any            `json:"value"`
	Values [][2]any          `json:"values"` // of a range
}

func (v sample) number(t *testing.T) float64 {
	t.Helper()
	text, _ := v.Value[1].(string)
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatalf("%v: %v", v.Metric, err)
	}
	return n
}

// try sends an instant query.
func (p *store) try(t *testing.T, query string) ([]sample, error) {
	t.Helper()
	address, err := p.PortEndpoint(t.Context(), "9090/tcp", "http")
	if err != nil {
		return nil, err
	}
	client := http.Client{Timeout: time.Minute}
	response, err := client.PostForm(address+"/api/v1/query", url.Values{"query": {query}})
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var reply struct {
		Error string
		Data  struct {
			ResultType string          `json:"resultType"`
			Result     json.RawMessage `json:"result"`
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&reply); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", query, response.Status, err)
	}
	if reply.Error != "" {
		return nil, fmt.Errorf("%s: %s", query, reply.Error)
	}
	if reply.Data.ResultType == "scalar" {
		out := make([]sample, 1)
		return out, json.Unmarshal(reply.Data.Result, &out[0].Value)
	}
	var out []sample
	return out, json.Unmarshal(reply.Data.Result, &out)
}

// query is try for a query that must not fail.
func (p *store) query(t *testing.T, query string) []sample {
	t.Helper()
	out, err := p.try(t, query)
	if err != nil {
		t.Fatalf("%s: %v", p.name, err)
	}
	return out
}
