package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"oneway.example/exporter/agent/backtoback"
	"oneway.example/exporter/core/document"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/calibration"
	"oneway.example/exporter/probe/target"
	"oneway.example/exporter/probes/stamp"
	"oneway.example/tests/documents"
)

// calibrateDefaults are the flag values of kingpin, for a short run.
func calibrateDefaults() *calibrateFlags {
	f := &calibrateFlags{clock: clockFlags{source: "chrony"}}
	f.options.Stamp = stamp.DefaultOptions()
	f.options.Count, f.options.Stamp.Interval = 300, time.Millisecond
	return f
}

func runCalibrate(t *testing.T, f *calibrateFlags) string {
	t.Helper()
	var out, live bytes.Buffer
	if err := f.run(t.Context(), &out, &live); err != nil {
		t.Fatal(err)
	}
	if live.Len() > 0 {
		t.Errorf("a live line was written to an output that is not a terminal: %q", live.String())
	}
	return out.String()
}

func TestCalibratePrintsAnAlignedTable(t *testing.T) {
	out := runCalibrate(t, calibrateDefaults())
	figure, limit := ` +[0-9.e+]+ [µm]s +[0-9.e+]+ [µm]s *\n`, ` +± [0-9.]+ [µm]s +± [0-9.]+ [µm]s *\n`
	want := regexp.MustCompile(`^lo \(loopback, kernel timestamps\)\n +forward +reverse\n` +
		` *packets used +[23][0-9][0-9] +[23][0-9][0-9] *\n` +
		` *systematic \(median\)` + figure + ` *random \(95 %\)` + limit + ` *largest` + limit + `\n` +
		`one timestamp of lo: \S+ [µm]s systematic, removed from delays; ± \S+ [µm]s random\n` +
		`not stored; --output FILE stores it\n$`)
	if !want.MatchString(out) {
		t.Errorf("unexpected table:\n%s", out)
	}
	lines := strings.Split(out, "\n")
	for _, l := range lines[2:6] {
		if len([]rune(l)) != len([]rune(lines[1])) {
			t.Errorf("not aligned:\n%s", out)
		}
	}
}

func TestCalibrateStoresWhatItPrintsAsJSONAndKeepsOtherInterfaces(t *testing.T) {
	f := calibrateDefaults()
	f.output, f.json = filepath.Join(t.TempDir(), "calibration.json"), true
	var table calibration.Table
	other := calibration.Record{
		Interface: "eth7", Host: "h", Kernel: "k", At: "192.0.2.1:862", Date: time.Unix(1e9, 0), Setup: calibration.Peer,
		Origin: "kernel", PacketBytes: 1, Forward: calibration.Direction{Count: 200}, Reverse: calibration.Direction{Count: 200},
	}
	if err := errors.Join(table.Put(other), table.Save(f.output)); err != nil {
		t.Fatal(err)
	}
	var printed struct {
		Systematic *float64                      `json:"timestamp_systematic_error_seconds"`
		Random     *float64                      `json:"timestamp_random_error_seconds"`
		OfDelay    document.ByDirection[float64] `json:"delay_systematic_error_seconds"`
		Probe      struct {
			RoundTrips  stamp.RoundTrips `json:"round_trips"`
			SharedClock bool             `json:"shared_clock"`
		} `json:"probe"`
	}
	text := runCalibrate(t, f)
	documents.Valid(t, document.Calibration, []byte(text))
	if err := json.Unmarshal([]byte(text), &printed); err != nil {
		t.Fatal(err)
	}
	stored, err := calibration.Load(f.output)
	if err != nil {
		t.Fatal(err)
	}
	if r := stored.Records(); len(r) != 2 || r[0].Interface != "eth7" || r[1].Interface != "lo" {
		t.Fatalf("%+v", r)
	}
	if r := stored.Records()[1]; printed.OfDelay.Forward != r.Forward.Systematic.Seconds() || printed.OfDelay.Reverse != r.Reverse.Systematic.Seconds() {
		t.Errorf("printed %v, stored %+v", printed.OfDelay, r)
	}
	e, ok := stored.For("lo")
	if !ok || printed.Systematic == nil || *printed.Systematic != e.Systematic.Seconds() || *printed.Random != e.Random.Seconds() {
		t.Errorf("%+v, %+v", printed, e)
	}
	if printed.Probe.RoundTrips.Received == 0 || !printed.Probe.SharedClock {
		t.Errorf("%+v", printed.Probe)
	}
}

func TestCalibrateTrustedIsStoredAsSuch(t *testing.T) {
	f := calibrateDefaults()
	f.output, f.options.Trust = filepath.Join(t.TempDir(), "calibration.json"), true
	f.options.Count, f.options.Stamp.Interval = 4000, 500*time.Microsecond
	if out := runCalibrate(t, f); !strings.Contains(out, "\ntrusted: error bounds of delays include ") || !strings.HasSuffix(out, "stored in "+f.output+"\n") {
		t.Error(out)
	}
	table, err := calibration.Load(f.output)
	if err != nil {
		t.Fatal(err)
	}
	if e, ok := table.For("lo"); !ok || !e.Trusted || e.Largest < e.Systematic {
		t.Errorf("%+v", e)
	}
}

