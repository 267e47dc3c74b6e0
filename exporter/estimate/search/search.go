// Package search decides at which rate to send next, to learn what a link carries: by
// steps (Halepovic 2008, figure 2) or by the load adjustment of RFC 9097 section 8.
//
// Both are state machines without a clock: who sends asks Next for a step, sends it, and tells
// Observe what came of it, until Next says that it is over. A step of a Sweep is a burst from an
// idle link; those of an Adjust follow each other without a pause, where the far end can. All rates are IP octets a second.
package search

import "time"

// Step is what to send next.
type Step struct {
	// Rate is in IP octets a second.
	Rate float64
	// Duration is for how long.
	Duration time.Duration
}

// Feedback is what came of a step.
type Feedback struct {
	// Sent and Received are IP octets a second, really.
	Sent, Received float64
	// Packets left, of which Lost did not arrive; Reordered and Duplicate are sequence
	// errors too (RFC 9097 section 8.1).
	Packets, Lost, Reordered, Duplicate int
	// DelayVariation is the largest delay of the step minus the smallest of the whole run; of
	// a part of a stream under way it is the mean in place of the largest, as in udpst.
	// Below zero: not known.
	DelayVariation time.Duration
}

// Algorithm is a search.
type Algorithm interface {
	// Next is what to send next, the same until Observe is called; false: the search is over.
	Next() (Step, bool)
	// Observe tells what came of the step that Next returns; after the end it does nothing.
	Observe(Feedback)
}

var (
	_ Algorithm = &Sweep{}
	_ Algorithm = &Adjust{}
)
