package main

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/influxdata/influxql"
	"go.yaml.in/yaml/v4"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/families"
	"oneway.example/exporter/output/point"
)

// statement is an InfluxQL statement of a panel or of a variable.
type statement struct {
	source, text string
	// of is the query of a panel; nil: of a variable.
	of *influxQuery
	// panel has the query; nil: of a variable.
	panel *dashboard.Panel
}

// statements are those of all dashboards.
func statements(t *testing.T) (all []statement) {
	t.Helper()
	for file, b := range boards() {
		board, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range board.Templating.List {
			if v.Datasource != nil && *v.Datasource.Uid == influxInUse {
				all = append(all, statement{source: file + ": variable " + v.Name, text: v.Query.Map["query"].(string)})
			}
		}
		for _, p := range board.Panels {
			if p.Panel == nil {
				continue
			}
			for _, target := range p.Panel.Targets {
				if q, ok := target.(influxQuery); ok {
					all = append(all, statement{file + ": " + *p.Panel.Title + " " + q.RefID, q.Query, &q, p.Panel})
				}
			}
		}
	}
	if len(all) < 50 {
		t.Fatalf("%d statements, want at least 50", len(all))
	}
	return all
}

// filled replaces the variables of a statement.
func filled(text string, values map[string]string) string {
	names := slices.SortedFunc(maps.Keys(values), func(a, b string) int { return len(b) - len(a) })
	for _, name := range names {
		text = strings.ReplaceAll(text, "$"+name, values[name])
	}
	return text
}

// anything fills variables so that a statement parses.
func anything() map[string]string {
	return map[string]string{
		"timeFilter": "time >= 0ms and time <= 1ms", "__interval": "10s",
		hostTag: allHosts, metric.Path: "a", metric.Probe: "b", metric.Direction: "forward", point.RunField: "r", reportField: "i", "first": "5",
		"{load_forward}": "", "{load_reverse}": "", "{begin_forward}": "", "{begin_reverse}": "",
	}
}

// unfilled is a variable without a value; a regular expression may end with $.
var unfilled = regexp.MustCompile(`\$[a-zA-Z_{]`)

func parsed(t *testing.T, s statement) influxql.Statement {
	t.Helper()
	text := filled(s.text, anything())
	if unfilled.MatchString(text) {
		t.Fatalf("%s: variable without a value in %s", s.source, text)
	}
	got, err := influxql.ParseStatement(text)
	if err != nil {
		t.Fatalf("%s: %v in %s", s.source, err, text)
	}
	return got
}

// InfluxDB 3 has no SLIMIT, SOFFSET, INTO and few functions; 1.8 has no other regular expressions than those of tags.
// https://docs.influxdata.com/influxdb3/core/reference/influxql/feature-support/
func TestStatementsHaveOnlyWhatAllVersionsOfInfluxDBHave(t *testing.T) {
	functions := []string{"mean", "count", "last", "distinct", "mode", "min", "non_negative_derivative"}
	for _, s := range statements(t) {
		switch got := parsed(t, s).(type) {
		case *influxql.ShowTagValuesStatement:
		case *influxql.SelectStatement:
			if got.SLimit != 0 || got.SOffset != 0 || got.Target != nil || got.Location != nil || len(got.Sources) != 1 {
				t.Errorf("%s: %s has a clause that InfluxDB 3 does not know, or several sources", s.source, got)
			}
			for _, f := range got.Fields {
				influxql.WalkFunc(f.Expr, func(n influxql.Node) {
					if call, ok := n.(*influxql.Call); ok && !slices.Contains(functions, strings.ToLower(call.Name)) {
						t.Errorf("%s: function %s is not one of %v", s.source, call.Name, functions)
					}
				})
			}
		default:
			t.Errorf("%s: statement %T", s.source, got)
		}
	}
}

// schema has the tags and fields by measurement.
func schema() map[string][]string {
	all := map[string][]string{}
	add := func(name string, m *point.Measurement) {
		names := append([]string{hostTag, "time"}, m.Tags...)
		for _, c := range m.Columns {
			if !c.Ranked {
				names = append(names, c.Key)
				continue
			}
			for _, rank := range []string{"0.05", "0.25", "0.5", "0.75", "0.95", "0.99"} {
				names = append(names, point.Ranked(c.Key, rank))
			}
		}
		all[name] = names
	}
	for _, m := range point.Series(families.All()) {
		add(m.Name, &m)
		run := m.OfRun()
		add(run.Name, &run)
	}
	for _, m := range point.RawMeasurements(families.Tables()) {
		add(m.Name, &m)
	}
	return all
}

func TestEveryNameInAStatementIsInTheSchema(t *testing.T) {
	known := schema()
	for _, s := range statements(t) {
		got := parsed(t, s)
		measurement := ""
		influxql.WalkFunc(got, func(n influxql.Node) {
			if m, ok := n.(*influxql.Measurement); ok {
				measurement = m.Name
			}
		})
		names := known[measurement]
		if names == nil {
			t.Errorf("%s: measurement %q is not in the schema", s.source, measurement)
		}
		influxql.WalkFunc(got, func(n influxql.Node) {
			if v, ok := n.(*influxql.VarRef); ok && !slices.Contains(names, v.Val) && !strings.HasPrefix(v.Val, "_") {
				t.Errorf("%s: %s has no tag or field %q", s.source, measurement, v.Val)
			}
		})
	}
}

