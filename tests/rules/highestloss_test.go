package rules

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// highestLoss is the dotted curve of the panel Loss of the dashboard Trends, of hours.
func highestLoss(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(root + "/grafana-dashboards/dashboards/trends.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ LegendFormat, Expr string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			if p.Title == "Loss" && target.LegendFormat == "{{direction}}, highest" {
				return strings.NewReplacer(" offset -$per", "", "$per", "1h", "$__interval", "1h", "$job", ".+", "$instance", ".+", "$path", "p", "$probe", "stamp").Replace(target.Expr)
			}
		}
	}
	t.Fatal("the dashboard Trends has no highest loss")
	return ""
}

// TestPacketsUndecidedForwardMayBeLostInReverse: of 1000 packets forward 10 are lost and 90 undecided, so that up to 90 more than the 910 with an
// outcome may have entered the way back. In the second hour 50 are undecided in reverse, too.
func TestPacketsUndecidedForwardMayBeLostInReverse(t *testing.T) {
	promtool := need(t, "promtool", "prometheus")
	series := func(name, direction, values string) attributes {
		return attributes{"series": "oneway:long:packets_" + name + `:increase1h{job="oneway",instance="a",path="p",probe="stamp",direction="` + direction + `",hour="3",day_type="weekday",zone="UTC"}`, "values": values}
	}
	at := func(time string) attributes {
		return attributes{"expr": highestLoss(t), "eval_time": time, "exp_samples": []attributes{
			{"labels": `{direction="forward"}`, "value": 0.1}, {"labels": `{direction="reverse"}`, "value": 0.25},
		}}
	}
	run(t, promtool, "test", "rules", writeYAML(t, t.TempDir(), "loss.yml", attributes{"tests": []attributes{{
		"interval": "30m",
		"input_series": []attributes{
			series("lost", "forward", "_ 10 _ 10"), series("undecided", "forward", "_ 90 _ 90"), series("outcomes", "forward", "_ 1000 _ 1000"),
			series("lost", "reverse", "_ 160 _ 110"), series("undecided", "reverse", "_ _ _ 50"), series("outcomes", "reverse", "_ 910 _ 910"),
		},
		"promql_expr_test": []attributes{at("1h"), at("2h")},
	}}}))
}