func TestCalibrateNeverOverwritesAFileThatItCannotRead(t *testing.T) {
	f := calibrateDefaults()
	f.output = filepath.Join(t.TempDir(), "calibration.json")
	if err := os.WriteFile(f.output, []byte("my diary"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, live bytes.Buffer
	err := f.run(t.Context(), &out, &live)
	if _, usage := errors.AsType[usageError](err); err == nil || usage || !strings.Contains(err.Error(), "move the file away") {
		t.Error(err)
	}
	if text, err := os.ReadFile(f.output); err != nil || string(text) != "my diary" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestInterruptedCalibrateStoresNothing(t *testing.T) {
	f := calibrateDefaults()
	f.output = filepath.Join(t.TempDir(), "calibration.json")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, live bytes.Buffer
	if err := f.run(ctx, &out, &live); !errors.Is(err, context.Canceled) || out.Len() > 0 {
		t.Errorf("%v, %q", err, out.String())
	}
	if _, err := os.Stat(f.output); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func TestCalibrateOverVeth(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED, NOT PASSED: a veth pair needs root")
	}
	f := calibrateDefaults()
	f.veth = true
	if out := runCalibrate(t, f); !strings.Contains(out, "oneway0 (veth, kernel timestamps)") {
		t.Error(out)
	}
}

func TestCalibrateWithoutAReplyGivesAdvice(t *testing.T) {
	f := calibrateDefaults()
	f.clock.source = "none"
	f.options.Peer, f.options.Count, f.options.Stamp.LossTimeout = "127.0.0.1:9", 200, 50*time.Millisecond
	var out, live bytes.Buffer
	err := f.run(t.Context(), &out, &live)
	if _, usage := errors.AsType[usageError](err); usage || !errors.Is(err, probe.ErrNoReply) || !strings.Contains(err.Error(), "oneway reflect") {
		t.Error(err)
	}
}

func TestCalibrateErrorsStateTheExpectation(t *testing.T) {
	for want, change := range map[string]func(*calibrateFlags){
		"--veth and --peer exclude each other":                     func(f *calibrateFlags) { f.veth, f.options.Peer = true, "h" },
		"--key-file, --local and --hardware are for --peer":        func(f *calibrateFlags) { f.options.Stamp.Hardware = "eth0" },
		"--veth with --output needs --interface":                   func(f *calibrateFlags) { f.veth, f.output = true, "f" },
		"--count is 1000001; it must be between 200 and":           func(f *calibrateFlags) { f.options.Count = 1_000_001 },
		"--count is 10; it must be between 200 and 1000000":        func(f *calibrateFlags) { f.options.Count = 10 },
		"--count is 300; trust needs at least 3000":                func(f *calibrateFlags) { f.options.Trust = true },
		"--true-delay is -1s; it must be between 0s and 1s":        func(f *calibrateFlags) { f.options.TrueDelay = -time.Second },
		`--interface is "eth7", but packets to 127.0.0.1 pass "lo`: func(f *calibrateFlags) { f.options.Interface = "eth7" },
		"--interval is 1h0m1s":                                     func(f *calibrateFlags) { f.options.Stamp.Interval = time.Hour + time.Second },
		"--payload-bytes is 20":                                    func(f *calibrateFlags) { f.options.Stamp.Size = 20 },
	} {
		f := calibrateDefaults()
		change(f)
		var out, live bytes.Buffer
		err := f.run(t.Context(), &out, &live)
		if _, usage := errors.AsType[usageError](err); !usage || !strings.HasPrefix(err.Error(), want) || out.Len() > 0 {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestCalibrateCommandAcceptsItsFlags(t *testing.T) {
	app := kingpin.New("oneway", "")
	calibrateCommand(app)
	if _, err := app.ParseContext([]string{
		"calibrate", "--peer", "h:862", "--interface", "eth0", "--true-delay", "2us", "--count", "3000", "--interval", "5ms", "--payload-bytes", "100",
		"--loss-timeout", "1s", "--trust", "--output", "f", "--json", "--key-file", "k", "--local", "192.0.2.1", "--hardware", "eth0", "--clock", "static",
	}); err != nil {
		t.Error(err)
	}
}

// The settings of a calibration are its options by their keys, which come before options of the sender with the same key.
func TestCalibrationSettingsAreItsOptions(t *testing.T) {
	f := &calibrateFlags{options: backtoback.Options{
		Setup: calibration.Veth, Interface: "eth0", Count: 7, TrueDelay: 2 * time.Microsecond, Trust: true, Stamp: stamp.Options{Options: target.Options{Interface: "lo"}},
	}}
	settings := f.document(t.Context(), nil, nil).Settings
	own := option.Settings(&f.options)
	for name, want := range own {
		if settings[name] != want {
			t.Errorf("%s is %v, want %v", name, settings[name], want)
		}
	}
	for _, d := range option.All(&f.options) {
		if own[d.Key+option.UnitOf(d.Key, d.Type())] == nil {
			t.Errorf("%q has no %s", own, d.Key)
		}
	}
	if own["setup"] != calibration.Veth || settings["interface"] != "eth0" {
		t.Errorf("%q", settings)
	}
}
