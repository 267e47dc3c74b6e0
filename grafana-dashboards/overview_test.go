package main

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/pathstate"
	"oneway.example/exporter/core/rules"
)

// overviewPanels are the panels of the page Overview by title.
func overviewPanels(t *testing.T) map[string]dashboard.Panel {
	t.Helper()
	board, err := overviewBoard().Build()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]dashboard.Panel{}
	for _, p := range board.Panels {
		if p.Panel != nil {
			all[*p.Panel.Title] = *p.Panel
		}
	}
	return all
}

// TestNumbersOfStatesAndReasonsHaveWords: a number without a word is no use in the list.
func TestNumbersOfStatesAndReasonsHaveWords(t *testing.T) {
	text, err := json.Marshal(overviewPanels(t)["Worst paths"].FieldConfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range pathstate.States() {
		if want := `"` + strconv.Itoa(int(s)) + `":{"text":"` + s.String() + `"`; !strings.Contains(string(text), want) {
			t.Errorf("no mapping %s", want)
		}
	}
	for _, e := range pathstate.Entries() {
		if want := `"` + strconv.Itoa(int(e.Reason)) + `":{"text":"` + metric.Words(e.Word) + `"`; !strings.Contains(string(text), want) {
			t.Errorf("no mapping %s", want)
		}
	}
}

// TestListsOfTheOverviewLeadToTheirPages: with the time range and the datasource.
func TestListsOfTheOverviewLeadToTheirPages(t *testing.T) {
	panels := overviewPanels(t)
	for title, want := range map[string][]string{
		"Worst paths":       {"/d/" + pathUID, "var-job=", "var-instance=", "var-path=", "var-probe="},
		"Alerts that fire":  {"/d/" + pathUID, "var-path=", "${url:raw}/"},
		"Agents and clocks": {"/d/" + clockUID, "var-job=", "var-instance="},
		"Events":            {"/d/" + pathUID, "var-job=", "var-instance=", "var-path=", "var-site="},
		"State":             {"/d/" + pathUID, "var-instance=", "var-site="},
		"Loss reverse":      {"/d/" + pathUID, "var-instance=", "var-site="},
	} {
		text, err := json.Marshal(panels[title].FieldConfig)
		if err != nil {
			t.Fatal(err)
		}
		links := strings.ReplaceAll(string(text), `\u0026`, "&")
		for _, part := range append(want, "var-datasource="+datasourceInUse, "${__url_time_range}") {
			if !strings.Contains(links, part) {
				t.Errorf("%s: no link with %s", title, part)
			}
		}
	}
}

// TestOverviewReadsNoHistoryOfPaths: with 2,500 paths only instant queries are fast, and no longer ranges than an hour of gauges with few
// changes.
func TestOverviewReadsNoHistoryOfPaths(t *testing.T) {
	ranges := regexp.MustCompile(`([a-z_]+)(?:\{[^}]*\})?\[([^\]]+)\]`)
	queries := 0
	for title, p := range overviewPanels(t) {
		for _, target := range p.Targets {
			q, ok := target.(prometheus.Dataquery)
			if !ok {
				t.Fatalf("%s: %T", title, target)
			}
			queries++
			if instant := q.Instant != nil && *q.Instant; instant == (title == "Paths by state") {
				t.Errorf("%s: instant is %v: %s", title, instant, q.Expr)
			}
			for _, m := range ranges.FindAllStringSubmatch(q.Expr, -1) {
				if m[2] != "1h" && m[2] != "5m" || m[2] == "1h" && m[1] != metric.PathLabels.Name && m[1] != buildInfo && m[1] != metric.ConfigReloadTime.Name {
					t.Errorf("%s reads %s of %s", title, m[2], m[1])
				}
			}
		}
	}
	if queries < 30 {
		t.Errorf("%d queries", queries)
	}
}

// TestPathsByStateIsZeroWhereAllAreUp: without a value the panel says that no agent is scraped.
func TestPathsByStateIsZeroWhereAllAreUp(t *testing.T) {
	targets := overviewPanels(t)["Paths by state"].Targets
	if len(targets) == 0 {
		t.Fatal("no queries")
	}
	for _, target := range targets {
		q, ok := target.(prometheus.Dataquery)
		if !ok {
			t.Fatalf("%T", target)
		}
		if !strings.HasSuffix(q.Expr, " or 0 * sum("+agentsRec(rules.PathStateCount.Name)+")") {
			t.Errorf("absent where no path is in the state: %s", q.Expr)
		}
	}
}

// TestMatricesHaveTheirAgentsInOrder: the first agent has no path to the first site, and would be the last row.
func TestMatricesHaveTheirAgentsInOrder(t *testing.T) {
	panels := overviewPanels(t)
	for _, title := range []string{"State", "Delay forward", "Loss reverse", "Call quality R forward"} {
		steps := panels[title].Transformations
		if len(steps) == 0 {
			t.Fatalf("%s: no transformation", title)
		}
		last, err := json.Marshal(steps[len(steps)-1])
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(last), `"sortBy"`) || !strings.Contains(string(last), `"field":"agent"`) {
			t.Errorf("%s: the last step is %s", title, last)
		}
	}
}

// TestNoAlertFiresOnlyWithRules: without rules nothing can fire.
func TestNoAlertFiresOnlyWithRules(t *testing.T) {
	for _, target := range overviewPanels(t)["Alerts that fire"].Targets {
		q, ok := target.(prometheus.Dataquery)
		if !ok {
			t.Fatalf("%T", target)
		}
		if !strings.Contains(q.Expr, `"no alert fires", "", "") and on () `+rules.PathStateNow.Name+"{") || !strings.Contains(q.Expr, `"no rules, or no agent"`) {
			t.Errorf("the text does not depend on rules: %s", q.Expr)
		}
	}
}
