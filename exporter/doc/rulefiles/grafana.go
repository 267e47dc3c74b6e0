package main

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v4"

	"oneway.example/exporter/core/rules"
)

// The file of Grafana, by the structure of its file provisioning for alerting.
type (
	provisioning struct {
		APIVersion int            `yaml:"apiVersion"`
		Groups     []grafanaGroup `yaml:"groups"`
	}
	grafanaGroup struct {
		OrgID    int           `yaml:"orgId"`
		Name     string        `yaml:"name"`
		Folder   string        `yaml:"folder"`
		Interval string        `yaml:"interval"`
		Rules    []grafanaRule `yaml:"rules"`
	}
	grafanaRule struct {
		UID           string            `yaml:"uid"`
		Title         string            `yaml:"title"`
		Condition     string            `yaml:"condition"`
		Data          []grafanaNode     `yaml:"data"`
		NoDataState   string            `yaml:"noDataState"`
		ExecErrState  string            `yaml:"execErrState"`
		For           string            `yaml:"for"`
		KeepFiringFor string            `yaml:"keepFiringFor,omitempty"`
		Annotations   map[string]string `yaml:"annotations"`
		Labels        map[string]string `yaml:"labels"`
	}
	grafanaNode struct {
		RefID         string         `yaml:"refId"`
		TimeRange     timeRange      `yaml:"relativeTimeRange"`
		DatasourceUID string         `yaml:"datasourceUid"`
		Model         map[string]any `yaml:"model"`
	}
	timeRange struct {
		From int `yaml:"from"`
		To   int `yaml:"to"`
	}
)

const (
	expressions = "__expr__"
	// valueNode and conditionNode are expressions, thresholdNode compares the condition with 0.
	valueNode, conditionNode, thresholdNode = "Value", "Condition", "Fires"
)

const grafanaHead = `# Generated from exporter/core/rules by ` + "`make generate`" + `: a change of this file is lost with the next version.
#
# Alerts of weeks that Grafana evaluates over InfluxDB, for sites without Prometheus; with Prometheus, load deploy/prometheus/rules and
# grafana-dashboards/provisioning/alerting/oneway.yml in place of it. Copy it to /etc/grafana/provisioning/alerting, and set
# ONEWAY_AGENT_URL to the address of an agent that serves runbooks. It needs the datasource oneway-influxdb
# (grafana-dashboards/provisioning/datasources), the database of deploy/influxdb, and the tag host, which agents add by default. In a
# database of InfluxDB 2 and 3, "raw" and "long" are retention policies of a mapping (influx v1 dbrp).
`

// grafanaText is the file.
func grafanaText(all []rules.GrafanaAlert) (string, error) {
	group := grafanaGroup{OrgID: 1, Name: "oneway-trend-alerts", Folder: "oneway", Interval: "5m"}
	for i := range all {
		group.Rules = append(group.Rules, grafanaRuleOf(&all[i]))
	}
	text, err := yaml.Marshal(provisioning{1, []grafanaGroup{group}})
	if err != nil {
		return "", fmt.Errorf("rulefiles: %w", err)
	}
	out := grafanaHead + string(text)
	for _, a := range all {
		if a.Doc != "" {
			lines := "        # " + strings.ReplaceAll(a.Doc, "\n", "\n        # ") + "\n"
			mark := "        - uid: " + uid(a.Rule.Name) + "\n"
			if !strings.Contains(out, mark) {
				return "", fmt.Errorf("rulefiles: no line %q", mark)
			}
			out = strings.Replace(out, mark, lines+mark, 1)
		}
	}
	return out, nil
}

func uid(alert string) string {
	return "oneway-influxdb-" + strings.ToLower(strings.TrimPrefix(alert, "Oneway"))
}

func grafanaRuleOf(a *rules.GrafanaAlert) grafanaRule {
	r := grafanaRule{
		UID: uid(a.Rule.Name), Title: a.Rule.Name, Condition: thresholdNode, NoDataState: "OK", ExecErrState: "Error",
		For: model.Duration(a.Rule.Alert.For).String(), Labels: map[string]string{},
		Annotations: map[string]string{"summary": a.GrafanaSummary(), "description": a.Description, "runbook_url": "${ONEWAY_AGENT_URL}/runbooks/" + a.Rule.Name},
	}
	if a.Rule.Alert.KeepFiringFor > 0 {
		r.KeepFiringFor = model.Duration(a.Rule.Alert.KeepFiringFor).String()
	}
	for _, l := range a.Rule.AllLabels() {
		r.Labels[l.Name] = l.Value
	}
	expression := func(ref, kind string, more map[string]any) {
		m := map[string]any{"refId": ref, "type": kind, "datasource": map[string]any{"type": expressions, "uid": expressions}}
		maps.Copy(m, more)
		r.Data = append(r.Data, grafanaNode{ref, timeRange{}, expressions, m})
	}
	weeks, err := model.ParseDuration(rules.AllWeeks) // the longest time of a query
	if err != nil {
		panic(err) // a constant
	}
	for i, q := range a.Queries {
		raw := "Q" + strconv.Itoa(i+1)
		r.Data = append(r.Data, grafanaNode{raw, timeRange{From: int(time.Duration(weeks).Seconds())}, "oneway-influxdb", map[string]any{
			"refId": raw, "query": q.Statement, "rawQuery": true, "resultFormat": "time_series",
		}})
		expression(q.Name, "reduce", map[string]any{"expression": raw, "reducer": "last"})
	}
	expression(valueNode, "math", map[string]any{"expression": a.Value})
	expression(conditionNode, "math", map[string]any{"expression": a.Math})
	expression(thresholdNode, "threshold", map[string]any{
		"expression": conditionNode, "conditions": []any{map[string]any{"evaluator": map[string]any{"type": "gt", "params": []any{0}}}},
	})
	return r
}
