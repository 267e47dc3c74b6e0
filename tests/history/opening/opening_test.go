package opening

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// left is a variable, and not a group of label_replace.
var left = regexp.MustCompile(`\$\{?[A-Za-z_]+`)

// TestPagesHaveAllVariablesFilled: a year of Trends has the steps that Grafana takes, and no variable remains in any page.
func TestPagesHaveAllVariablesFilled(t *testing.T) {
	names, err := filepath.Glob("../../../grafana-dashboards/dashboards/*.json")
	if err != nil || len(names) == 0 {
		t.Fatalf("no dashboards: %v", err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		to := time.Unix(1_796_000_400, 0)
		queries, err := Page{Dashboard: text, Variables: map[string]string{"path": "a-to-b", "direction": "forward"}, From: to.AddDate(-1, 0, 0), To: to}.Queries()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, q := range queries {
			if left := left.FindString(q.Expr); left != "" {
				t.Errorf("%s: %s has the variable %s", filepath.Base(name), q.Panel, left)
			}
			if filepath.Base(name) == "trends.json" && q.Panel == "Loss" && q.Step != 12*time.Hour {
				t.Errorf("the loss of a year has steps of %v, want 12h", q.Step)
			}
		}
	}
}

func TestOpenSendsEachQuery(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.FormValue("query") == "bad" {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"status":"error","error":"no such function"}`))
			return
		}
		_, _ = w.Write([]byte(`{"status":"success","data":{"result":[{},{}]}}`))
	}))
	t.Cleanup(server.Close)
	page := Page{Dashboard: []byte(`{"panels":[{"title":"row","panels":[{"title":"a","targets":[{"expr":"x[$__range]"},{"expr":"y","instant":true}]}]}],"annotations":{"list":[{"name":"n","expr":"z"}]}}`), From: time.Unix(0, 0), To: time.Unix(3600, 0)}
	results, _, err := page.Open(t.Context(), server.URL)
	if err != nil || asked.Load() != 3 || len(results) != 3 || results[0].Series != 2 || results[0].Expr != "x[3600s]" {
		t.Errorf("Open returned %+v, %v after %d queries, want 3", results, err, asked.Load())
	}
	page.Dashboard = []byte(`{"panels":[{"title":"a","targets":[{"expr":"bad"}]}]}`)
	if _, _, err := page.Open(t.Context(), server.URL); err == nil || !strings.Contains(err.Error(), "no such function") {
		t.Errorf("Open of a refused query: %v, want the error of the server", err)
	}
}
