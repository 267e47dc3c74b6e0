package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"go.yaml.in/yaml/v3"

	"oneway.example/exporter/metric"
)

func TestCommittedJSONIsWhatTheCodeSays(t *testing.T) {
	for name, b := range boards() {
		want, err := render(b)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := os.ReadFile(filepath.Join("dashboards", name))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("dashboards/%s is not what the code makes: run go generate", name)
		}
	}
}

func TestNoDashboardFileIsWithoutCode(t *testing.T) {
	names, err := filepath.Glob("dashboards/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if boards()[filepath.Base(name)] == nil {
			t.Errorf("%s is made by nothing here", name)
		}
	}
}

// eachPanel calls f for every panel that shows something.
func eachPanel(t *testing.T, f func(t *testing.T, p dashboard.Panel)) {
	t.Helper()
	for name, b := range boards() {
		board, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range board.Panels {
			all := []dashboard.Panel{}
			if p.RowPanel != nil {
				all = p.RowPanel.Panels
			} else if p.Panel != nil {
				all = append(all, *p.Panel)
			}
			for _, p := range all {
				t.Run(name+"/"+*p.Title, func(t *testing.T) { f(t, p) })
			}
		}
	}
}

func TestEveryPanelExplainsItself(t *testing.T) {
	eachPanel(t, func(t *testing.T, p dashboard.Panel) {
		if p.Description == nil || len(*p.Description) < 30 {
			t.Error("no description worth reading")
		}
		if p.Type == "text" { // it shows nothing of ours
			return
		}
		if p.FieldConfig == nil || p.FieldConfig.Defaults.NoValue == nil || *p.FieldConfig.Defaults.NoValue == "" {
			t.Error("an empty panel does not say why it is empty")
		}
		hasUnit := p.FieldConfig != nil && p.FieldConfig.Defaults.Unit != nil && *p.FieldConfig.Defaults.Unit != ""
		if !hasUnit && p.Type != "heatmap" { // a heatmap's unit is its axis's
			t.Error("no unit")
		}
		if p.Datasource == nil || *p.Datasource.Uid != datasourceInUse {
			t.Error("its datasource is not the dashboard's variable")
		}
	})
}

// What somebody else has measured must not be taken for what oneway has.
func TestEveryTextSaysThatItIsNotMeasuredHere(t *testing.T) {
	eachPanel(t, func(t *testing.T, p dashboard.Panel) {
		if p.Type != "text" {
			return
		}
		text, err := json.Marshal(p.Options)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "Not measured here") {
			t.Errorf("a text that does not say whose figures it has: %s", text)
		}
	})
}

// Grafana does not load a panel that overrides nothing of a field.
func TestNoOverrideIsEmpty(t *testing.T) {
	eachPanel(t, func(t *testing.T, p dashboard.Panel) {
		if p.FieldConfig == nil {
			return
		}
		for _, o := range p.FieldConfig.Overrides {
			if len(o.Properties) == 0 {
				t.Errorf("override of %v has no properties", o.Matcher.Options)
			}
		}
	})
}

// Where a number is good and where it is not is what the clocks' page is for, and those of
// load tests; a curve over a label has none, since its axis is no judgment.
func TestEveryPanelOfClocksAndLoadTestsHasThresholds(t *testing.T) {
	eachPanel(t, func(t *testing.T, p dashboard.Panel) {
		if strings.Contains(t.Name(), "/path.json/") || p.Type == "text" || p.Type == "trend" {
			return
		}
		if p.FieldConfig == nil || p.FieldConfig.Defaults.Thresholds == nil {
			t.Error("no thresholds")
		}
	})
}

// A link keeps agent, path and time only where both pages name their variables alike.
func TestPagesLeadToEachOther(t *testing.T) {
	uids := map[string]string{}
	for name, b := range boards() {
		board, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		uids[name] = *board.Uid
	}
	for name, others := range map[string][]string{
		"path.json":     {"clock.json", "load.json", "capacity.json"},
		"clock.json":    {"path.json"},
		"load.json":     {"path.json", "capacity.json"},
		"capacity.json": {"path.json", "load.json"},
	} {
		board, err := boards()[name].Build()
		if err != nil {
			t.Fatal(err)
		}
		for _, other := range others {
			if !slices.ContainsFunc(board.Links, func(l dashboard.DashboardLink) bool {
				return l.Url != nil && *l.Url == "/d/"+uids[other] && l.KeepTime && l.IncludeVars
			}) {
				t.Errorf("%s has no link to %s that keeps variables and time", name, other)
			}
		}
		var names []string
		for _, v := range board.Templating.List {
			names = append(names, v.Name)
		}
		want := "datasource job instance path"
		if name == "clock.json" {
			want = "datasource job instance"
		}
		if got := strings.Join(names, " "); !strings.HasPrefix(got, want) {
			t.Errorf("%s: variables are %q, want them to begin with %q", name, got, want)
		}
		// What is a probe of one kind on one page must not be chosen on another by a link.
		if slices.Contains(names, metric.Probe) != (name == "path.json") {
			t.Errorf("%s: variables are %q: only the page Path may call one %q", name, names, metric.Probe)
		}
	}
}

