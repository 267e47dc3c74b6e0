package expr

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"time"
)

// Statement is an InfluxQL statement of a dashboard, with its variables.
type Statement struct {
	// Source is the location: file, and panel or variable.
	Source string
	// Text has Grafana's variables.
	Text string
	// Variable is the name of the variable that takes its values from the statement; empty: it is of a panel.
	Variable string
}

// Statements are those of all dashboards below root (a checkout), in the order of the files.
func Statements(root string) ([]Statement, error) {
	names, err := filepath.Glob(filepath.Join(root, dashboardsGlob))
	if err != nil {
		return nil, fmt.Errorf("expr: %w", err)
	}
	var out []Statement
	for _, name := range names {
		b, err := readBoard(name)
		if err != nil {
			return nil, err
		}
		base := filepath.Base(name)
		for _, v := range b.Templating.List {
			var query struct{ Query string }
			if strings.Contains(string(v.Datasource), "influxdb") && json.Unmarshal(v.Query, &query) == nil {
				out = append(out, Statement{Source: base + ": variable " + v.Name, Text: query.Query, Variable: v.Name})
			}
		}
		for _, p := range b.Panels {
			for _, t := range p.Targets {
				if t.Query != "" {
					out = append(out, Statement{Source: base + ": " + p.Title + " " + t.RefID, Text: t.Query})
				}
			}
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("expr: no InfluxQL in the dashboards below %s", root)
	}
	return out, nil
}

// Fill replaces the variables as Grafana does: those of values, the time range, and an interval of 10 s. The variable host is
// All, first is 5 s, and those of the begin of a load are empty, as in Grafana without a run, unless they are in values.
func (s Statement) Fill(values map[string]string, from, to time.Time) (string, error) {
	vars := variables{
		"timeFilter": fmt.Sprintf("time >= %dms and time <= %dms", from.UnixMilli(), to.UnixMilli()),
		"__interval": "10s", "host": ".*", "first": "5",
		"load_forward": "", "begin_forward": "", "load_reverse": "", "begin_reverse": "",
	}
	maps.Copy(vars, values)
	return vars.fill(s.Text)
}
