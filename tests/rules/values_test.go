package rules

import (
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
		{metric.DelayInvalid, metric.ReasonL, without(texts(sample.Reasons()...), sample.OK.String())},
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
