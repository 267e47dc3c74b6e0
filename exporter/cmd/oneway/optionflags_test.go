package main

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"oneway.example/exporter/heavy"
	"oneway.example/exporter/probes/matrix"
	"oneway.example/exporter/probes/saturate"
	"oneway.example/exporter/probes/train"
	"oneway.example/exporter/target"
)

// noFlag are keys of heavy probes that a single run has no flag for, and why.
var noFlag = map[string]string{
	"every":      "one run has no calendar",
	"jitter":     "one run has no calendar",
	"windows":    "one run has no calendar",
	"responder":  "it is the argument",
	"directions": "--direction names one, or both",

	"elapsed_bins":  "one run exports no series",
	"elapsed_range": "one run exports no series",
}

func TestEachKeyOfAHeavyProbeIsAFlagOrSaysWhyNot(t *testing.T) {
	shared := heavy.DefaultOptions()
	for _, k := range []testKind{saturateTest(), matrixTest(), trainTest()} {
		fields := optionFields(k.options)
		maps.Copy(fields, optionFields(&shared))
		want := slices.Sorted(maps.Keys(fields))
		var have []string
		for key := range noFlag {
			if slices.Contains(want, key) {
				have = append(have, key)
			}
		}
		for _, f := range append(k.flags, sharedTestFlags...) {
			if f.help == "" {
				t.Errorf("%s: --%s has no help", k.word, f.flag())
			}
			have = append(have, f.key)
		}
		slices.Sort(have)
		if diff := cmp.Diff(want, have); diff != "" {
			t.Errorf("%s: keys of the configuration (-) and of flags (+):\n%s", k.word, diff)
		}
	}
}

// parse sets a test's options from a command line.
func parse(t *testing.T, k testKind, args ...string) heavy.Options {
	t.Helper()
	app, shared := kingpin.New("oneway", "").Terminate(nil), heavy.DefaultOptions()
	registerOptions(app.Command(k.word, ""), k.options, k.flags)
	registerOptions(app.GetCommand(k.word), &shared, sharedTestFlags)
	if _, err := app.Parse(append([]string{k.word}, args...)); err != nil {
		t.Fatal(err)
	}
	return shared
}

func TestFlagsThatAreNotGivenLeaveTheDefaults(t *testing.T) {
	for _, word := range []string{"saturate", "matrix", "train"} {
		kind := func() testKind {
			return map[string]testKind{"saturate": saturateTest(), "matrix": matrixTest(), "train": trainTest()}[word]
		}
		parsed := kind()
		shared := parse(t, parsed)
		if diff := cmp.Diff(kind().options, parsed.options); diff != "" {
			t.Errorf("%s: options before and after:\n%s", word, diff)
		}
		if diff := cmp.Diff(heavy.DefaultOptions(), shared, cmpopts.IgnoreUnexported(heavy.Options{}, target.Addressing{})); diff != "" {
			t.Errorf("%s: shared options before and after:\n%s", word, diff)
		}
	}
}

func TestFlagsSetOptionsOfEachType(t *testing.T) {
	k := saturateTest()
	shared := parse(t, k, "--mode=sweep", "--forward=7Mbit", "--step=3s", "--sweep-factor=1.5", "--sweep-from-reverse=100kbit", "--idle-interval=10ms", "--together", "--dscp=46", "--wait=3m")
	s := k.options.(*saturate.Options)
	want := saturate.DefaultOptions()
	want.Mode, want.Rate.Forward, want.Sweep.Step, want.Sweep.Factor, want.Sweep.From.Reverse = "sweep", 7e6/8, 3*time.Second, 1.5, 100e3/8
	want.Idle.Interval, want.Together = 10*time.Millisecond, true
	if diff := cmp.Diff(&want, s); diff != "" || shared.DSCP != 46 || shared.MaxWait != 3*time.Minute {
		t.Errorf("DSCP %d, wait %v, options:\n%s", shared.DSCP, shared.MaxWait, diff)
	}
	k = matrixTest()
	parse(t, k, "--size=64", "--size=1500", "--seed=18446744073709551615")
	if m := k.options.(*matrix.Options); !slices.Equal(m.PacketBytes, []int{64, 1500}) || m.Seed != 1<<64-1 {
		t.Errorf("%+v", m)
	}
	k = trainTest()
	parse(t, k, "--no-path-mtu", "--min-clean=4")
	if o := k.options.(*train.Options); o.PathMTU || o.MinClean != 4 {
		t.Errorf("%+v", o)
	}
}

func TestErrorOfAnOptionNamesTheFlag(t *testing.T) {
	for key, want := range map[string]string{
		"packet_bytes[1]": "--size", "cell_duration": "--cell", "max_wait": "--wait", "token_file": "--token-file", "path_minimum": "--path-minimum",
	} {
		if got := flagOf(key, append(matrixTest().flags, sharedTestFlags...)); got != want {
			t.Errorf("%s: %s, want %s", key, got, want)
		}
	}
}
