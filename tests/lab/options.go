package lab

import (
	"net/netip"

	"oneway.example/exporter/core/sample"
)

// Options of a Lab. The zero value is an unimpaired link that logs all UDP.
type Options struct {
	Profile Profile
	// Seed determines all random values: the same seed and the same packets in the same
	// order give the same outcomes (a full queue depends on timing, the rest does not).
	Seed uint64
	// Classifier selects the packets to log; nil: all unfragmented UDP, key 0.
	Classifier Classifier
	// Segments selects the TCP segments to log; nil: none.
	Segments SegmentClassifier
	// Script overrides the faults of classified packets; nil: random faults.
	Script Script
	// SpareOthers limits faults to classified packets: control traffic
	// of a test has none. Rate, queue and delay are the same for all.
	SpareOthers bool
	// LogLimit is the most records kept in each direction; 0: 1 048 576 (about
	// 130 MB if reached). More packets than that are an error of Err.
	LogLimit int
	// CountKeys counts the outcomes of classified packets by their keys (Lab.KeyCounts) and
	// logs none: for runs of hours. Use few keys.
	CountKeys bool
}

// Classifier selects the UDP packets to log, and their keys:
// "this is test packet number n". It is called with the payload as the sender
// sent it, from one goroutine for each direction at the same time, on a thread
// that keeps the times: it must be fast and must not retain the payload.
type Classifier func(payload []byte, src, dst netip.AddrPort) (key uint64, ok bool)

// SegmentClassifier selects the TCP segments to log, and their keys. Called like a Classifier.
type SegmentClassifier func(s Segment) (key uint64, ok bool)

// Segment is the header of an unfragmented TCP segment.
type Segment struct {
	Source, Destination      netip.AddrPort
	Sequence, Acknowledgment uint32
	// Payload is its size in bytes.
	Payload int
	// Reset: it has the flag RST, and its Acknowledgment may be 0, as in a SYN.
	Reset bool
}

// Script overrides random faults: given the direction and the key of a classified
// packet and the faults that were drawn for it, it returns the faults to
// apply. Called like a Classifier.
type Script func(direction sample.Direction, key uint64, drawn Faults) Faults