// Without a time range a statement reads all that the store has.
func TestEveryStatementOfAPanelHasATimeRange(t *testing.T) {
	for _, s := range statements(t) {
		if strings.HasPrefix(s.text, "SELECT") && !strings.Contains(s.text, "$timeFilter") {
			t.Errorf("%s: %s", s.source, s.text)
		}
	}
}

// Grafana mixes the columns of several tags in a table, since it iterates over a map of them: tags are columns of SELECT.
func TestTablesDoNotGroupByTags(t *testing.T) {
	for _, s := range statements(t) {
		if s.of != nil && s.of.ResultFormat == formatTable && strings.Contains(s.text, "GROUP BY") && !strings.Contains(s.text, "GROUP BY time($__interval) ") {
			t.Errorf("%s: %s", s.source, s.text)
		}
	}
}

func TestVariablesOfStatementsAreOnTheirPage(t *testing.T) {
	used := regexp.MustCompile(`\$\{?([a-z_]+)`)
	variables := map[string][]string{}
	for file, b := range boards() {
		board, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range board.Templating.List {
			variables[file] = append(variables[file], v.Name)
		}
	}
	for _, s := range statements(t) {
		file, _, _ := strings.Cut(s.source, ":")
		for _, found := range used.FindAllStringSubmatch(strings.ReplaceAll(s.text, "$timeFilter", ""), -1) {
			if found[1] != "__interval" && !slices.Contains(variables[file], found[1]) {
				t.Errorf("%s: the page has no variable %q", s.source, found[1])
			}
		}
	}
}

// The pages of Prometheus and of raw points link to each other with path, probe and time range, and never carry the
// datasource of one to the other.
func TestPagesOfRawPointsAreLinkedBothWays(t *testing.T) {
	all := boards()
	has := func(file, prefix string) bool {
		board, err := all[file].Build()
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(board.Links, func(l dashboard.DashboardLink) bool {
			return l.Url != nil && strings.HasPrefix(*l.Url, prefix) && l.KeepTime && !l.IncludeVars
		})
	}
	for file, want := range map[string][]string{
		"load.json":           {"/d/oneway-raw-packets?var-path=${path}&var-probe=${saturation}"},
		"capacity.json":       {"/d/oneway-raw-trains?var-path=${path}&var-probe=${train}", "/d/oneway-raw-size-sweep?var-path=${path}&var-probe=${size_sweep}"},
		"tcp.json":            {"/d/oneway-raw-tcp?var-path=${path}&var-probe=${tcp}"},
		"buffer_sweep.json":   {"/d/oneway-raw-tcp?var-path=${path}&var-probe=${tcp_sweep}"},
		"fairness.json":       {"/d/oneway-raw-tcp?var-path=${path}&var-probe=${flows}"},
		"path.json":           {"/d/oneway-raw-incident?var-path=${path}&var-probe=${probe}", "/d/oneway-raw-track?var-path=${path}&var-probe=${probe}"},
		"raw_packets.json":    {"/d/oneway-load?var-path=${path}"},
		"raw_trains.json":     {"/d/oneway-capacity?var-path=${path}"},
		"raw_size_sweep.json": {"/d/oneway-capacity?var-path=${path}"},
		"raw_tcp.json":        {"/d/oneway-tcp?var-path=${path}", "/d/oneway-buffer-sweep?var-path=${path}", "/d/oneway-fairness?var-path=${path}"},
		"raw_incident.json":   {"/d/oneway-path?var-path=${path}&var-probe=${probe}"},
		"raw_track.json":      {"/d/oneway-path?var-path=${path}&var-probe=${probe}"},
	} {
		for _, prefix := range want {
			if !has(file, prefix) {
				t.Errorf("%s has no link that keeps the time range to %s", file, prefix)
			}
		}
	}
	for file, b := range boards() {
		board, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		raw := strings.HasPrefix(file, "raw_")
		if got := board.Templating.List[0].Name; got != map[bool]string{true: influxVariable, false: "datasource"}[raw] {
			t.Errorf("%s: the first variable is %s", file, got)
		}
	}
}

// The three files differ in authentication only; the pages use the language InfluxQL and their uid.
func TestProvisionedInfluxDBHasTheUIDAndTheLanguageOfThePages(t *testing.T) {
	for file, want := range map[string]string{"influxdb-1": "", "influxdb-2": "Token ${ONEWAY_INFLUXDB_TOKEN}", "influxdb-3": "Bearer ${ONEWAY_INFLUXDB_TOKEN}"} {
		text, err := os.ReadFile("provisioning/datasources/" + file + ".yml")
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			Datasources []struct {
				UID, Type string
				JSONData  struct {
					Version    string
					DBName     string `yaml:"dbName"`
					HeaderName string `yaml:"httpHeaderName1"`
				} `yaml:"jsonData"`
				Secure struct {
					Header string `yaml:"httpHeaderValue1"`
				} `yaml:"secureJsonData"`
			}
		}
		if err := yaml.Unmarshal(text, &got); err != nil || len(got.Datasources) != 1 {
			t.Fatalf("%s: %v, %+v", file, err, got)
		}
		d := got.Datasources[0]
		if d.UID != influxUID || d.Type != influxType || d.JSONData.Version != "InfluxQL" || d.JSONData.DBName == "" {
			t.Errorf("%s: %+v", file, d)
		}
		if d.Secure.Header != want || (d.JSONData.HeaderName == "Authorization") != (want != "") {
			t.Errorf("%s: header %q, want %q", file, d.Secure.Header, want)
		}
	}
}
