package stamp

import (
	"strings"
	"testing"
)

// TestNotesAgreeWithTheirNumber: a note about a single packet has the singular.
func TestNotesAgreeWithTheirNumber(t *testing.T) {
	one := uint64(1)
	d := DirectionReport{
		HostDropped: &one, LossLimits: &LossLimits{High: 0.1, Undecided: 1}, UnknownDelays: 1, LowConfidence: 1, Negative: 1,
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
