package agent

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/agent/linklease"
	"oneway.example/exporter/agent/maintenance"
	"oneway.example/exporter/core/metric"
	"oneway.example/tests/await"
)

// workPaths are paths of two sites; the first has two links.
const workPaths = `clock: {source: none}
paths:
  - {name: a, peer: "probe.hamburg.example.net:8620", link: [uplink, lab], labels: {site: hamburg}, probes: [{type: fake}]}
  - {name: b, peer: probe.seoul.example.net, labels: {site: seoul}, probes: [{type: fake}]}
`

// plannedEnd is the published end of the maintenance of a path.
func (r *rig) plannedEnd(path string) float64 {
	v, _ := r.value(metric.PathMaintenance.Name, path, "fake")
	return v
}

// TestConfiguredMaintenanceIsInSeriesAndStatus, of the selected paths only, and a reload changes it.
func TestConfiguredMaintenanceIsInSeriesAndStatus(t *testing.T) {
	from, to := time.Now().Add(-time.Hour).UTC().Truncate(time.Second), time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	times := "from: " + from.Format(time.RFC3339) + ", to: " + to.Format(time.RFC3339)
	for selection, want := range map[string][3]bool{ // a, b, the agent
		"sites: [hamburg]":                   {true, false, false},
		"paths: '?'":                         {true, true, false},
		"peers: [probe.seoul.example.net]":   {false, true, false},
		"peers: [probe.hamburg.example.net]": {true, false, false},
		"links: lab":                         {true, false, false},
		"all: true":                          {true, true, true},
	} {
		t.Run(selection, func(t *testing.T) {
			r := newRig(t, newFake(), workPaths+"maintenance: [{"+selection+", "+times+", reason: new router}]\n")
			await.That(t, "the series", func() bool {
				agent, _ := r.value(metric.AgentMaintenance.Name)
				return (r.plannedEnd("a") == float64(to.Unix())) == want[0] && (r.plannedEnd("b") == float64(to.Unix())) == want[1] && (agent == float64(to.Unix())) == want[2]
			})
			for i, p := range r.Status().Paths {
				if m := p.Maintenance; (m != nil) != want[i] || m != nil && (m.Reason != "new router" || !m.Until.Equal(to)) {
					t.Errorf("path %s has the maintenance %+v, want %v", p.Name, m, want[i])
				}
			}
			if all := r.Status().Maintenance; len(all) != 1 || !all[0].Open || !all[0].Configured {
				t.Errorf("the windows are %+v", all)
			}
			r.write("version: 1\n" + workPaths)
			if err := r.Reload(); err != nil {
				t.Fatal(err)
			}
			if _, found := r.value(metric.PathMaintenance.Name, "a", "fake"); found || len(r.Status().Maintenance) != 0 {
				t.Error("the maintenance goes on after a reload without it")
			}
		})
	}
}

// TestOperatorsAddListAndEndMaintenance over the socket; the window survives a restart.
func TestOperatorsAddListAndEndMaintenance(t *testing.T) {
	dir := t.TempDir()
	r := newRig(t, newFake(), "state_dir: "+dir+"\n"+workPaths)
	ask := func(op string, body, found any) error {
		t.Helper()
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.shared.work.handlers(r.selectable)[op](text)
		if err != nil {
			return err
		}
		if text, err = json.Marshal(got); err != nil {
			t.Fatal(err)
		}
		return json.Unmarshal(text, found)
	}
	var added MaintenanceAdded
	w := maintenance.Window{Selection: maintenance.Selection{Sites: []string{"seoul"}}, To: time.Now().Add(time.Hour), Reason: "new fiber"}
	if err := ask(OpMaintenanceAdd, w, &added); err != nil || added.Selected != 1 || !added.Stored || added.ID == "" {
		t.Fatalf("%+v, %v", added, err)
	}
	if r.plannedEnd("b") == 0 || r.plannedEnd("a") != 0 {
		t.Errorf("a until %v, b until %v at once", r.plannedEnd("a"), r.plannedEnd("b"))
	}
	for want, wrong := range map[string]any{
		"no such path: site busan": maintenance.Window{Selection: maintenance.Selection{Sites: []string{"busan"}}, To: w.To, Reason: "x"},
		"selects nothing":          maintenance.Window{To: w.To, Reason: "x"},
		"reason is":                maintenance.Window{Selection: w.Selection, To: w.To},
		"unknown":                  map[string]any{"path": "a"},
	} {
		if err := ask(OpMaintenanceAdd, wrong, &added); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error is %v, want %s in one line", err, want)
		}
	}
	r.stop()
	again := newRig(t, newFake(), "state_dir: "+dir+"\n"+workPaths)
	await.That(t, "the window after a restart", func() bool { return again.plannedEnd("b") != 0 })
	r = again
	var all []maintenance.Entry
	if err := ask(OpMaintenanceList, struct{}{}, &all); err != nil || len(all) != 1 || !all[0].Open || all[0].Reason != "new fiber" {
		t.Fatalf("%+v, %v", all, err)
	}
	var ended maintenance.Window
	if err := ask(OpMaintenanceEnd, MaintenanceID{"m99"}, &ended); err == nil || !strings.Contains(err.Error(), all[0].ID) {
		t.Errorf("error is %v", err)
	}
	if err := ask(OpMaintenanceEnd, MaintenanceID{all[0].ID}, &ended); err != nil {
		t.Fatal(err)
	}
	if _, found := r.value(metric.PathMaintenance.Name, "b", "fake"); found {
		t.Error("the series goes on after the end")
	}
}

// TestSocketOfTheAgentTakesMaintenance: it has the permissions of leases.
func TestSocketOfTheAgentTakesMaintenance(t *testing.T) {
	socket := t.TempDir() + "/s"
	newRigWith(t, newFake(), workPaths, func(o *Options) { o.Socket = socket })
	var added MaintenanceAdded
	w := maintenance.Window{Selection: maintenance.Selection{Paths: []string{"*"}}, To: time.Now().Add(time.Hour), Reason: "new fiber"}
	await.That(t, "a window", func() bool {
		return linklease.Ask(t.Context(), socket, OpMaintenanceAdd, w, &added) == nil
	})
	if added.Selected != 2 || added.Stored {
		t.Errorf("%+v, want two paths, and no state_dir", added)
	}
	var all []maintenance.Entry
	if err := linklease.Ask(t.Context(), socket, OpMaintenanceList, struct{}{}, &all); err != nil || len(all) != 1 {
		t.Errorf("%+v, %v", all, err)
	}
	if err := linklease.Ask(t.Context(), socket, "unknown", struct{}{}, &all); err == nil || !strings.Contains(err.Error(), "version") {
		t.Errorf("an unknown operation: %v", err)
	}
}
