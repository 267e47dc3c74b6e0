package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/document"
	"oneway.example/exporter/serve/historyreport"
	"oneway.example/tests/documents"
)

// delays is a CSV file of four weeks of hours of two access networks; one is slower by a fifth.
func delays(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	text.WriteString("time,value,access\n")
	for i := range 28 * 24 {
		fmt.Fprintf(&text, "%d,%.6f,umts\n%d,%.6f,wifi\n", 1767571200+3600*i, 0.024+0.0001*float64(i*i%7), 1767571200+3600*i, 0.02+0.0001*float64(i*i%11))
	}
	name := filepath.Join(t.TempDir(), "delays.csv")
	if err := os.WriteFile(name, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func historyOf(t *testing.T) historyFlags {
	t.Helper()
	return historyFlags{measure: "delay", from: "2026-01-01", to: "2026-03-01", zone: "UTC", margin: 10, loss: 0.1, seed: 1, csv: delays(t)}
}

func TestTrendsPrintsASentenceForEachResult(t *testing.T) {
	f := &trendsFlags{historyFlags: historyOf(t), labels: "access=umts", busy: "18-22"}
	var out bytes.Buffer
	if err := f.run(t.Context(), &out, time.Now()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"access=umts, delay p50: median 24.", "n = 672 on 28 days", "\n  time of day: explains ", ": equal within 10 %", "\n  trend: ", "\n  no change of the level is shown\n", "seed 1; times and hours in UTC."} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, &out)
		}
	}
	if strings.Contains(out.String(), "wifi") {
		t.Error("the labels select nothing")
	}
}

// The document has what was selected, and a reason of its own for what the store does not have.
func TestDocumentsOfHistoriesSayWhatWasSelected(t *testing.T) {
	for value, reason := range map[string]string{"umts": "ok", "lte": reasonNotFound} {
		f := &trendsFlags{historyFlags: historyOf(t), labels: "access=" + value, direction: "", busy: "18-22"}
		f.json = jsonFlag{full: true}
		var out bytes.Buffer
		err := f.run(t.Context(), &out, time.Now())
		var d trendsDocument
		documents.Valid(t, document.Trends, out.Bytes())
		if wrong := json.Unmarshal(out.Bytes(), &d); wrong != nil || d.Reason != reason || (err == nil) != (reason == "ok") {
			t.Errorf("reason %q, error %v, %v", d.Reason, err, wrong)
		}
		if _, given := d.Settings["direction"]; d.Settings["labels"] != "access="+value || d.Settings["busy_hours"] != "18-22" || given {
			t.Errorf("settings %v", d.Settings)
		}
	}
}

// The file is replaced by verdicts, and kept where reading fails.
func TestVerdictsAreWrittenAsSeries(t *testing.T) {
	name := filepath.Join(t.TempDir(), "oneway.prom")
	run := func(labels string) error {
		f := &trendsFlags{historyFlags: historyOf(t), labels: labels, busy: "18-22"}
		f.metrics = name
		return f.run(t.Context(), io.Discard, time.Now())
	}
	if err := run("access=umts"); err != nil {
		t.Fatal(err)
	}
	if err := run("access=lte"); err == nil {
		t.Error("no history, and no error")
	}
	text, err := os.ReadFile(name)
	if err != nil || !strings.Contains(string(text), "\noneway_trend_outcome{measure=\"delay\",about=\"hours\"} 0\n") {
		t.Errorf("%v: %s", err, text)
	}
	c := &compareFlags{historyFlags: historyOf(t), a: "access=umts", b: "access=wifi"}
	c.metrics = name
	if err := c.run(t.Context(), io.Discard, time.Now()); err != nil {
		t.Fatal(err)
	}
	if text, err = os.ReadFile(name); err != nil || !strings.Contains(string(text), "oneway_compare_outcome{conditions=\"access=umts against access=wifi\",measure=\"delay\"} ") {
		t.Errorf("%v: %s", err, text)
	}
	c.metrics = filepath.Join(name, "x.prom")
	var out bytes.Buffer
	if err := c.run(t.Context(), &out, time.Now()); err == nil || !strings.Contains(err.Error(), "--metrics: ") || !strings.Contains(out.String(), "umts") {
		t.Errorf("a file that cannot be written: %v, printed %q", err, &out)
	}
}

// The zone of this host has its name, and the hours of Prometheus are of the agents.
func TestTrendsNameTheZones(t *testing.T) {
	f := historyOf(t)
	if f.zone = ""; f.zoneName() == "" || f.zoneName() == "Local" || f.zones() != "times and hours in "+f.zoneName() {
		t.Errorf("%q, %q", f.zoneName(), f.zones())
	}
	f.csv, f.zone = "", "Asia/Seoul"
	for _, c := range []struct {
		of    historyFlags
		local bool
	}{
		{historyFlags{measure: "delay"}, true},
		{historyFlags{measure: "delay", influx: "http://127.0.0.1:8086"}, false},
		{historyFlags{measure: "delay", influx: "http://127.0.0.1:8086", place: "the rows of hours (oneway_hour)"}, true},
		{historyFlags{measure: "throughput", influx: "http://127.0.0.1:8086"}, true},
		{historyFlags{measure: "throughput", csv: "runs.csv"}, false},
	} {
		c.of.measured, _ = historyreport.MeasureByName(c.of.measure)
		if got := c.of.zones(); strings.Contains(got, "of each agent") != c.local {
			t.Errorf("%+v: %s, want hours of the agent: %v", c.of, got, c.local)
		}
	}
	if want := "times in Asia/Seoul; hours, kinds of days and months in the local time of each agent"; f.zones() != want || f.settings()["timezone"] != "Asia/Seoul" {
		t.Errorf("%q, want %q", f.zones(), want)
	}
}

