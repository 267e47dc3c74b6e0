// Package sample holds one test packet's truth: its number, its four time
// stamps, where each stamp came from and how far the clocks may be off.
//
// The four stamps are those of RFC 8762 section 4: T1 the sender sends, T2 the
// reflector receives, T3 the reflector sends, T4 the sender receives. How they
// were obtained is the business of the sockets and sessions; what they mean is
// the business of the estimators. This package knows neither.
package sample

import (
	"time"

	"oneway.example/exporter/instant"
)

// Origin says where a stamp was taken. The zero value means there is none.
type Origin uint8

// The origins, worst to best but for InPacket and FollowUp, whose quality only
// the remote end knows.
const (
	// Absent: no stamp.
	Absent Origin = iota
	// User: read from the clock in user space beside the system call; it
	// includes the host's own delay (6..70 us on an idle host, ms on a busy one).
	User
	// Kernel: SO_TIMESTAMPING software stamp, taken where the packet meets the driver.
	Kernel
	// Hardware: taken by the network card and converted to the system clock.
	Hardware
	// InPacket: what the remote end wrote into its packet; how it was taken is unknown.
	InPacket
	// FollowUp: the remote end's later, true transmit stamp (RFC 8972 section 4.7,
	// Follow-Up Telemetry, or the private TLV of our own reflector).
	FollowUp
)

// Origins lists all values in order, for tables and tests.
func Origins() []Origin { return []Origin{Absent, User, Kernel, Hardware, InPacket, FollowUp} }

// String is the value of the metric label `origin`.
func (o Origin) String() string {
	words := [...]string{
		Absent: "absent", User: "user", Kernel: "kernel", Hardware: "hardware", InPacket: "packet",
		FollowUp: "follow_up",
	}
	if int(o) >= len(words) || words[o] == "" {
		return "invalid"
	}
	return words[o]
}

// Stamp is an instant and its origin. The zero value is an absent stamp.
type Stamp struct {
	At     instant.Time
	Origin Origin
	// TXUncertainty is how much later than At the packet left at the latest: the host may
	// have stood still between the stamp and the wire. Of transmit stamps only;
	// zero: not known.
	TXUncertainty time.Duration
}

// Present reports whether there is a stamp.
func (s Stamp) Present() bool { return s.Origin != Absent }

// Bound is what is known of one host's clock when it stamped a packet.
type Bound struct {
	// Error is the largest offset to UTC that the host claims. Meaningless unless Reason
	// is OK.
	Error time.Duration
	// Reason is OK, or why the clock cannot be trusted. The zero value is Unknown.
	Reason Reason
}

// Packet is one answered test packet. A stamp that is absent stays zero.
type Packet struct {
	// Seq is the sender's number of the packet, extended to 64 bits.
	Seq uint64
	// ReverseSeq is the reflector's number of its reply; equal to Seq with a
	// stateless reflector.
	ReverseSeq     uint64
	T1, T2, T3, T4 Stamp
	// Local is the sender's clock, Remote the reflector's.
	Local, Remote Bound
}

// Direction of travel, seen from the agent that sends the test packets.
type Direction uint8

// Forward is from this agent to the peer, Reverse from the peer to this agent.
const (
	Forward Direction = iota
	Reverse
)

// Directions lists both, forward first.
func Directions() []Direction { return []Direction{Forward, Reverse} }

// String is the value of the metric label `direction`.
func (d Direction) String() string {
	if d == Forward {
		return "forward"
	}
	return "reverse"
}

// Delay is a one-way delay as an interval: the truth lies in Value +- Bound.
// It is defined only if Reason is OK. The zero value is undefined (Unknown).
type Delay struct {
	// Value may be negative: evidence of a clock fault, never clamped.
	Value time.Duration
	// Bound is what both clocks and both stamps may be off by, together (package bound).
	Bound  time.Duration
	Reason Reason
	// TXUncertainty is the part of Bound for which a host may have held the packet after its stamp.
	TXUncertainty time.Duration
}

// OK reports whether the delay is defined.
func (d Delay) OK() bool { return d.Reason == OK }

// RoundTrip is (T4-T1)-(T3-T2): free of any clock offset. It needs all four
// stamps.
func (p *Packet) RoundTrip() (time.Duration, bool) {
	if !p.T1.Present() || !p.T2.Present() || !p.T3.Present() || !p.T4.Present() {
		return 0, false
	}
	return p.T4.At.Sub(p.T1.At) - p.T3.At.Sub(p.T2.At), true
}

// Residence is T3-T2: the time the packet spent in the reflector.
func (p *Packet) Residence() (time.Duration, bool) {
	if !p.T2.Present() || !p.T3.Present() {
		return 0, false
	}
	return p.T3.At.Sub(p.T2.At), true
}

// Reason says why a one-way delay is, or is not, defined.
type Reason uint8

// The reasons. The zero value is Unknown, so that a Bound or Delay that
// nobody filled in is never taken for a valid one.
const (
	// Unknown: nothing was ever said about the clock.
	Unknown Reason = iota
	// OK: the delay is defined and its bound holds.
	OK
	// NoStamp: a needed stamp is missing.
	NoStamp
	// NoClock: the configuration says that this host's clock is not disciplined.
	NoClock
	// ClockSilent: the clock daemon does not answer, and its last reply is too old.
	ClockSilent
	// LocalUnsynchronized: this host's clock is not synchronized.
	LocalUnsynchronized
	// LocalStepped: this host's clock was stepped within the window.
	LocalStepped
	// RemoteUnsynchronized: the remote end says S=0 in its Error Estimate.
	RemoteUnsynchronized
	// RemoteStepped: the remote end's clock was stepped within the window.
	RemoteStepped
	// BoundTooLarge: the combined bound exceeds the configured limit.
	BoundTooLarge
)

// Reasons lists all values in order.
func Reasons() []Reason {
	return []Reason{
		Unknown, OK, NoStamp, NoClock, ClockSilent, LocalUnsynchronized,
		LocalStepped, RemoteUnsynchronized, RemoteStepped, BoundTooLarge,
	}
}

// String is the value of the metric label `reason`.
func (r Reason) String() string {
	words := [...]string{
		Unknown: "unknown", OK: "ok", NoStamp: "no_stamp", NoClock: "no_clock",
		ClockSilent: "clock_silent", LocalUnsynchronized: "local_unsynchronized",
		LocalStepped: "local_stepped", RemoteUnsynchronized: "remote_unsynchronized", RemoteStepped: "remote_stepped",
		BoundTooLarge: "bound_too_large",
	}
	if int(r) >= len(words) || words[r] == "" {
		return "invalid"
	}
	return words[r]
}
