// Package queue determines from one stream of packets that overloads a link the link's rate, its queue, and whether
// it has a queue at all.
//
// The stream has three parts. In the first, idle, single packets are sent far apart: their delays are those of the
// empty path. They should have the load's size, and intervals of more than twice the link's time for one; others
// are left out. In the second, the load, packets are sent faster than the link's rate, so that the queue before it
// fills and overflows. The third is idle again and shows whether the path or a clock has changed.
//
// For a packet sent at s, with base the path's delay without queue, the backlog is
//
//	bytes sent before s that arrive later than s + base
//
// of packets that arrive. It needs no rate. An admitted packet shows that the queue had space for the backlog and
// the packet; one refused by a tail-drop queue shows that it had not. Result.Size is between the two. Base is an
// interval whose parts are all tried: see search. A constant clock offset is in base and cancels.
//
// All bytes are those of IP packets, header included, no link layer (RFC 9097 section 5.3): a queue that counts
// Ethernet headers too appears smaller by 14/(L+14).
package queue

import (
	"time"

	"oneway.example/exporter/core/instant"
)

// Packet is a sent packet of one direction, without packets that the sender did not send or its kernel refused.
type Packet struct {
	// Sent is the send time by the sender's clock, Arrived the arrival of the first copy by the receiver's; zero:
	// it was lost.
	Sent, Arrived instant.Time
	// IPBytes is its size with the IP header.
	IPBytes int
	// TXUncertainty is how much later than Sent it may have been sent (sample.Stamp.TXUncertainty).
	TXUncertainty time.Duration
	// Segment is the number of its segment in the plan.
	Segment int
}

// Options of Analyze. The zero value is that of a stream without an idle part.
type Options struct {
	// Load is the first segment of the load, After the first one after it; packets of other segments are idle. Load
	// zero: none before; After zero: none after. Without idle packets the delay of the empty path is unknown.
	Load, After int
	// Skip is the time left out at the begin and at the end of the load, as in the thesis, each at most
	// its length / SkipPart. Zero: DefaultSkip; below zero: none.
	Skip time.Duration
	// Drift is the relative rate difference of the two clocks, the sum of their frequency errors: 50 ppm is 50e-6.
	Drift float64
	// StampError is the error limit of a delay from the timestamps of both ends, without the clocks' offset.
	StampError time.Duration
}

const (
	// DefaultSkip is the default of Options.Skip.
	DefaultSkip = 5 * time.Second
	// SkipPart is the least ratio of the load's length to Skip.
	SkipPart = 4
	// First is the length of the begin of the load that has fine bins.
	First = 3 * time.Second
	// MaxBins is the largest number of bins of a series.
	MaxBins = 60
)

// State is the kind of queue or limit found.
type State uint8

// The states.
const (
	// Unknown: it is undetermined; the zero value.
	Unknown State = iota
	// Filled: a tail-drop queue that was full.
	Filled
	// NotFilled: the link carried the offered load, or its queue still grew at the end.
	NotFilled
	// Policer: load above a rate is dropped without queuing.
	Policer
	// AQM: packets were dropped before the queue was full (RFC 7567).
	AQM
	// TimeLimited: packets are discarded after a time, whatever the backlog.
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

// Duration is a time as an interval: the true value is within Value +- Bound. It is defined only if OK.
type Duration struct {
	Value, Bound time.Duration
	OK           bool
}

// Amount is bytes, or bytes a second, as an interval: the true value is within Value +- Bound. It is defined only
// if OK.
type Amount struct {
	Value, Bound float64
	OK           bool
	// OneSided: the most likely value is far from the middle of the interval, so Value is no estimate, and only the
	// ends count.
	OneSided bool
}

// Result is the result of a run.
type Result struct {
	State State
	// Evidence is the reason for State in words.
	Evidence string
	// Interrupted: State is unknown because the path was interrupted to the end of the load, or for most of its packets.
	Interrupted bool
	// Impossible: the timestamps are not in order, or span more than a day, so that only Sent and Received are known.
	Impossible bool
	// Idle is the smallest delay of the idle parts, Full the smallest while the queue was full. Both are
	// differences of the two clocks' readings: as delays they need the clocks' offset added to the bound, which is
	// that of the timestamps alone.
	Idle, Full Duration
	// Delay is the delay of the full queue: the quantiles 0.05, 0.5 and 0.95 of the delays of packets admitted
	// while it had space for at most two others, less Idle. A constant clock offset cancels, and Bound includes the
	// clocks' drift.
	Delay [3]Duration
	// Rates are the quantiles 0.05, 0.5 and 0.95 of the IP bytes received in each second from the first loss to the
	// last; Rate is the median; Varies: the rate is not constant.
	Rates  [3]float64
	Rate   Amount
	Varies bool
	// Size is the size of the queue in IP bytes; one-sided if losses, outages or the base widened its interval more to
	// one side.
	Size Amount
	// AtLeast is the largest backlog in IP bytes, the only value of a queue that was never full. Zero: unknown.
	AtLeast float64
	// Offered is the achieved send rate without the pauses of the sender, and Loss the share of it that did not arrive,
	// both of the part of the load from From to To.
	Offered float64
	Loss    float64
	// Throughput is the median of the whole seconds between From and To in which the sender did not pause, 0 without one; Mean is
	// the receive rate over all of that time. Both are in IP bytes a second, without loss at most Offered.
	Throughput, Mean float64
	// From and To are the evaluated part of the load, relative to its begin.
	From, To time.Duration
	// Sent and Received count all packets of the load.
	Sent, Received int
	// PerSecond is the load by the second, in wider bins of whole seconds for more than MaxBins; First is its first
	// seconds.
	PerSecond, First []Bin
}

// Bin is a part of the load. Arrivals are shifted back by the smallest delay, so that the clocks' offset cancels
// and a packet that does not queue arrives in the bin in which it was sent.
type Bin struct {
	// Elapsed is the end of the bin, relative to the begin of the load.
	Elapsed time.Duration
	// Sent and Received are the send and receive rate in IP bytes a second.
	Sent, Received float64
	// Packets were sent in the bin, and Lost of them did not arrive.
	Packets, Lost int
	// Min, Median and Max are the delays of the Count packets that arrived. They include the clocks' offset. Zero
	// if Count is.
	Min, Median, Max time.Duration
	Count            int
}
