package rules

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/estimate/capacity"
	"oneway.example/exporter/families"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/stream"
	"oneway.example/exporter/net/tstamp"
	"oneway.example/exporter/reflector"
)

// texts are the values of labels by the code.
func texts[T interface{ String() string }](all ...T) (out []string) {
	for _, one := range all {
		out = append(out, one.String())
	}
	return out
}

// untilInvalid are the names of the values from this one up to the first invalid one.
func untilInvalid[T interface {
	~uint8
	String() string
}](from T,
) (out []string) {
	for ; from.String() != "invalid"; from++ {
		out = append(out, from.String())
	}
	return out
}

// TestListedValuesAreThoseOfTheCode: METRICS.md lists no other values, and all of them.
func TestListedValuesAreThoseOfTheCode(t *testing.T) {
	var results []reflector.Result
	for i := range (&reflector.Stats{}).Results {
		results = append(results, reflector.Result(i))
	}
	var ignored []stream.Ignored
	for i := range stream.Reasons {
		ignored = append(ignored, stream.Ignored(i))
	}
	refusals := []string{"opened", "started"}
	for _, r := range loadcontrol.Reasons() {
		refusals = append(refusals, string(r))
	}
	ends := []string{runreason.EndClosed, runreason.EndLost, runreason.EndProtocol}
	for _, r := range runreason.All() {
		if r.Ended != "" {
			ends = append(ends, r.Ended)
		}
	}
	var sendReasons []string
	for errno := range syscall.Errno(200) { // beyond the largest one of Linux
		for reason := range tstamp.CountByReason(map[syscall.Errno]uint64{errno: 1}) {
			if !slices.Contains(sendReasons, reason) {
				sendReasons = append(sendReasons, reason)
			}
		}
	}
	without := func(all []string, one string) []string {
		return slices.DeleteFunc(all, func(s string) bool { return s == one })
	}
	for _, c := range []struct {
		family *metric.Desc
		label  string
		want   []string
	}{
		{metric.ReflectorPackets, metric.ResultL, texts(results...)},
		{metric.Trains, metric.ResultL, texts(capacity.Results()...)},
		{metric.LoadServerRequests, metric.ResultL, refusals},
		{metric.LoadServerEnded, metric.ReasonL, ends},
		{metric.LoadServerDiscarded, metric.ReasonL, texts(ignored...)},
		{metric.SendErrors, metric.ReasonL, sendReasons},
		{metric.ClockState, metric.StateL, texts(clock.States()...)},
		{metric.Timestamps, "origin", untilInvalid(sample.Origin(0))},
		{metric.RunPacketsCorrupted, "kind", without(untilInvalid(stream.Intact), stream.Intact.String())},
	} {
		var got []string
		for _, entry := range c.family.Values[c.label] {
			value, _, _ := strings.Cut(entry, ":")
			got = append(got, value)
		}
		slices.Sort(got)
		slices.Sort(c.want)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: values of %s (-code +listed):\n%s", c.family.Name, c.label, diff)
		}
	}
}

// TestListedValuesAreTextsOfTheCode: a value that the code no longer has, or has by another name, is not listed. Sinks of tests find
// values of the code that are not listed.
func TestListedValuesAreTextsOfTheCode(t *testing.T) {
	code := map[string]bool{}
	err := filepath.WalkDir("../../exporter", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasSuffix(path, "core/metric"):
			return filepath.SkipDir
		case strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"):
			for _, text := range literals(t, path) {
				code[text] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	listed := 0
	for _, group := range families.All() {
		for _, d := range group.Descs {
			for label := range d.Values {
				for _, value := range d.Values.Names(label) {
					if listed++; !code[value] {
						t.Errorf("%s: no code has the value %q of %s", d.Name, value, label)
					}
				}
			}
		}
	}
	if listed < 100 {
		t.Errorf("%d values are listed", listed)
	}
}
