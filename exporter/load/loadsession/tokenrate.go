package loadsession

import (
	"slices"

	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/loadtest"
)

// tokenRateNote is the note of NoteTokenRate.
const tokenRateNote = "the token limits the rate, which may slow down TCP"

// NoteTokenRate adds a note, once in a run, if the token's limit of the rate may have slowed TCP that moved payload at a mean rate in
// bytes per second. Half of the limit suffices: TCP meets the limit in its fastest moments, and a short flow spends half of its time
// on the handshake and the start.
func NoteTokenRate(r *loadtest.Run, l loadcontrol.Limits, rate float64) {
	if l.BytesPerSecond > 0 && rate > l.BytesPerSecond/2 && !slices.Contains(r.Notes, tokenRateNote) {
		r.Note(tokenRateNote)
	}
}
