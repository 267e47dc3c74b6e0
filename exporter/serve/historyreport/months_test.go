package historyreport

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/rules"
	"oneway.example/exporter/serve/promapi"
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

// VictoriaMetrics does not know histogram_count: months follow from classic buckets there.
func TestMonthsOfAStoreWithoutNativeHistograms(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query, value := r.FormValue("query"), "0.02"
		if strings.Contains(query, "histogram_count") {
			w.WriteHeader(http.StatusUnprocessableEntity)
			fmt.Fprint(w, `{"status":"error","errorType":"422","error":"unsupported function \"histogram_count\""}`)
			return
		}
		if strings.Contains(query, `le="+Inf"`) {
			value = "744"
		}
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"path":"x","month":"202601"},"value":[0,"%s"]}]}}`, value)
	}))
	t.Cleanup(s.Close)
	all, q := collect{}, query(t, "delay")
	q.Labels = map[string]string{metric.Path: "x"}
	all.series(map[string]string{metric.Path: "x"})
	p := Prometheus{&promapi.Server{URL: s.URL}}
	if err := p.months(t.Context(), p.Server.Connect(), q, nil, all); err != nil {
		t.Fatal(err)
	}
	for _, one := range all {
		if len(one.Months) != 1 || one.Months[0].Delays != 744 || one.Months[0].P50 == nil || *one.Months[0].P50 != 0.02 {
			t.Errorf("%+v", one.Months)
		}
	}
}
