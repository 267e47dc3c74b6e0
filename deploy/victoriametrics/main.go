// Command victoriametrics writes the rules and dashboards for a store without native histograms, as VictoriaMetrics: package classic
// rewrites each expression of package rules and of the committed dashboards. Dashboards that do not change are not written.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"oneway.example/deploy/victoriametrics/classic"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/rules"
	"oneway.example/exporter/doc/ruletext"
	"oneway.example/exporter/families"
)

//go:generate go run . .

// Directories below the one of this package.
const (
	rulesDirectory      = "rules"
	dashboardsDirectory = "dashboards"
	dashboardsOfGrafana = "../../grafana-dashboards/dashboards"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "victoriametrics:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: victoriametrics DIRECTORY, got %d arguments", len(args))
	}
	all, err := generate()
	if err != nil {
		return err
	}
	for _, directory := range []string{rulesDirectory, dashboardsDirectory} {
		path := filepath.Join(args[0], directory)
		if err := os.RemoveAll(path); err != nil {
			return err
		}
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
	}
	for name, text := range all {
		if err := os.WriteFile(filepath.Join(args[0], name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// generate is the text of each file by its name.
func generate() (map[string][]byte, error) {
	all := map[string][]byte{}
	files := rules.Files()
	r, err := rewriter(files)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if err := rewriteRules(r, &f); err != nil {
			return nil, err
		}
		groups := f.Groups
		f.Groups = nil
		for _, g := range groups {
			divided, err := stages(g)
			if err != nil {
				return nil, err
			}
			f.Groups = append(f.Groups, divided...)
		}
		all[filepath.Join(rulesDirectory, f.Name)] = []byte(ruletext.YAML(f))
	}
	boards, err := filepath.Glob(filepath.Join(dashboardsOfGrafana, "*.json"))
	if err != nil {
		return nil, err
	}
	for _, name := range boards {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		out, err := rewriteDashboard(r, text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Base(name), err)
		}
		if out != nil {
			all[filepath.Join(dashboardsDirectory, filepath.Base(name))] = out
		}
	}
	return all, nil
}

// rewriter knows the native histograms of the agent, and what the rules record from nothing else.
func rewriter(files []rules.File) (*classic.Rewriter, error) {
	var native []string
	for _, g := range families.All() {
		for _, d := range g.Descs {
			if d.Kind == metric.Histogram {
				native = append(native, d.Name)
			}
		}
	}
	r := classic.New(native)
	for removed := -1; removed != 0; { // a rule may read what a later one records
		removed = 0
		remains := map[string]bool{}
		for _, f := range files {
			for _, g := range f.Groups {
				for _, one := range g.Rules {
					expr, err := r.Expr(one.Expr)
					if err != nil {
						return nil, fmt.Errorf("rule %s: %w", one.Name, err)
					}
					remains[one.Name] = remains[one.Name] || expr != ""
				}
			}
		}
		for name, some := range remains {
			if !some && r.Remove(name) {
				removed++
			}
		}
	}
	return r, nil
}

// rewriteRules rewrites the expressions of a file, and removes empty rules. The comments are in the files for Prometheus.
func rewriteRules(r *classic.Rewriter, f *rules.File) error {
	groups := f.Groups
	f.Groups, f.Doc = nil, "Without native histograms. Comments are in deploy/prometheus/rules/"+f.Name+"."
	for _, g := range groups {
		all := g.Rules
		g.Rules, g.Doc = nil, ""
		for _, one := range all {
			expr, err := r.Expr(one.Expr)
			if err != nil {
				return fmt.Errorf("rule %s: %w", one.Name, err)
			}
			if one.Expr, one.Doc = expr, ""; expr != "" {
				g.Rules = append(g.Rules, one)
			}
		}
		if len(g.Rules) > 0 {
			f.Groups = append(f.Groups, g)
		}
	}
	return nil
}

// rewriteDashboard rewrites the expressions of a dashboard, and removes empty queries. The result is nil if nothing changes.
func rewriteDashboard(r *classic.Rewriter, text []byte) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var board any
	if err := d.Decode(&board); err != nil {
		return nil, err
	}
	w := walker{Rewriter: r}
	board = w.walk(board)
	if w.err != nil || !w.changed {
		return nil, w.err
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(board); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// walker rewrites the values of the keys expr.
type walker struct {
	*classic.Rewriter
	changed bool
	err     error
}

// removed stands for a query without an expression.
type removed struct{}

func (w *walker) walk(v any) any {
	switch v := v.(type) {
	case []any:
		kept := []any{}
		for _, one := range v {
			if one = w.walk(one); one != any(removed{}) {
				kept = append(kept, one)
			}
		}
		return kept
	case map[string]any:
		for key, value := range v {
			if expr, ok := value.(string); ok && key == "expr" && strings.TrimSpace(expr) != "" {
				rewritten, err := w.Expr(expr)
				if err != nil && w.err == nil {
					w.err = err
				}
				w.changed = w.changed || rewritten != expr
				if rewritten == "" {
					return removed{}
				}
				v[key] = rewritten
				continue
			}
			v[key] = w.walk(value)
		}
		if targets, ok := v["targets"].([]any); ok && len(targets) == 0 && v["title"] != nil {
			return textPanel(v)
		}
		return v
	}
	return v
}

// textPanel is a panel of text in the place of a panel whose queries are all removed.
func textPanel(panel map[string]any) map[string]any {
	text := map[string]any{
		"type":    "text",
		"options": map[string]any{"mode": "markdown", "content": "This panel reads native histograms, which this store does not have."},
	}
	for _, key := range []string{"id", "title", "description", "gridPos"} {
		text[key] = panel[key]
	}
	return text
}
