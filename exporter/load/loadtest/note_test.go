package loadtest_test

import (
	"slices"
	"testing"

	"oneway.example/exporter/load/loadtest"
)

func TestNoteOfBothDirectionsIsOne(t *testing.T) {
	var r loadtest.Run
	for _, note := range []string{"reverse: a", "forward: b", "forward: a", "reverse: c", "a", "reverse: b"} {
		r.Note(note)
	}
	if want := []string{"both directions: a", "both directions: b", "reverse: c", "a"}; !slices.Equal(r.Notes, want) {
		t.Errorf("%q, want %q", r.Notes, want)
	}
}
