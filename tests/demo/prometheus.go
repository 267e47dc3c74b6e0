package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"

	"oneway.example/exporter/core/rules"
	"oneway.example/tests/expr"
)

const prometheusConfig = `global:
  scrape_interval: %s
  evaluation_interval: 5s
rule_files: ["%s/*.yml"]
scrape_configs:
  - job_name: oneway
    static_configs:
%s`

// startPrometheus runs Debian's Prometheus with oneway's rules.
func (s *stack) startPrometheus(ctx context.Context) error {
	ruleDir, err := s.copyRules()
	if err != nil {
		return err
	}
	var targets strings.Builder
	for _, name := range []string{"client", "server"} {
		fmt.Fprintf(&targets, "      - targets: [%q]\n        labels: {instance: %s}\n", strings.TrimPrefix(s.agents[name], "http://"), name)
	}
	config := filepath.Join(s.dir, "prometheus.yml")
	if err := os.WriteFile(config, fmt.Appendf(nil, prometheusConfig, scrapeEvery, ruleDir, targets.String()), 0o644); err != nil {
		return err
	}
	data := filepath.Join(s.dir, "prometheus-data")
	if err := os.RemoveAll(data); err != nil {
		return err
	}
	s.stops = append(s.stops, func() { _ = os.RemoveAll(data) })
	address, err := freeAddress()
	if err != nil {
		return err
	}
	s.prometheus = "http://" + address
	step("starting Prometheus with %s", "deploy/prometheus/rules")
	// Without native histograms the CDFs of the dashboards are a few points.
	cmd := exec.CommandContext(ctx, "prometheus", "--enable-feature=native-histograms", "--config.file="+config, "--storage.tsdb.path="+data, "--web.listen-address="+address)
	cmd.Cancel = func() error { return nil } // stop ends it in order
	if err := s.start("prometheus", cmd); err != nil {
		return err
	}
	return s.untilReady(ctx, s.prometheus+"/-/ready", "Prometheus")
}

// copyRules copies the rules into the demo's directory, with the addresses of the agents' runbooks: the label instance is a name
// here, and no address.
func (s *stack) copyRules() (dir string, err error) {
	dir = filepath.Join(s.dir, "rules")
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	if err := os.CopyFS(dir, os.DirFS("deploy/prometheus/rules")); err != nil {
		return "", err
	}
	var each []string
	for _, name := range slices.Sorted(maps.Keys(s.agents)) {
		each = append(each, fmt.Sprintf(`label_replace(group by (instance) (up{job="oneway",instance=%q} == 1), "url", "%s/runbooks", "", "")`, name, s.agents[name]))
	}
	file := filepath.Join(dir, "oneway-thresholds.yml")
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	general := rules.RunbooksURL.Expr
	if strings.Count(string(text), general) != 1 {
		return "", fmt.Errorf("%s does not have the rule of runbooks: %s", file, general)
	}
	return dir, os.WriteFile(file, []byte(strings.Replace(string(text), general, strings.Join(each, " or "), 1)), 0o644)
}

// freeAddress finds an unused port of the loopback interface.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

func (s *stack) untilReady(ctx context.Context, address, name string) error {
	return s.until(ctx, name, func() error {
		_, err := get(ctx, address)
		return err
	})
}

// until waits until works returns no error.
func (s *stack) until(ctx context.Context, name string, works func() error) error {
	ctx, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := works()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready after 60 s: %w", name, err)
		case err := <-s.ended:
			return s.still(err)
		case <-ticker.C:
		}
	}
}

func get(ctx context.Context, address string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", address, resp.Status, strings.TrimSpace(string(body)))
	}
	return body, err
}

func getJSON(ctx context.Context, address string, into any) error {
	body, err := get(ctx, address)
	if err != nil {
		return err
	}
	return json.Unmarshal(body, into)
}

// series is one result of an instant query.
type series struct {
	Metric map[string]string `json:"metric"`
	Value  [2]any            `json:"value"`
}

func (v series) number() (float64, error) {
	text, ok := v.Value[1].(string)
	if !ok {
		return 0, fmt.Errorf("no number in %v", v.Value)
	}
	return strconv.ParseFloat(text, 64)
}

// queryServer sends an instant query to Prometheus.
func (s *stack) queryServer(ctx context.Context, q string, take func(kind string, result json.RawMessage) error) error {
	body, err := get(ctx, s.prometheus+"/api/v1/query?query="+url.QueryEscape(q))
	if err != nil {
		return err
	}
	var reply struct {
		Data struct {
			ResultType string          `json:"resultType"`
			Result     json.RawMessage `json:"result"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &reply); err != nil {
		return err
	}
	return take(reply.Data.ResultType, reply.Data.Result)
}

func (s *stack) query(ctx context.Context, q string) (all []series, err error) {
	err = s.queryServer(ctx, q, func(kind string, result json.RawMessage) error {
		if kind == "scalar" {
			all = make([]series, 1)
			return json.Unmarshal(result, &all[0].Value)
		}
		return json.Unmarshal(result, &all)
	})
	return all, err
}

// judgeWithin is the timeout for an expression's first result: rules based on rules are evaluated every 30 s.
const judgeWithin = 60 * time.Second

// judge runs every expression of the rules and dashboards in Prometheus: none may fail, and none without a stated
// reason may be empty. A missing value is such a reason, because the expressions that depend on it are not known.
func (s *stack) judge(ctx context.Context, unreported bool) error {
	all, err := expr.Expressions(".")
	if err != nil {
		return err
	}
	deadline := time.Now().Add(judgeWithin)
	ticker := time.NewTicker(2 * time.Second)
	defer ticker.Stop()
	for empty := all; ; {
		if empty, err = s.empty(ctx, empty); err != nil {
			return err
		}
		if len(empty) == 0 {
			break
		}
		if time.Now().After(deadline) {
			if unreported {
				step("%d of %d expressions of rules and dashboards have no result, because values are missing; the first is %s: %s", len(empty), len(all), empty[0].Source, empty[0].Query)
				return s.alerts(ctx)
			}
			return fmt.Errorf("%d expressions without a result, the first is %s: %s", len(empty), empty[0].Source, empty[0].Query)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
	step("%d expressions of rules and dashboards run by Prometheus, none failed, none empty without a reason", len(all))
	return s.alerts(ctx)
}

// empty returns the expressions without a result and without a reason for it.
func (s *stack) empty(ctx context.Context, all []expr.Expr) (left []expr.Expr, err error) {
	for _, e := range all {
		result, err := s.query(ctx, e.Query)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.Source, err)
		}
		if len(result) == 0 && e.MayBeEmpty == "" {
			left = append(left, e)
		}
	}
	return left, nil
}

// alerts prints firing alerts: on a path as configured none should fire, except for a queue as long as the profile's
// (OnewayBufferbloat).
func (s *stack) alerts(ctx context.Context) error {
	firing, err := s.query(ctx, `ALERTS{alertstate="firing"}`)
	if err != nil {
		return err
	}
	for _, a := range firing {
		step("alert firing: %s %s %s", a.Metric["alertname"], a.Metric["path"], a.Metric["direction"])
	}
	if len(firing) == 0 {
		step("no alert fires")
	}
	return nil
}

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }
