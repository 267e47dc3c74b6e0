package alerting

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Expect is what is to be seen of alerts between two seconds.
type Expect struct {
	// Name says whose expectation it is.
	Name string
	// From included, To not.
	From, To int
	// Fires is the alert that must fire in that time and not have fired just before it,
	// unless Lasting: then it may have. Empty: none but those in Besides may fire.
	Fires   string
	Lasting bool
	Besides []string
}

// How long an alert's condition must hold is left out: the lab's scenarios are a tenth as
// long. That times are right is tested in tests/rules.
var holding = regexp.MustCompile(`(?m)^ +(for|keep_firing_for): .*\n`)

// groups are those of the rule files that the clock's alerts stand on, in order.
var groups = []string{"oneway-thresholds", "oneway-path-thresholds", "oneway-delay", "oneway-delay-30s", "oneway-delay-variation", "oneway-30s", "oneway-5m", "oneway-excess", "oneway-floor", "oneway-agent", "oneway-clock", "oneway-path-delay", "oneway-path"}

// Check evaluates the rules in the directory rules every second over what the hosts
// exported. The error is promtool's, with what was expected and what was seen.
func Check(ctx context.Context, rules string, clock Clock, hosts []Host, expect []Expect) error {
	dir, err := os.MkdirTemp("", "oneway-alerting-")
	if err != nil {
		return fmt.Errorf("alerting: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	files, err := withoutHolding(rules, dir)
	if err != nil {
		return err
	}
	seconds := 0
	for _, e := range expect {
		seconds = max(seconds, e.To)
	}
	var all []series
	for _, h := range hosts {
		s, err := clock.sampled(h, seconds+1)
		if err != nil {
			return err
		}
		all = append(all, s...)
	}
	var tests []exprTest
	for _, e := range expect {
		tests = append(tests, e.tests()...)
	}
	text, err := yaml.Marshal(map[string]any{
		"rule_files": files, "evaluation_interval": "1s", "group_eval_order": groups,
		"tests": []any{map[string]any{"interval": "1s", "input_series": all, "promql_expr_test": tests}},
	})
	if err != nil {
		return fmt.Errorf("alerting: %w", err)
	}
	name := filepath.Join(dir, "lab.yml")
	if err := os.WriteFile(name, text, 0o644); err != nil {
		return fmt.Errorf("alerting: %w", err)
	}
	out, err := exec.CommandContext(ctx, "promtool", "test", "rules", name).CombinedOutput()
	if err != nil {
		return fmt.Errorf("alerting: promtool: %w\n%s", err, bytes.TrimSpace(out))
	}
	return nil
}

// withoutHolding copies the rule files that are needed.
func withoutHolding(rules, dir string) (files []string, err error) {
	for _, name := range []string{"oneway-thresholds.yml", "oneway-recording.yml", "oneway-alerts.yml"} {
		text, err := os.ReadFile(filepath.Join(rules, name))
		if err != nil {
			return nil, fmt.Errorf("alerting: %w", err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), holding.ReplaceAll(text, nil), 0o644); err != nil {
			return nil, fmt.Errorf("alerting: %w", err)
		}
		files = append(files, name)
	}
	return files, nil
}

// exprTest is one of promtool's.
type exprTest struct {
	Expr    string  `yaml:"expr"`
	At      string  `yaml:"eval_time"`
	Samples []reply `yaml:"exp_samples"`
}

type reply struct {
	Labels string  `yaml:"labels"`
	Value  float64 `yaml:"value"`
}

func (e Expect) tests() []exprTest {
	at := func(second int, yes float64, query string) exprTest {
		return exprTest{query, fmt.Sprintf("%ds", second), []reply{{"{}", yes}}}
	}
	span := fmt.Sprintf("[%ds]", max(1, e.To-e.From))
	if e.Fires == "" {
		but := fmt.Sprintf(`ALERTS{alertname!~%q,alertstate="firing"}`, strings.Join(e.Besides, "|"))
		return []exprTest{{"group by (alertname) (max_over_time(" + but + span + "))", fmt.Sprintf("%ds", e.To), nil}} // what is seen has the name
	}
	name := fmt.Sprintf(`ALERTS{alertname=%q,alertstate="firing"}`, e.Fires)
	tests := []exprTest{at(e.To, 1, "(count(max_over_time("+name+span+")) or vector(0)) > bool 0")}
	if !e.Lasting {
		tests = append(tests, at(e.From, 0, "(count("+name+") or vector(0)) > bool 0"))
	}
	return tests
}