func TestEveryTileSaysHowItIsLaidOut(t *testing.T) {
	eachPanel(t, func(t *testing.T, p dashboard.Panel) {
		text, err := json.Marshal(p.Options)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), `"orientation":""`) {
			t.Error(`orientation "": Grafana shows the first value only`)
		}
	})
}

func TestDashboardsCanBeProvisioned(t *testing.T) {
	for name, b := range boards() {
		text, err := render(b)
		if err != nil {
			t.Fatal(err)
		}
		for _, bad := range []string{"__inputs", `"editable": true`, "${DS_"} {
			if strings.Contains(string(text), bad) {
				t.Errorf("%s: %s: only an import by hand resolves it, or an edit is lost", name, bad)
			}
		}
		var board boardJSON
		if err := json.Unmarshal(text, &board); err != nil {
			t.Fatal(err)
		}
		if board.Uid == nil || *board.Uid == "" {
			t.Errorf("%s: no uid, so that no link to it lasts", name)
		}
		ids := map[uint32]bool{}
		for _, p := range board.Panels {
			if p.Panel != nil && (p.Panel.Id == nil || ids[*p.Panel.Id]) {
				t.Errorf("%s: panel %q has no id of its own", name, *p.Panel.Title)
			} else if p.Panel != nil {
				ids[*p.Panel.Id] = true
			}
		}
	}
}

func TestProvisionedDatasourceIsTheOneThatTheDashboardsAskFor(t *testing.T) {
	text, err := os.ReadFile("provisioning/datasources/oneway.yml")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "uid: "+prometheusUID+"\n") {
		t.Errorf("provisioning/datasources/oneway.yml has no datasource with uid %s", prometheusUID)
	}
}

// What Grafana makes of the file, with the variables of its environment filled in, is a
// link from the label that our exemplars have to where the agent serves the run's report.
func TestExemplarsLeadToTheReportOfTheirRun(t *testing.T) {
	text, err := os.ReadFile("provisioning/datasources/oneway.yml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Datasources []struct {
			UID, URL string
			JSONData struct {
				Destinations []struct{ Name, URL string } `yaml:"exemplarTraceIdDestinations"`
			} `yaml:"jsonData"`
		}
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	// Grafana fills in the variables of its environment in each value, and takes $$ for a
	// dollar (pkg/services/provisioning/values).
	environment := map[string]string{"ONEWAY_AGENT_URL": "http://a.example:9862", "ONEWAY_PROMETHEUS_URL": "http://p.example:9090"}
	filled := func(value string) string {
		parts := strings.Split(value, "$$")
		for i := range parts {
			parts[i] = os.Expand(parts[i], func(name string) string {
				if _, known := environment[name]; !known {
					t.Errorf("the file asks for ${%s}, of which the README says nothing", name)
				}
				return environment[name]
			})
		}
		return strings.Join(parts, "$")
	}
	if len(file.Datasources) != 1 || file.Datasources[0].UID != prometheusUID || filled(file.Datasources[0].URL) != "http://p.example:9090" {
		t.Fatalf("%+v", file)
	}
	got := file.Datasources[0].JSONData.Destinations
	if len(got) != 1 || got[0].Name != metric.RunIDL || filled(got[0].URL) != "http://a.example:9862/runs/${__value.raw}" {
		t.Errorf("%+v, want a link from %s to /runs/ID", got, metric.RunIDL)
	}
}

// An exemplar is shown by the queries that ask for it.
func TestExemplarsOfRunsAreShown(t *testing.T) {
	shown := false
	eachPanel(t, func(_ *testing.T, p dashboard.Panel) {
		for _, target := range p.Targets {
			q, ok := target.(prometheus.Dataquery)
			shown = shown || ok && q.Exemplar != nil && *q.Exemplar && strings.Contains(q.Expr, metric.LoadedDelay.Name+"_bucket")
		}
	})
	if !shown {
		t.Errorf("no query of the buckets of %s asks for exemplars", metric.LoadedDelay.Name)
	}
}

// The bound of a window is that of its own median, and of no other: not of one of several
// windows, which the rules record.
func TestABoundIsDrawnAroundTheMedianOfItsOwnWindow(t *testing.T) {
	seen := 0
	eachPanel(t, func(t *testing.T, p dashboard.Panel) {
		for _, target := range p.Targets {
			q, ok := target.(prometheus.Dataquery)
			if !ok || !strings.Contains(q.Expr, metric.DelayErrorBound.Name+"{") || !strings.Contains(q.Expr, "quantile") {
				continue
			}
			seen++
			if !strings.Contains(q.Expr, metric.DelayQuantile.Name+"{") || strings.Contains(q.Expr, "oneway:") {
				t.Errorf("%s has a bound beside a median of other windows", q.Expr)
			}
		}
	})
	if seen < 7 {
		t.Errorf("saw %d queries of bound and median: fewer than there are", seen)
	}
}
