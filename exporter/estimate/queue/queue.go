// Package queue learns from one stream of packets that overloads a link what the link
// is: its rate, its queue, and whether it is a queue at all.
//
// The stream has three parts. In the first, idle, single packets leave far apart: their
// delays are those of the empty path. They should be of the load's size, and further apart
// than twice the time that the link takes for one; others are left out. In the second, the load, packets
// leave faster than the link drains, so that the queue before it fills and overflows. The third is
// idle again: what has changed meanwhile, the path or a clock, shows there.
//
// For a packet sent at s, with base the path's delay without queue, the backlog is
//
//	bytes sent before s that arrive later than s + base
//
// of packets that do arrive. It needs no rate. An admitted packet shows that the queue had
// space for the backlog and itself; a refused one, if the queue drops at its tail, that it had
// not. Result.Size is between the two. Base is an interval, and each part of it is tried: see search. A constant
// offset of the clocks is in base and cancels.
//
// All bytes are those of IP packets, header included, no link layer (RFC 9097
// section 5.3): a queue that counts Ethernet headers too looks smaller by 14/(L+14).
package queue

import (
	"time"

	"oneway.example/exporter/instant"
)

// Packet is a packet that left, of one direction. What the sender did not send, or its
// kernel refused, is none.
type Packet struct {
	// Sent is when it left by the sender's clock, Arrived when its first copy came by
	// the receiver's; zero: it was lost.
	Sent, Arrived instant.Time
	// IPBytes is its size with the IP header.
	IPBytes int
	// TXUncertainty is how much later than Sent it may have left (sample.Stamp.TXUncertainty).
	TXUncertainty time.Duration
	// Segment is the number of the plan's segment that it belongs to.
	Segment int
}

// Options of Analyze. The zero value is that of a stream without an idle part.
type Options struct {
	// Load is the first segment of the load, After the first one behind it; packets of other
	// segments are idle. Load zero: there are none before; After zero: none behind. Without any
	// nothing is known of the empty path.
	Load, After int
	// Skip is how much of the load is left out at its begin and at its end, as the
	// thesis did, but a quarter of it each at the most. Zero: DefaultSkip; below zero: none.
	Skip time.Duration
	// Drift is how much the two clocks may run apart, as a ratio: 50 ppm is 50e-6. It is
	// the sum of both clocks' frequency errors.
	Drift float64
	// StampError is how far a delay may be off for the stamps of both ends, beyond a
	// constant and the clocks' own offset.
	StampError time.Duration
}

const (
	// DefaultSkip is that of Options.
	DefaultSkip = 5 * time.Second
	// First is how long the first seconds are that are shown in fine bins.
	First = 3 * time.Second
	// MaxBins is how many bins a series has at the most.
	MaxBins = 60
)

// State is what the load met.
type State uint8

// The states.
const (
	// Unknown: it cannot be told; the zero value.
	Unknown State = iota
	// Filled: a queue that drops at its tail, and was full.
	Filled
	// NotFilled: the link carried all that was offered, or its queue was still growing
	// at the end.
	NotFilled
	// Policer: what is beyond a rate is dropped without having waited for it.
	Policer
	// AQM: packets were dropped before the queue was full (RFC 7567).
	AQM
	// TimeLimited: packets are discarded that have waited for a time, whatever waits.
	TimeLimited
)

// String is the value of the metric label `state`.
func (s State) String() string {
	if int(s) >= len(states) {
		return "invalid"
	}
	return states[s]
}

var states = [...]string{"unknown", "filled", "not_filled", "policer", "aqm", "time_limited"}

// Duration is a time as an interval: the truth is within Value +- Bound. It is
// defined only if OK.
type Duration struct {
	Value, Bound time.Duration
	OK           bool
}

// Amount is bytes, or bytes a second, as an interval: the truth is within Value +-
// Bound. It is defined only if OK.
type Amount struct {
	Value, Bound float64
	OK           bool
}

// Result is what a run said.
type Result struct {
	State State
	// Evidence says in words, for people, why State is what it is.
	Evidence string
	// Idle is the smallest delay of the idle part, Full the smallest while the queue was
	// full. Both are differences of the two clocks' readings: who shows them as delays
	// adds the clocks' offset to the bound, which is that of the stamps alone.
	Idle, Full Duration
	// Delay is what the full queue adds: the quantiles 0.05, 0.5 and 0.95 of the delays of packets
	// that it admitted while it had space for no more than two others, less Idle. A constant offset
	// of the clocks cancels, and Bound includes their drift.
	Delay [3]Duration
	// Rates are at which IP bytes arrived in a second, the quantiles 0.05, 0.5 and 0.95 of the
	// seconds from the first loss to the last; Rate is the median; Varies: they are not one.
	Rates  [3]float64
	Rate   Amount
	Varies bool
	// Size is the queue's in IP bytes.
	Size Amount
	// AtLeast is what the queue held when it held most, in IP bytes; of a queue that was
	// never full it is all that is known. Zero: nothing is known.
	AtLeast float64
	// PaperBytes is the queue's size in IP bytes as table 6.1 of Woo 2010 has it: Delay times
	// Rate. It lacks what Size accounts for: of a queue that drops at its tail, packets that
	// the smallest delay did not wait behind. Zero: Delay or Rate is not known.
	PaperBytes float64
	// Offered is the rate at which was really sent, and Loss the share of it that did
	// not arrive, both of the part of the load from From to To.
	Offered float64
	Loss    float64
	// Throughput is the median of the whole seconds between From and To in which the sender did not pause, Mean what arrived in all
	// of that time, in IP bytes a second.
	Throughput, Mean float64
	// From and To are the part of the load that was looked at, counted from its begin.
	From, To time.Duration
	// Sent and Received count the load's packets, all of it.
	Sent, Received int
	// PerSecond is the load by the second, in wider bins of whole seconds if there are
	// more than MaxBins; First is its first seconds.
	PerSecond, First []Bin
}

// Bin is a part of the load. Arrivals are shifted back by the smallest delay, so that
// the clocks' offset cancels and a packet that waits nowhere arrives in the bin in
// which it left.
type Bin struct {
	// Elapsed is the end of the bin, counted from the begin of the load.
	Elapsed time.Duration
	// Sent and Received are IP bytes a second that left, and that arrived, in it.
	Sent, Received float64
	// Packets left in the bin, and Lost of them did not arrive.
	Packets, Lost int
	// Min, Median and Max are the delays of those that arrived, Count of them. They
	// include the clocks' offset. Zero if Count is.
	Min, Median, Max time.Duration
	Count            int
}
