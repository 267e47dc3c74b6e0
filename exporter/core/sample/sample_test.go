package sample

import (
	"testing"
	"time"

	"oneway.example/exporter/core/instant"

	"github.com/google/go-cmp/cmp"
)

const us = time.Microsecond

// answered is a packet with 30 ms forward, 1 ms residence and 20 ms reverse, between synchronized clocks.
func answered() Packet {
	start := instant.FromUnix(1_700_000_000, 0)
	at := func(d time.Duration) Stamp { return Stamp{At: start.Add(d), Origin: Kernel} }
	return Packet{
		T1: at(0), T2: at(30 * time.Millisecond), T3: at(31 * time.Millisecond), T4: at(51 * time.Millisecond),
		Local: Bound{Error: 5 * us, Reason: OK}, Remote: Bound{Error: 7 * us, Reason: OK},
	}
}

func TestRoundTripWithoutAStampIsUndefined(t *testing.T) {
	for name, remove := range map[string]func(*Packet){
		"T1": func(p *Packet) { p.T1 = Stamp{} }, "T2": func(p *Packet) { p.T2 = Stamp{} },
		"T3": func(p *Packet) { p.T3 = Stamp{} }, "T4": func(p *Packet) { p.T4 = Stamp{} },
	} {
		p := answered()
		remove(&p)
		if rtt, ok := p.RoundTrip(); ok {
			t.Errorf("without %s: round trip %v", name, rtt)
		}
	}
}

func TestRoundTripIsFreeOfTheRemoteClockAndItsResidence(t *testing.T) {
	for _, offset := range []time.Duration{0, time.Hour, -37 * time.Second} {
		p := answered()
		p.T2.At, p.T3.At = p.T2.At.Add(offset), p.T3.At.Add(offset)
		rtt, ok := p.RoundTrip()
		if !ok || rtt != 50*time.Millisecond {
			t.Errorf("offset %v: %v %v", offset, rtt, ok)
		}
		residence, ok := p.Residence()
		if !ok || residence != time.Millisecond {
			t.Errorf("offset %v: residence %v %v", offset, residence, ok)
		}
	}
}

// Two timestamps of one clock that was stepped between them have no difference, and a reflector does not send before it
// receives.
func TestRoundTripAcrossAStepIsUndefined(t *testing.T) {
	for name, step := range map[string]func(*Packet){
		"of the sender":                  func(p *Packet) { p.T4.At, p.Local.Reason = p.T4.At.Add(time.Hour), LocalStepped },
		"of the reflector":               func(p *Packet) { p.T3.At, p.Remote.Reason = p.T3.At.Add(time.Hour), RemoteStepped },
		"of the reflector, not reported": func(p *Packet) { p.T3.At = p.T3.At.Add(-time.Hour) },
	} {
		p := answered()
		step(&p)
		if rtt, ok := p.RoundTrip(); ok {
			t.Errorf("a step %s: round trip %v", name, rtt)
		}
	}
}

func TestResidenceNeedsBothRemoteStamps(t *testing.T) {
	for _, remove := range []func(*Packet){
		func(p *Packet) { p.T2 = Stamp{} }, func(p *Packet) { p.T3 = Stamp{} },
	} {
		p := answered()
		remove(&p)
		if d, ok := p.Residence(); ok {
			t.Errorf("%v", d)
		}
	}
}

func TestZeroValuesAreNeverValid(t *testing.T) {
	if (Stamp{}).Present() || (Delay{}).OK() || (Bound{}).Reason == OK {
		t.Error("a zero value is valid")
	}
	// Only the origin makes a timestamp present, not the instant.
	if (Stamp{At: 5}).Present() {
		t.Error("a timestamp without origin is present")
	}
}

// Each reason has words of its own, which a list of values and a sentence share.
func TestEachInvalidReasonHasWords(t *testing.T) {
	seen := map[string]bool{"": true}
	for i, entry := range Values(Invalid()...) {
		name := Invalid()[i].String()
		words := InWords(name)
		if entry != name+": "+words || seen[words] || words == name {
			t.Errorf("%s: %q, in the list %q", name, words, entry)
		}
		seen[words] = true
	}
	if InWords("ok") != "ok" || InWords("weather") != "weather" {
		t.Error("a text that is no reason changes")
	}
}

// Every value has its own name, and the lists hold every value: a missing name would be "invalid" in the metrics.
func TestNamesAreUniqueAndComplete(t *testing.T) {
	var origins, reasons, directions []string
	for o := Absent; o <= FollowUp; o++ {
		origins = append(origins, o.String())
	}
	for i, r := range Reasons() {
		if int(r) != i {
			t.Errorf("reason %d is at index %d", r, i)
		}
		reasons = append(reasons, r.String())
	}
	for _, d := range Directions() {
		directions = append(directions, d.String())
	}
	want := [][]string{
		{"absent", "user", "kernel", "hardware", "packet", "follow_up"},
		{
			"unknown", "ok", "no_timestamp", "no_clock", "clock_silent", "local_unsynchronized",
			"local_stepped", "remote_unsynchronized", "remote_stepped", "bound_too_large", "transmit_before_receive", "residence_too_long", "wrong_format", "ptp_in_utc", "clocks_apart",
		},
		{"forward", "reverse"},
	}
	if diff := cmp.Diff(want, [][]string{origins, reasons, directions}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if s := Origin(len(origins)).String(); s != "invalid" {
		t.Errorf("origin beyond the list is %q", s)
	}
	if s := Reason(len(reasons)).String(); s != "invalid" {
		t.Errorf("reason beyond the list is %q", s)
	}
}

func TestRoundTripDoesNotAllocate(t *testing.T) {
	p := answered()
	if allocs := testing.AllocsPerRun(1000, func() {
		_, _ = p.RoundTrip()
	}); allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}
