package expr

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"oneway.example/exporter/core/rules"
)

// Rule is one rule of the rule files, as in Prometheus.
type Rule struct {
	// File is the base name of the file, Group the group of the rule.
	File, Group string `yaml:"-"`

	Record      string            `yaml:"record"`
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

// Rules are those of all rule files below root.
func Rules(root string) ([]Rule, error) {
	names, err := filepath.Glob(filepath.Join(root, rulesGlob))
	if err != nil {
		return nil, fmt.Errorf("expr: %w", err)
	}
	var out []Rule
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("expr: %w", err)
		}
		var file struct {
			Groups []struct {
				Name  string `yaml:"name"`
				Rules []Rule `yaml:"rules"`
			} `yaml:"groups"`
		}
		if err := yaml.Unmarshal(text, &file); err != nil {
			return nil, fmt.Errorf("expr: %s: %w", name, err)
		}
		for _, g := range file.Groups {
			for _, r := range g.Rules {
				r.File, r.Group = filepath.Base(name), g.Name
				out = append(out, r)
			}
		}
	}
	return out, nil
}

func (r Rule) expression() Expr {
	e := Expr{Source: r.File + ": " + r.Record + r.Alert, Query: r.Expr, Instant: true}
	switch {
	case r.Alert != "":
		e.MayBeEmpty = "an alert that has no cause to fire"
	case strings.HasSuffix(r.Record, "_upper"):
		e.MayBeEmpty = "absent until every window of the range had the quantile"
	case slices.Contains([]string{
		rules.DelayQuantiles5m.Withheld, rules.DelayQuantiles1h.Withheld, rules.DelayQuantiles1d.Withheld, rules.DelayVariationQuantiles.Withheld,
	}, r.Record):
		e.MayBeEmpty = "absent where few delays are not known"
	}
	return e
}
