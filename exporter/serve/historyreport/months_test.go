package historyreport

import (
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/rules"
)

func TestMonthsReadTheDatesOfTheAgentsOfThePathAlone(t *testing.T) {
	all := collect{}
	all.series(map[string]string{"instance": "b.example:9862", metric.Path: "x"})
	all.series(map[string]string{"instance": "a.example:9862", metric.Path: "x"})
	if got, want := all.agents(), `instance=~"a\\.example:9862|b\\.example:9862"`; got != want {
		t.Errorf("agents %s, want %s", got, want)
	}
	if got := (collect{}).agents(); got != "" {
		t.Errorf("agents of no history are %s, want none", got)
	}
	q := Query{From: time.Unix(0, 0), To: time.Unix(86400, 0), Labels: map[string]string{metric.Path: "x"}}
	query := q.distribution(rules.LongIncrease(metric.Delay), "", all.agents(), "")
	if want := rules.LongMonth.Name + "{" + all.agents() + "}[1h]"; !strings.Contains(query, want) {
		t.Errorf("query %s lacks %s", query, want)
	}
}
