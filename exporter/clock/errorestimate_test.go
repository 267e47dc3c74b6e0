package clock_test

import (
	"testing"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/net/wire/timefmt"
)

func TestErrorEstimateNeverClaimsLessThanTheBound(t *testing.T) {
	for _, bound := range []time.Duration{0, 1, 999, time.Microsecond, 1500 * time.Microsecond, time.Second, time.Hour} {
		for _, f := range []timefmt.Format{timefmt.NTP, timefmt.PTP} {
			e := clock.Quality{Bound: sample.Bound{Error: bound, Reason: sample.OK}}.ErrorEstimate(f)
			if !e.Valid() || !e.Synchronized() || e.Format() != f || e.Bound() < max(bound, 1) || e.Bound() > 2*bound+2 {
				t.Errorf("bound %v: %#04x, which decodes to %v, synchronized %v", bound, uint16(e), e.Bound(), e.Synchronized())
			}
			if e == 0x8001 {
				t.Errorf("bound %v: 0x8001", bound)
			}
		}
	}
}

func TestErrorEstimateOfAnUntrustedClockIsTheLargest(t *testing.T) {
	for _, reason := range sample.Reasons() {
		if reason == sample.OK {
			continue
		}
		q := clock.Quality{Bound: sample.Bound{Error: time.Nanosecond, Reason: reason}}
		if ntp, ptp := q.ErrorEstimate(timefmt.NTP), q.ErrorEstimate(timefmt.PTP); ntp != 0x3fff || ptp != 0x7fff {
			t.Errorf("%v: %#04x and %#04x, want 0x3fff and 0x7fff", reason, uint16(ntp), uint16(ptp))
		}
	}
}

func TestStatesHaveDifferentNames(t *testing.T) {
	seen := map[string]clock.State{}
	for _, s := range clock.States() {
		if other, twice := seen[s.String()]; twice || s.String() == "invalid" {
			t.Errorf("%d and %d are both called %q", s, other, s)
		}
		seen[s.String()] = s
	}
	if got := clock.State(200).String(); got != "invalid" {
		t.Errorf("state 200 is called %q", got)
	}
}
