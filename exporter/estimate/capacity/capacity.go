// Package capacity learns a link's capacity from packet trains: N packets sent back to
// back, and spread by the slowest link to the time that it takes for each.
//
// The formula is b = (N-1) L / D, D being the time from the first to the last
// arrival (WPI EvDO report section 2.2.1, after Dovrolis et al.), L in IP octets. Nothing in it
// needs the two clocks to agree.
//
// A train says something of the link only if nothing else has spread, or gathered, its
// packets. What did is its Result; see there. How far its dispersion may be off is bounded
// by the receiver's stamps, its clock's rate and how far arrivals lie off even distances
// (Verdict.Error), and the result of several trains by what these say and by how far they
// differ (Summary).
//
// Trains cannot tell everything. A shaper whose bucket holds more than the longest train
// shows the rate of the line before it; and traffic of others that is even over a train's
// time slows all of them alike: the value is then what is left to a train.
package capacity

import (
	"math"
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
	// StampError is how far the time between two of the receiver's stamps may be off. Zero:
	// TypicalStampError.
	StampError time.Duration
	// Drift is by what share of itself a time by the receiver's clock may be off; what is
	// less than Oscillator is that.
	Drift float64
}

const (
	// TypicalStampError is what a kernel's software stamp is off by on a host that is not
	// busy: p99 of kernel to kernel over veth is 1.5 us. The sender's pauses are looked for by it.
	TypicalStampError = 2 * time.Microsecond
	// Oscillator is how far one that nothing disciplines may run wrong.
	Oscillator = 100e-6
)

// Result says whether a train is clean, or why it says nothing.
type Result uint8

// The results. Of several that hold, one of Lost to SenderPace is said rather than one of the others,
// but Coalesced before SenderPace: with stamps equal nothing can be said of pace.
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
	// Coalesced: three of ten packets or more have the stamp of the one before: the
	// receiver (GRO, or the card) merged them.
	Coalesced
	// Batched: as many came right after the one before: in groups, of an interrupt each, or of
	// a link that is scheduled in slots. A train that is long beside its groups bears them.
	Batched
	// TokenBucket: the first packets came faster than the rest: a shaper lets a burst
	// pass at the rate of the line before it. A train that is no longer than the burst
	// cannot be told from one on a faster link: longer ones can.
	TokenBucket
	// Interleaved: the mean time between arrivals is well above the median, or arrivals wander
	// off even distances: packets of others were in between, or the link paused or varied.
	Interleaved
	// TooShort: stamps and clock may be off by more than a tenth of the dispersion.
	TooShort
)

// Results lists all values in order.
func Results() []Result {
	return []Result{Clean, Lost, Reordered, Duplicated, Unstamped, SenderPace, Coalesced, Batched, TokenBucket, Interleaved, TooShort}
}

var names = [...]string{
	"clean", "lost", "reordered", "duplicated", "unstamped", "sender_pace", "coalesced", "batched", "token_bucket", "interleaved", "too_short",
}

// String is the value of the metric label `result`.
func (r Result) String() string {
	if int(r) >= len(names) {
		return "invalid"
	}
	return names[r]
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
	// Dispersion is the time from the first to the last arrival, MeanGap the mean time between
	// two. Both, and Capacity, are without the first Skipped packets.
	Dispersion, MeanGap time.Duration
	// Error is how far Dispersion may be off what the link alone makes it: the receiver's
	// stamps and clock, and how far arrivals lie off even distances.
	Error time.Duration
	// Skipped is how many packets at the begin were left out, for the sender paused after
	// them until the link was idle; of a clean train a quarter at the most.
	Skipped int
}

// interval is what the capacity may be, given Error.
func (v *Verdict) interval() (low, high float64) {
	if low = v.octets() / (v.Dispersion + v.Error).Seconds(); v.Error >= v.Dispersion {
		return low, math.Inf(1)
	}
	return low, v.octets() / (v.Dispersion - v.Error).Seconds()
}

// octets came within Dispersion.
func (v *Verdict) octets() float64 { return v.Capacity * v.Dispersion.Seconds() }
