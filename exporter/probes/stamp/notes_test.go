package stamp

import (
	"slices"
	"strings"
	"testing"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/probes/stamp/ledger"
)

// TestNotesAgreeWithTheirNumber: a note about a single packet has the singular.
func TestNotesAgreeWithTheirNumber(t *testing.T) {
	one := uint64(1)
	d := DirectionReport{
		HostDropped: &one, LossLimits: &LossLimits{High: 0.1, Undecided: 1}, UnknownDelays: 1, LowConfidence: 1, Negative: 1, Delay: &Distribution{},
		Invalid: map[string]uint64{"bound_too_large": 1, "no_timestamp": 1},
	}
	r := Report{Forward: d, Reverse: d, Skipped: map[string]uint64{"no_route": 1}, Discarded: map[string]uint64{"short": 1}}
	notes := r.notes()
	if len(notes) != 16 {
		t.Errorf("%d notes, want 16: %q", len(notes), notes)
	}
	for _, note := range notes {
		for _, wrong := range []string{"1 packets", "1 test packets", "1 received packets", "1 delays", " packets", " delays", " have no", " were", "their"} {
			if strings.Contains(note, wrong) {
				t.Errorf("%q in the note %q", wrong, note)
			}
		}
	}
}

// In reverse no reply is missing: the ones of unknown delay reply to copies of requests.
func TestUnknownDelaysHaveTheCauseOfTheirDirection(t *testing.T) {
	d := DirectionReport{UnknownDelays: 39, Delay: &Distribution{}}
	notes := (&Report{Forward: d, Reverse: d}).notes()
	for i, want := range []string{"forward: 39 delays are not known: a reply was lost, a clock", "reverse: 39 delays are not known: a reply is that to a copy of a request"} {
		if len(notes) != 2 || !strings.HasPrefix(notes[i], want) {
			t.Errorf("notes %q, want %q", notes, want)
		}
	}
}

// TestStatusAndTerminalTellAlikeWhyLossesHaveNoDirection: one function decides.
func TestStatusAndTerminalTellAlikeWhyLossesHaveNoDirection(t *testing.T) {
	for name, c := range map[string]struct {
		change func(v *snapshot)
		says   string
	}{
		"numbered by the remote end":  {func(v *snapshot) { v.Kind = ledger.RemoteStateful }, ""},
		"nothing lost":                {func(v *snapshot) { v.RoundTripsLost = 0 }, ""},
		"nothing lost of late":        {func(v *snapshot) { v.window.lossRatio = ledger.OptionalOf(0.0, true) }, ""},
		"lost of late":                {func(v *snapshot) { v.window.lossRatio = ledger.OptionalOf(0.1, true) }, "does not number its replies"},
		"not numbered":                {func(*snapshot) {}, "does not number its replies; losses have no direction"},
		"without a clock":             {func(v *snapshot) { v.shared, v.local = false, sample.NoClock }, "does not number its replies; losses have no direction"},
		"numbered for all senders":    {func(v *snapshot) { v.Shared = ledger.SharedByAll }, "numbers the replies to all of its senders together; losses have no direction"},
		"several reflectors":          {func(v *snapshot) { v.Shared, v.RoundTripsLost = ledger.SharedAddress, 0 }, "more than one reflector replies at this address"},
		"numbered for several probes": {func(v *snapshot) { v.Shared = ledger.SharedByHost }, "losses have no direction. Give each probe a local_port"},
	} {
		v := snapshot{clockState: clockState{shared: true}, window: &window{}, up: true, decided: true}
		v.Kind, v.RoundTripsLost, v.RoundTripsReceived = ledger.RemoteStateless, 3, 5
		c.change(&v)
		_, status := v.defect()
		r := reportOf(v)
		if r.Undirected != status || !strings.Contains(status, c.says) || (status == "") != (c.says == "") {
			t.Errorf("%s: status %q, report %q, want %q", name, status, r.Undirected, c.says)
		}
		if printed := slices.Contains(r.notes(), status); printed != (c.says != "") {
			t.Errorf("%s: the terminal has the note: %v", name, printed)
		}
	}
}

// TestDelaysThatAreNotWantedAreOneNote: without a clock, by the user's decision, no delay is a fault of a direction.
func TestDelaysThatAreNotWantedAreOneNote(t *testing.T) {
	d := DirectionReport{UnknownDelays: 10, Invalid: map[string]uint64{"no_clock": 10}}
	r := Report{Forward: d, Reverse: d, RoundTrip: RoundTripReport{Received: 10}}
	if notes := r.notes(); len(notes) != 1 || notes[0] != "one-way delays are not measured: --clock is none. Round trips, loss and delay variation are" {
		t.Errorf("%q", notes)
	}
	d.Invalid = map[string]uint64{"local_unsynchronized": 10}
	if notes := (&Report{Forward: d, Reverse: d}).notes(); len(notes) != 2 {
		t.Errorf("%q, want one note of each direction", notes)
	}
}