func TestCompareFindsTheDifference(t *testing.T) {
	for _, f := range []compareFlags{{a: "access=umts", b: "access=wifi"}, {by: "access"}} {
		f.historyFlags = historyOf(t)
		var out bytes.Buffer
		if err := f.run(t.Context(), &out, time.Now()); err != nil {
			t.Fatal(err)
		}
		if text := out.String(); !strings.Contains(text, "access=umts against access=wifi: 24.2 ms and 20.4 ms") || !strings.Contains(text, "differs by at least ") || !strings.Contains(text, "672 pairs of the same hour") {
			t.Error(text)
		}
	}
	periods := compareFlags{historyFlags: historyOf(t), labels: "access=wifi", aFrom: "2026-01-05", aTo: "2026-01-19", bFrom: "2026-01-19", bTo: "2026-02-02"}
	periods.from, periods.to, periods.json.full = "", "", true
	var out bytes.Buffer
	if err := periods.run(t.Context(), &out, time.Now()); err != nil || !strings.Contains(out.String(), `"outcome": "equal"`) || !strings.Contains(out.String(), `"schema": "oneway/compare/1"`) {
		t.Error(err, out.String())
	}
	documents.Valid(t, document.Compare, out.Bytes())
	var d compareDocument
	if err := json.Unmarshal(out.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]any{
		"a_from": "2026-01-05T00:00:00Z", "a_to": "2026-01-19T00:00:00Z", "b_from": "2026-01-19T00:00:00Z", "b_to": "2026-02-02T00:00:00Z",
		"from": nil, "to": nil, "labels": "access=wifi", // nil: absent
	} {
		if got := d.Settings[name]; got != want {
			t.Errorf("setting %s is %v, want %v", name, got, want)
		}
	}
}

func TestHistoryFlagsAreChecked(t *testing.T) {
	for want, change := range map[string]func(f *compareFlags){
		"one of these is required":                          func(*compareFlags) {},
		`--a: "umts" is no condition`:                       func(f *compareFlags) { f.a, f.b = "umts", "access=wifi" },
		"--a-from and --a-to are required together":         func(f *compareFlags) { f.from, f.to, f.aFrom = "", "", "2026-01-05" },
		`--timezone is "Local"`:                             func(f *compareFlags) { f.zone = "Local" },
		`--timezone is "Berlin"`:                            func(f *compareFlags) { f.zone = "Berlin" },
		"--margin is 0":                                     func(f *compareFlags) { f.margin = 0 },
		"--from is 2026-01-01T00:00:00Z; it must be before": func(f *compareFlags) { f.to = "2025-01-01" },
		"--measure=loss needs the packets":                  func(f *compareFlags) { f.measure = "loss" },
		"exclude each other":                                func(f *compareFlags) { f.by, f.influx = "access", "http://127.0.0.1:1" },
		"--a and --b are both access=umts":                  func(f *compareFlags) { f.a, f.b = "access=umts", "access=umts" },
		`--metrics is "verdicts.txt"`:                       func(f *compareFlags) { f.by, f.metrics = "access", "verdicts.txt" },
		// Flags without an effect.
		"they and --a-from, --a-to, --b-from and --b-to exclude": func(f *compareFlags) {
			f.aFrom, f.aTo, f.bFrom, f.bTo = "2026-01-05", "2026-01-19", "2026-01-19", "2026-02-02"
		},
		"--direction and direction=reverse in --labels":              func(f *compareFlags) { f.by, f.direction, f.labels = "access", "forward", "direction=reverse" },
		"--a has site=x, and both conditions must have site=y":       func(f *compareFlags) { f.a, f.b, f.labels = "access=umts,site=x", "access=wifi", "site=y" },
		"--influxdb.token-file is given without --influxdb.url":      func(f *compareFlags) { f.by, f.token = "access", "token" },
		"--influxdb.database is given without --influxdb.url":        func(f *compareFlags) { f.by, f.database = "access", "other" },
		"--loss-margin is given without --measure=loss":              func(f *compareFlags) { f.by, f.loss = "access", 5 },
		"--margin is given with --measure=loss":                      func(f *compareFlags) { f.by, f.csv, f.measure, f.margin = "access", "", "loss", 5 },
		"--csv.value is given without --csv":                         func(f *compareFlags) { f.by, f.csv, f.valueColumn = "access", "", "delay" },
		"--prometheus.bearer-file is given without --prometheus.url": func(f *compareFlags) { f.by, f.server.bearer = "access", "token" },
	} {
		f := &compareFlags{historyFlags: historyOf(t)}
		change(f)
		err := f.run(t.Context(), &bytes.Buffer{}, time.Now())
		if _, usage := errors.AsType[usageError](err); !usage || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	f := &trendsFlags{historyFlags: historyOf(t), busy: "18-22", path: "a", labels: "path=b"}
	if err := f.run(t.Context(), &bytes.Buffer{}, time.Now()); err == nil || !strings.Contains(err.Error(), "--path and path=b in --labels exclude each other") {
		t.Error(err)
	}
	for _, hours := range []string{"", "18", "18-18", "24-3", "a-b", "-1-3"} {
		f := &trendsFlags{historyFlags: historyOf(t), busy: hours}
		if err := f.run(t.Context(), &bytes.Buffer{}, time.Now()); err == nil || !strings.Contains(err.Error(), "--busy-hours is") {
			t.Errorf("%q: %v", hours, err)
		}
	}
}
