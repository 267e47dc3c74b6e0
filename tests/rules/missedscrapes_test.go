package rules

import (
	"fmt"
	"strings"
	"testing"
)

// Every third scrape fails, and each evaluation meets such a scrape: the target's series have ended then. No alert is silent for that.
func TestAlertsAreRaisedWhileEachThirdScrapeFails(t *testing.T) {
	promtool := need(t, "promtool", "prometheus")
	const minutes = 30
	third := func(value func(second int) float64) string {
		var all strings.Builder
		for second := 0; second <= minutes*60; second += 10 {
			if second%30 == 0 {
				all.WriteString("stale ")
				continue
			}
			fmt.Fprintf(&all, "%g ", value(second))
		}
		return all.String()
	}
	constant := func(v float64) string { return third(func(int) float64 { return v }) }
	counter := func(perSecond float64) string { return third(func(s int) float64 { return perSecond * float64(s) }) }
	const agent = `job="oneway",instance="a:9862"`
	series := []attributes{}
	add := func(name, labels, values string) {
		series = append(series, attributes{"series": name + "{" + agent + labels + "}", "values": values})
	}
	for _, path := range []string{"lossy", "dead"} {
		probe := `,path="` + path + `",probe="stamp"`
		add("oneway_probe_interval_seconds", probe, constant(0.1))
		add("oneway_path_info", probe+`,peer="192.0.2.1:862",reflector="oneway"`, constant(1))
		add("oneway_remote_clock_synchronized", probe, constant(0))
		if path == "dead" {
			add("oneway_probe_up", probe, constant(0))
			continue
		}
		add("oneway_probe_up", probe, constant(1))
		for _, direction := range []string{"forward", "reverse"} {
			directed := probe + `,direction="` + direction + `"`
			add("oneway_packets_sent_total", directed, counter(10))
			add("oneway_packets_lost_total", directed, counter(1))
			add("oneway_packets_received_total", directed, counter(9))
			add("oneway_delay_error_bound_seconds", directed, constant(0.05))
			add("oneway_delay_quantile_seconds", directed+`,quantile_rank="0.5"`, constant(0.02))
		}
		add("oneway_round_trips_lost_total", probe, counter(1.9))
		add("oneway_round_trips_received_total", probe, counter(8.1))
	}
	for state, value := range map[string]float64{"synchronized": 0, "unsynchronized": 1, "holdover": 1, "silent": 0, "none": 0} {
		add("oneway_clock_state", `,clock="chrony",state="`+state+`"`, constant(value))
	}
	add("oneway_clock_synchronized", `,clock="chrony"`, constant(0))

	u := readUnitTests(t, "path.yml")
	var queries []attributes
	for alert, firing := range map[string]int{
		"OnewayProbeFailing":              1, // of the path dead
		"OnewayLossHigh":                  2, // of both directions
		"OnewayClockErrorTooLarge":        2,
		"OnewayClockUnsynchronized":       1,
		"OnewayClockHoldover":             1,
		"OnewayRemoteClockUnsynchronized": 2, // of both paths
	} {
		queries = append(queries, attributes{
			"expr":        fmt.Sprintf(`count(ALERTS{alertname=%q,alertstate="firing"})`, alert),
			"eval_time":   fmt.Sprintf("%dm", minutes-2),
			"exp_samples": []attributes{{"labels": "{}", "value": firing}},
		})
	}
	file := writeYAML(t, t.TempDir(), "missed.yml", attributes{
		"rule_files": u.RuleFiles, "group_eval_order": u.GroupOrder, "evaluation_interval": u.Interval,
		"tests": []attributes{{"interval": "10s", "input_series": series, "promql_expr_test": queries}},
	})
	run(t, promtool, "test", "rules", file)
}
