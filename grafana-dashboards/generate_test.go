package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
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

// Where a number is good and where it is not is what the clocks' page is for.
func TestEveryPanelOfTheClocksHasThresholds(t *testing.T) {
	eachPanel(t, func(t *testing.T, p dashboard.Panel) {
		if !strings.Contains(t.Name(), "/clock.json/") {
			return
		}
		if p.FieldConfig == nil || p.FieldConfig.Defaults.Thresholds == nil {
			t.Error("no thresholds")
		}
	})
}

// A link keeps agent and time only where both pages name their variables alike.
func TestPathAndClockLeadToEachOther(t *testing.T) {
	uids := map[string]string{}
	for name, b := range boards() {
		board, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		uids[name] = *board.Uid
	}
	for name, other := range map[string]string{"path.json": "clock.json", "clock.json": "path.json"} {
		board, err := boards()[name].Build()
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, l := range board.Links {
			if l.Url != nil && *l.Url == "/d/"+uids[other] {
				found = l.KeepTime && l.IncludeVars
			}
		}
		if !found {
			t.Errorf("%s has no link to %s that keeps variables and time", name, other)
		}
		var names []string
		for _, v := range board.Templating.List[:3] {
			names = append(names, v.Name)
		}
		if got, want := strings.Join(names, " "), "datasource job instance"; got != want {
			t.Errorf("%s: variables begin with %q, want %q", name, got, want)
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
