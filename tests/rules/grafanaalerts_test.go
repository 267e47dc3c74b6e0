package rules

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// The rule of Grafana has an instance for each alert that fires in Prometheus, with its name and its labels, but for those without an action.
func TestRuleOfGrafanaHasTheAlertsThatFire(t *testing.T) {
	promtool := need(t, "promtool", "prometheus")
	text, err := os.ReadFile(root + "/grafana-dashboards/provisioning/alerting/oneway.yml")
	if err != nil {
		t.Fatal(err)
	}
	type query struct {
		RefID         string `yaml:"refId"`
		DatasourceUID string `yaml:"datasourceUid"`
		Model         struct{ Expr, Expression string }
	}
	var file struct {
		ContactPoints []struct{ Name string } `yaml:"contactPoints"`
		Groups        []struct {
			Folder string
			Rules  []struct {
				Condition string
				Data      []query
				Settings  struct{ Receiver string } `yaml:"notification_settings"`
			}
		}
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	rule := file.Groups[0].Rules[0]
	if rule.Settings.Receiver != file.ContactPoints[0].Name {
		t.Errorf("the rule notifies %q, the contact point is %q", rule.Settings.Receiver, file.ContactPoints[0].Name)
	}
	if len(rule.Data) != 2 || rule.Condition != rule.Data[1].RefID || rule.Data[1].Model.Expression != rule.Data[0].RefID {
		t.Errorf("the condition is not of the query: %+v", rule)
	}
	source, err := os.ReadFile(root + "/grafana-dashboards/provisioning/datasources/oneway.yml")
	if err != nil || !slices.Contains(strings.Fields(string(source)), rule.Data[0].DatasourceUID) {
		t.Errorf("the datasource %q is not provisioned (%v)", rule.Data[0].DatasourceUID, err)
	}
	test := `evaluation_interval: 30s
tests:
  - interval: 30s
    input_series:
      - {series: 'ALERTS{alertname="OnewayDelayBlowUp",alertstate="firing",severity="warning",path="a",direction="forward"}', values: '1x10'}
      - {series: 'ALERTS{alertname="OnewayLossHigh",alertstate="firing",severity="warning",path="a",direction="forward"}', values: '1x10'}
      - {series: 'ALERTS{alertname="OnewayLossHigh",alertstate="pending",severity="warning",path="b"}', values: '1x10'}
      - {series: 'ALERTS{alertname="OnewaySplitTCPChanged",alertstate="firing",severity="info",path="a"}', values: '1x10'}
      - {series: 'ALERTS{alertname="DiskFull",alertstate="firing",severity="critical"}', values: '1x10'}
    promql_expr_test:
      - expr: '` + rule.Data[0].Model.Expr + `'
        eval_time: 2m
        exp_samples:
          - {labels: '{oneway_alert="OnewayDelayBlowUp",severity="warning",path="a",direction="forward"}', value: 1}
          - {labels: '{oneway_alert="OnewayLossHigh",severity="warning",path="a",direction="forward"}', value: 1}
`
	name := filepath.Join(t.TempDir(), "test.yml")
	if err := os.WriteFile(name, []byte(test), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, promtool, "test", "rules", name)
}
