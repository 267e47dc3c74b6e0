package ledger

import (
	"slices"
	"testing"

	"oneway.example/exporter/core/sample"
)

// TestReplyOvertakenByManyTakesNoOthersPlace: number 28 arrives after 36, which still waits.
func TestReplyOvertakenByManyTakesNoOthersPlace(t *testing.T) {
	var a replies
	var done []uint64
	keep := func(w *PendingReply) { done = append(done, w.Packet.ReverseSeq) }
	put := func(n uint64) { a.put(&PendingReply{Packet: sample.Packet{ReverseSeq: n}}, keep) }
	put(36)
	put(28)
	if !slices.Equal(done, []uint64{28}) {
		t.Fatalf("evaluated %v, want 28, which is too old for a report", done)
	}
	a.settle(36, 77, keep)
	a.settle(36, 78, keep)
	if !slices.Equal(done, []uint64{28, 36}) {
		t.Errorf("evaluated %v, want 28 and 36", done)
	}
}
