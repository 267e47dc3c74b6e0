// Package capacity learns a link's capacity from packet trains: N packets sent back to
// back, and spread by the slowest link to the time that it takes for each.
//
// The formula is b = (N-1) L / D, D being the time from the first to the last
// arrival (WPI EvDO report section 3.2, after Dovrolis et al.), L in IP octets. Nothing in it
// needs the two clocks to agree.
//
// A train says something of the link only if nothing else has spread, or gathered, its
// packets. What did is its Result; see there.
package capacity

import (
	"time"

	"oneway.example/exporter/instant"
)

// Packet is a packet of a train, in the order of sending.
type Packet struct {
	// Sent is when it left by the sender's clock; zero: not known. Arrived is when its first copy
	// came by the receiver's; zero: not known or, with Lost, never.
	Sent, Arrived instant.Time
	Lost          bool
	// Duplicates is how many more copies came.
	Duplicates int
}

// Train is a train: its packets have one size.
type Train struct {
	// IPBytes is the size of each packet with the IP header.
	IPBytes int
	Packets []Packet
}

// Options of Judge. The zero value is good.
type Options struct {
	// StampError is how far an arrival's stamp may be off. Zero: DefaultStampError.
	StampError time.Duration
}

// DefaultStampError is what a kernel's software stamp may be off by (see the lab's notes:
// p99 of kernel to kernel over veth is 1.5 us).
const DefaultStampError = 2 * time.Microsecond

// Result says whether a train is clean, or why it says nothing.
type Result uint8

// The results, in the order in which they are looked for.
const (
	// Clean: the train was spread by the slowest link.
	Clean Result = iota
	// Lost: a packet did not arrive.
	Lost
	// Reordered: a packet arrived before one that left earlier.
	Reordered
	// Duplicated: a packet arrived more than once.
	Duplicated
	// Unstamped: a packet has no kernel stamp at one of the ends.
	Unstamped
	// SenderPace: the train left the sender no denser than it arrived: the sender's time
	// is at least 0.8 of the receiver's.
	SenderPace
	// Coalesced: packets arrived with one stamp: the receiver (GRO, or the card) merged them.
	Coalesced
	// Batched: packets arrived in groups at regular distances: an interrupt each, or a
	// link that is scheduled in slots.
	Batched
	// TokenBucket: the first packets came faster than the rest: a shaper lets a burst
	// pass at the rate of the line before it.
	TokenBucket
)

// Results lists all values in order.
func Results() []Result {
	return []Result{Clean, Lost, Reordered, Duplicated, Unstamped, SenderPace, Coalesced, Batched, TokenBucket}
}

// String is the value of the metric label `result`.
func (r Result) String() string {
	switch r {
	case Clean:
		return "clean"
	case Lost:
		return "lost"
	case Reordered:
		return "reordered"
	case Duplicated:
		return "duplicated"
	case Unstamped:
		return "unstamped"
	case SenderPace:
		return "sender_pace"
	case Coalesced:
		return "coalesced"
	case Batched:
		return "batched"
	case TokenBucket:
		return "token_bucket"
	}
	return "invalid"
}

// Verdict is what one train said.
type Verdict struct {
	IPBytes int
	Result  Result
	// Evidence says in words why it is not clean.
	Evidence string
	// Capacity is b in IP octets a second; defined, as Dispersion is, for a train that is
	// complete, in order and stamped, but to be believed only if Result is Clean.
	Capacity float64
	// Dispersion is the time from the first to the last arrival, SentDispersion that of
	// the sender. MeanGap is Dispersion/(N-1).
	Dispersion, SentDispersion, MeanGap time.Duration
}

// Judge looks at one train.
func Judge(t Train, o Options) Verdict {
	return Verdict{IPBytes: t.IPBytes, Result: Unstamped}
}

// Summary is what the trains of one size said.
type Summary struct {
	IPBytes int
	// Trains counts by result, indexed by Result.
	Trains [TokenBucket + 1]int
	// P5, Median and P95 are of the clean trains' capacity, in IP octets a second; defined
	// only if OK: at least MinClean trains were clean.
	P5, Median, P95 float64
	// MeanGap is the mean dispersion of the clean trains: time between two packets.
	MeanGap time.Duration
	OK      bool
	// Refusal says, if not OK, what contaminates most trains, in words.
	Refusal string
	// Capacities are of the clean trains, ascending: the whole distribution.
	Capacities []float64
}

// MinClean is how many clean trains a Summary needs.
const MinClean = 3

// Summarise puts together what the trains said, by size, the largest first.
func Summarise(verdicts []Verdict) []Summary {
	return nil
}
