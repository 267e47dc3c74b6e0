package main

import (
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"oneway.example/exporter/core/option"
	"oneway.example/exporter/load/loadsession"
	"oneway.example/exporter/probe/target"
	"oneway.example/exporter/probes/saturation"
	"oneway.example/exporter/probes/sizesweep"
	"oneway.example/exporter/probes/tcpshort"
	"oneway.example/exporter/probes/tcpsweep"
	"oneway.example/exporter/probes/train"
)

// noFlag are keys of load-test probes without a flag, and the reason.
var noFlag = map[string]string{
	"every":       "one run has no calendar",
	"jitter":      "one run has no calendar",
	"windows":     "one run has no calendar",
	"load_server": "the argument HOST",
	"directions":  "--direction selects one or both",

	"elapsed_bins":  "one run exports no series",
	"elapsed_range": "one run exports no series",
}

func TestEachKeyOfALoadTestProbeHasAFlagOrAReason(t *testing.T) {
	shared := loadsession.DefaultOptions()
	for _, k := range testKinds() {
		app := kingpin.New("oneway", "")
		cmd := app.Command(k.word, "")
		registerOptions(cmd, k.flagOf, k.Own, k.AgentOwn)
		registerOptions(cmd, flagOf, &shared, &shared)
		for _, d := range append(option.All(k.Own), option.All(&shared)...) {
			flag := cmd.GetFlag(flagName(d.Key))
			if noFlag[d.Key] != "" != (flag == nil) {
				t.Errorf("%s: the key %s has the flag %v", k.word, d.Key, flag)
			}
			if d.Doc(flagOf) == "" || strings.ContainsAny(d.Doc(flagOf)+d.Meaning(flagOf), "{}") {
				t.Errorf("%s: --%s has the help %q", k.word, flagName(d.Key), d.Doc(flagOf))
			}
		}
		for _, o := range []option.Described{k.Own, &shared} {
			if missing := option.Undescribed(o); len(missing) > 0 {
				t.Errorf("%s: without description: %q", k.word, missing)
			}
		}
	}
}

// parse sets the options of a test from a command line.
func parse(t *testing.T, k testKind, args ...string) loadsession.Options {
	t.Helper()
	app, shared := kingpin.New("oneway", "").Terminate(nil), loadsession.DefaultOptions()
	registerOptions(app.Command(k.word, ""), k.flagOf, k.Own, k.AgentOwn)
	registerOptions(app.GetCommand(k.word), flagOf, &shared, &shared)
	if _, err := app.Parse(append([]string{k.word}, args...)); err != nil {
		t.Fatal(err)
	}
	return shared
}

func TestOmittedFlagsKeepTheDefaults(t *testing.T) {
	parsed := testKinds()
	for i, before := range testKinds() {
		word, shared := before.word, parse(t, parsed[i])
		if diff := cmp.Diff(before.Own, parsed[i].Own); diff != "" {
			t.Errorf("%s: options before and after:\n%s", word, diff)
		}
		if diff := cmp.Diff(loadsession.DefaultOptions(), shared, cmpopts.IgnoreUnexported(loadsession.Options{}, target.Addressing{})); diff != "" {
			t.Errorf("%s: shared options before and after:\n%s", word, diff)
		}
	}
}

