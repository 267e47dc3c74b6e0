// Package capacity learns a link's capacity from packet trains: N packets sent back to
// back, and spread by the slowest link to the time that it takes for each.
//
// The formula is b = (N-1) L / D, D being the time from the first to the last
// arrival (WPI EvDO report section 2.2.1, after Dovrolis et al.), L in IP octets. Nothing in it
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
	// StampError is how far a stamp may be off, of either end. Zero: DefaultStampError.
	StampError time.Duration
}

// DefaultStampError is what a kernel's software stamp may be off by (see the lab's notes:
// p99 of kernel to kernel over veth is 1.5 us).
const DefaultStampError = 2 * time.Microsecond

// Result says whether a train is clean, or why it says nothing.
type Result uint8

// The results. What is found first is said, in this order, but that Coalesced is looked
// for before SenderPace: with all stamps equal nothing can be said of pace.
const (
	// Clean: the train was spread by the slowest link.
	Clean Result = iota
	// Lost: a packet did not arrive, or there are fewer than two.
	Lost
	// Reordered: a packet arrived before one that left earlier.
	Reordered
	// Duplicated: a packet arrived more than once.
	Duplicated
	// Unstamped: a packet has no kernel stamp at one of the ends.
	Unstamped
	// SenderPace: most packets left the sender no earlier than 0.8 of the time that the link
	// needs for those before, or one beyond the train's first quarter left when the link had
	// sent all before it. A pause that the link has not noticed does no harm.
	SenderPace
	// Coalesced: a quarter of the packets or more have the stamp of the one before: the
	// receiver (GRO, or the card) merged them.
	Coalesced
	// Batched: packets arrived in groups at regular distances: an interrupt each, or a
	// link that is scheduled in slots; or most of them in groups at any distance.
	Batched
	// TokenBucket: the first packets came faster than the rest: a shaper lets a burst
	// pass at the rate of the line before it. A train that is no longer than the burst
	// cannot be told from one on a faster link: hold the capacity against the rate under load.
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
	// the sender. MeanGap is the mean time between two arrivals.
	// All of them, and Capacity, are without the first Skipped packets.
	Dispersion, SentDispersion, MeanGap time.Duration
	// Skipped is how many packets at the begin were left out, for the sender paused after
	// them until the link was idle; a quarter of the train at the most.
	Skipped int
}
