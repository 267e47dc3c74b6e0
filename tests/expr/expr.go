// Package expr reads every PromQL expression of the rule files and the committed dashboards, with values for the
// dashboards' variables, so that a test can check each name, or run each expression on a live server.
//
// It reads the files and not the Go code that generates the dashboards, and so does not need Grafana's SDK.
package expr

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Expr is one expression.
type Expr struct {
	// Source is the location: file, and rule or panel.
	Source string
	// Query is PromQL without variables.
	Query string
	// Instant: an instant query; otherwise a range query.
	Instant bool
	// MayBeEmpty is why the result may be empty in a healthy system; empty: it must not be.
	MayBeEmpty string
}

// Files of a checkout, below its root.
const (
	rulesGlob      = "deploy/prometheus/rules/*.yml"
	dashboardsGlob = "grafana-dashboards/dashboards/*.json"
)

// variables are values of the dashboards' variables by name, such as "path".
type variables map[string]string

// everything matches any agent, path, probe and codec, with the intervals that Grafana chooses for two hours and a
// scrape interval of 15 s.
func everything() variables {
	return variables{
		"job": ".*", "instance": ".*", "agent": ".*", "path": ".*", "probe": ".*", "codec": ".*",
		"saturation": ".*", "train": ".*", "size_sweep": ".*", "tcp": ".*", "direction": ".*",
		"tcp_sweep": ".*", "congestion_control": ".*", "flows": ".*", "two_way": ".*", "short_flows": ".*", "messages": ".*", "site": ".*", "rows": "100", "per": "1h",
		"label": "path", "a": ".*", "b": ".*", "shift_a": "1ms", "shift_b": "1ms",
		"__rate_interval": "1m", "__interval": "15s", "__range": "2h", "__range_s": "7200", "__from": "0",
	}
}

// Expressions are those of all rules and dashboards below root (a checkout), in the order of the files. Those of
// dashboards match every path.
func Expressions(root string) ([]Expr, error) {
	vars := everything()
	rules, err := Rules(root)
	if err != nil {
		return nil, err
	}
	var out []Expr
	for _, r := range rules {
		out = append(out, r.expression())
	}
	boards, err := filepath.Glob(filepath.Join(root, dashboardsGlob))
	if err != nil {
		return nil, fmt.Errorf("expr: %w", err)
	}
	for _, name := range boards {
		found, err := dashboard(name, vars)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	if len(boards) == 0 || len(rules) == 0 {
		return nil, fmt.Errorf("expr: %d rules and %d dashboards below %s, want some of both", len(rules), len(boards), root)
	}
	for i := range out {
		if out[i].MayBeEmpty == "" {
			out[i].MayBeEmpty = quiet(out[i].Query)
		}
	}
	return out, nil
}

// unfilled is a variable without a value; "$1" is a group of label_replace.
var unfilled = regexp.MustCompile(`\$[a-zA-Z_{]`)

// fill replaces $name and ${name} by values. Longer names are first: $__range must not match the start of $__range_s.
func (v variables) fill(query string) (string, error) {
	// The dashboards match these exactly, so a dot in a name is escaped.
	for name, value := range v {
		if value == ".*" {
			query = strings.ReplaceAll(query, `="$`+name+`"`, `=~".*"`)
		}
	}
	names := make([]string, 0, len(v))
	for name := range v {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return len(b) - len(a) })
	for _, name := range names {
		query = strings.ReplaceAll(query, "${"+name+"}", v[name])
		query = strings.ReplaceAll(query, "$"+name, v[name])
	}
	if unfilled.MatchString(query) {
		return "", fmt.Errorf("expr: variable without a value in %s", query)
	}
	return query, nil
}
