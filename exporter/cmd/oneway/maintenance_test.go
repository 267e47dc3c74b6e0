package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/agent"
	"oneway.example/exporter/agent/linklease"
	"oneway.example/exporter/agent/maintenance"
	"oneway.example/exporter/core/document"
	"oneway.example/exporter/core/metric/metrictest"
	"oneway.example/exporter/probe/link"
	"oneway.example/tests/await"
	"oneway.example/tests/documents"
)

// workSocket is the socket of a server with a book of windows, without an agent.
func workSocket(t *testing.T) string {
	t.Helper()
	book := maintenance.New(maintenance.Options{})
	socket := filepath.Join(t.TempDir(), "s")
	s := linklease.NewServer(linklease.Options{
		Socket: socket, Links: link.NewTable(nil), Sink: &metrictest.Sink{}, Log: slog.New(slog.DiscardHandler),
		Handlers: map[string]func(json.RawMessage) (any, error){
			agent.OpMaintenanceAdd: func(body json.RawMessage) (any, error) {
				var w maintenance.Window
				if err := json.Unmarshal(body, &w); err != nil {
					return nil, err
				}
				added, err := book.Add(w)
				return agent.MaintenanceAdded{Window: added, Selected: 2}, err
			},
			agent.OpMaintenanceList: func(json.RawMessage) (any, error) { return book.List(), nil },
			agent.OpMaintenanceEnd: func(body json.RawMessage) (any, error) {
				var which agent.MaintenanceID
				if err := json.Unmarshal(body, &which); err != nil {
					return nil, err
				}
				return book.End(which.ID)
			},
		},
	})
	ended := make(chan error, 1)
	go func() { ended <- s.Run(t.Context()) }()
	t.Cleanup(func() {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	f := &maintenanceFlags{socket: socket}
	await.That(t, "the socket", func() bool { return f.list(t.Context(), &bytes.Buffer{}) == nil })
	return socket
}

// The windows of the configuration have no ID.
func TestExampleOfTheListPrintsIDs(t *testing.T) {
	program := regexp.MustCompile(`jq -r '([^']+)'`).FindStringSubmatch(maintenanceListHelp)[1]
	var text bytes.Buffer
	windows := []maintenance.Entry{{Open: true, Configured: true}, {Window: maintenance.Window{ID: "m1"}, Open: true}, {Window: maintenance.Window{ID: "m2"}}}
	if err := printed(&text, maintenanceDocument{document.New(document.Maintenance), windows}, nil); err != nil {
		t.Fatal(err)
	}
	jq := exec.CommandContext(t.Context(), "jq", "-r", program)
	jq.Stdin = &text
	if out, err := jq.CombinedOutput(); err != nil || string(out) != "m1\n" {
		t.Errorf("%q, %v", out, err)
	}
}

func TestMaintenanceIsAddedListedAndEnded(t *testing.T) {
	socket := workSocket(t)
	var out bytes.Buffer
	run := func(f *maintenanceFlags, do func(*maintenanceFlags) error) string {
		t.Helper()
		out.Reset()
		f.socket = socket
		if err := do(f); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	list := func(f *maintenanceFlags) error { return f.list(t.Context(), &out) }
	add := func(f *maintenanceFlags) error { return f.add(t.Context(), &out) }
	if got := run(&maintenanceFlags{}, list); got != "No maintenance is planned.\n" {
		t.Errorf("without a window: %s", got)
	}
	got := run(&maintenanceFlags{length: 2 * time.Hour, window: maintenance.Window{Selection: maintenance.Selection{Paths: []string{"berlin-*"}}, Reason: "new router"}}, add)
	if !strings.HasPrefix(got, "Window m1: path berlin-*, ") || !strings.Contains(got, "(2 paths selected)") || !strings.Contains(got, "no state_dir") || !strings.Contains(got, "oneway maintenance end --agent-socket="+socket+" m1") {
		t.Errorf("added: %s", got)
	}
	run(&maintenanceFlags{weekly: []string{"sun 02:00-04:00"}, window: maintenance.Window{Selection: maintenance.Selection{All: true}, Reason: "updates"}}, add)
	got = run(&maintenanceFlags{}, list)
	for _, want := range []string{"  id  now ", "  m1  until ", "path berlin-*", "new router", "  m2  ", "sun 02:00-04:00", "all paths"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	text := run(&maintenanceFlags{json: true}, list)
	documents.Valid(t, document.Maintenance, []byte(text))
	var d maintenanceDocument
	if err := json.Unmarshal([]byte(text), &d); err != nil || len(d.Windows) != 2 || d.Windows[0].ID != "m1" || !d.Windows[0].Open || d.Windows[1].Weekly[0].String() != "sun 02:00-04:00" {
		t.Errorf("%v\n%s", err, text)
	}
	got = run(&maintenanceFlags{id: "m1"}, func(f *maintenanceFlags) error { return f.end(t.Context(), &out) })
	if got != "Window m1 has ended: path berlin-* (new router).\n" {
		t.Errorf("ended: %s", got)
	}
	if got = run(&maintenanceFlags{}, list); strings.Contains(got, "m1") || !strings.Contains(got, "m2") {
		t.Errorf("after the end:\n%s", got)
	}
}

func TestWrongMaintenanceIsUsage(t *testing.T) {
	all := maintenance.Selection{All: true}
	for want, f := range map[string]maintenanceFlags{
		"--path, --peer, --link, --site or --all":     {length: time.Hour, window: maintenance.Window{Reason: "x"}},
		"the end is missing":                          {window: maintenance.Window{Selection: all, Reason: "x"}},
		"--from is \"tomorrow\"":                      {from: "tomorrow", length: time.Hour, window: maintenance.Window{Selection: all, Reason: "x"}},
		"one of them is enough":                       {to: "2026-12-01T22:00:00Z", length: time.Hour, window: maintenance.Window{Selection: all, Reason: "x"}},
		"--for is given beside --weekly":              {length: time.Hour, weekly: []string{"sun"}, window: maintenance.Window{Selection: all, Reason: "x"}},
		"more than 31 days":                           {length: 1000 * time.Hour, window: maintenance.Window{Selection: all, Reason: "x"}},
		"--to is 2020-01-01T01:00:00Z, which is past": {from: "2020-01-01T00:00:00Z", to: "2020-01-01T01:00:00Z", window: maintenance.Window{Selection: all, Reason: "x"}},
		`--weekly is "sunny"`:                         {weekly: []string{"sunny"}, window: maintenance.Window{Selection: all, Reason: "x"}},
	} {
		err := f.add(t.Context(), &bytes.Buffer{})
		if _, usage := errors.AsType[usageError](err); !usage || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %s", err, want)
		}
	}
}

func TestMaintenanceWithoutAnAgentSaysWhatToDo(t *testing.T) {
	f := maintenanceFlags{socket: filepath.Join(t.TempDir(), "s")}
	if err := f.list(t.Context(), &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "no agent of this host can be asked: there is no "+f.socket) {
		t.Errorf("error is %v", err)
	}
}