func TestFlagsSetOptionsOfEachType(t *testing.T) {
	k := kindOf("saturation")
	shared := parse(t, k, "--mode=sweep", "--rate-forward=7Mbit", "--sweep-step=3s", "--sweep-factor=1.5", "--sweep-from-reverse=100kbit", "--idle-interval=10ms", "--together", "--dscp=46", "--max-wait=3m")
	s := k.Own.(*saturation.Options)
	want := saturation.DefaultOptions()
	want.Mode, want.Rate.Forward, want.Sweep.Step, want.Sweep.Factor, want.Sweep.From.Reverse = "sweep", 7e6/8, 3*time.Second, 1.5, 100e3/8
	want.Idle.Interval, want.Together = 10*time.Millisecond, true
	if diff := cmp.Diff(&want, s); diff != "" || shared.DSCP != 46 || shared.MaxWait != 3*time.Minute {
		t.Errorf("DSCP %d, wait %v, options:\n%s", shared.DSCP, shared.MaxWait, diff)
	}
	k = kindOf("size-sweep")
	parse(t, k, "--packet-bytes=64", "--packet-bytes=1500", "--seed=18446744073709551615")
	if m := k.Own.(*sizesweep.Options); !slices.Equal(m.PacketBytes, []int{64, 1500}) || m.Seed != 1<<64-1 {
		t.Errorf("%+v", m)
	}
	k = kindOf("tcp-sweep")
	parse(t, k, "--send-buffer-bytes=64KiB", "--send-buffer-bytes=auto", "--congestion-control=reno", "--congestion-control=cubic")
	if o := k.Own.(*tcpsweep.Options); !slices.Equal(o.SendBuffers, []tcpsweep.Size{64 << 10, 0}) || o.ReceiveBuffers != nil || len(o.CongestionControl) != 2 {
		t.Errorf("%+v", o)
	}
	k = kindOf("tcp-short")
	parse(t, k, "--flow-bytes=10kB", "--flow-bytes=2MB", "--flow-timeout=5s")
	if o := k.Own.(*tcpshort.Options); !slices.Equal(o.FlowBytes, []option.Bytes{10_000, 2_000_000}) || o.FlowTimeout != 5*time.Second {
		t.Errorf("%+v", o)
	}
	k = kindOf("train")
	parse(t, k, "--no-path-mtu", "--min-clean=4")
	if o := k.Own.(*train.Options); o.PathMTU || o.MinClean != 4 {
		t.Errorf("%+v", o)
	}
}

func TestErrorOfAnOptionNamesTheFlag(t *testing.T) {
	for key, want := range map[string]string{
		"packet_bytes[1]": "--packet-bytes", "idle.interval": "--idle-interval", "token_file": "--token-file", "path_minimum": "--path-minimum",
	} {
		if got := flagOf(key); got != want {
			t.Errorf("%s: %s, want %s", key, got, want)
		}
	}
}

// A command has no flag that its test ignores.
func TestUnusedOptionsHaveNoFlag(t *testing.T) {
	app := application()
	checked := 0
	for _, k := range testKinds() {
		for _, key := range k.Unused {
			checked++
			if app.GetCommand("test").GetCommand(k.word).GetFlag(flagName(key)) != nil {
				t.Errorf("oneway test %s has --%s", k.word, flagName(key))
			}
		}
		const interval = "working_delay_interval"
		has := slices.ContainsFunc(option.All(k.Shared), func(d option.Description) bool { return d.Key == interval })
		if has && !k.LightPackets != slices.Contains(k.Unused, interval) {
			t.Errorf("%s: accompanied %v, without effect %q", k.word, k.LightPackets, k.Unused)
		}
	}
	if checked < 4 {
		t.Errorf("%d options were checked", checked)
	}
}

// A message names the flag of another option, and leaves the names of files alone.
func TestErrorsNameFlagsAndNoFiles(t *testing.T) {
	for want, err := range map[string]error{
		"--key-file cannot be used: keyfile: stamp_key has mode 0644":  option.Errorf("key_file", "cannot be used: %v", errors.New("keyfile: stamp_key has mode 0644")),
		"--tokens-file cannot be used: tokens_new: line 1":             option.Errorf("tokens_file", "cannot be used: tokens_new: line 1"),
		"--key-file is missing; it has the private key of --cert-file": option.Missing(true, "key_file", "it has the private key of %s", option.Key("cert_file")),
		"HOST is wrong": option.Errorf("load_server", "is wrong"),
	} {
		if got := asUsage(err, kindOf("train").flagOf); got.Error() != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestProbeNamesAKeyFileAsWritten(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("stamp_key", []byte("k\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod("stamp_key", 0o644); err != nil {
		t.Fatal(err)
	}
	f := stampFlags(probeFlags{host: "127.0.0.1:1", count: 1})
	f.clock.source, f.options.KeyFile = "none", "stamp_key"
	if err := f.run(t.Context(), io.Discard, io.Discard); err == nil || !strings.HasPrefix(err.Error(), "--key-file cannot be used: keyfile: stamp_key has mode 0644") {
		t.Errorf("got %v", err)
	}
}
