// Package sample holds the measured values of one test packet: its number, its four timestamps with their origins,
// and the error bounds of the clocks.
//
// The four timestamps are those of RFC 8762 section 4: T1 the sender sends, T2 the reflector receives, T3 the
// reflector sends, T4 the sender receives. Sockets and sessions obtain them; estimators interpret them.
package sample

import (
	"slices"
	"time"

	"oneway.example/exporter/core/instant"
)

// Origin is where a timestamp was taken. The zero value means there is none.
type Origin uint8

// The origins, worst to best except for InPacket and FollowUp, whose quality is known to the remote end only.
const (
	// Absent: no timestamp.
	Absent Origin = iota
	// User: read from the clock in user space next to the system call; it includes the host's own delay (6..70 us
	// on an idle host, ms on a busy one).
	User
	// Kernel: SO_TIMESTAMPING software timestamp, taken where the packet meets the driver.
	Kernel
	// Hardware: taken by the network card and converted to the system clock.
	Hardware
	// InPacket: written by the remote end into its packet; its origin is unknown.
	InPacket
	// FollowUp: the remote end's true transmit timestamp, sent later (RFC 8972 section 4.7, Follow-Up Telemetry, or
	// the private TLV of our own reflector).
	FollowUp
)

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

// Stamp is an instant and its origin. The zero value is an absent timestamp.
type Stamp struct {
	At     instant.Time
	Origin Origin
	// TXUncertainty is how much later than At the packet may have left: the host may have paused between the
	// timestamp and the wire. Only for transmit timestamps; zero: unknown.
	TXUncertainty time.Duration
}

// Present reports whether there is a timestamp.
func (s Stamp) Present() bool { return s.Origin != Absent }

// Bound is the quality of one host's clock when it took a packet's timestamp.
type Bound struct {
	// Error is the largest offset to UTC by the host's own estimate. Undefined unless Reason is OK.
	Error time.Duration
	// Reason is OK, or why the clock is not trusted. The zero value is Unknown.
	Reason Reason
}

// Packet is one answered test packet. A timestamp that is absent stays zero.
type Packet struct {
	// Seq is the sender's number of the packet, extended to 64 bits.
	Seq uint64
	// ReverseSeq is the reflector's number of its reply; equal to Seq with a
	// stateless reflector.
	ReverseSeq     uint64
	T1, T2, T3, T4 Stamp
	// Local is the quality of the sender's clock, Remote of the reflector's.
	Local, Remote Bound
}

// Direction of travel, relative to the agent that sends the test packets.
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

// Delay is a one-way delay as an interval: the true value is in Value +- Bound. It is defined only if Reason is OK.
// The zero value is undefined (Unknown).
type Delay struct {
	// Value may be negative, as a sign of a clock fault; it is never clamped.
	Value time.Duration
	// Bound is the combined error bound of both clocks and both timestamps (package bound).
	Bound  time.Duration
	Reason Reason
	// TXUncertainty is the part of Bound for the time that a host may have held the packet after its timestamp.
	TXUncertainty time.Duration
}

// OK reports whether the delay is defined.
func (d Delay) OK() bool { return d.Reason == OK }

// FaultTime is how long one delay that proves a clock wrong (ProvesFault) counts against the delays after it. The clock is as wrong while
// a queue or another route hides it: the delays of the direction that was negative are above 0 then, and false. A step of either
// clock ends it.
const FaultTime = 5 * time.Minute

// ProvesFault reports whether the delay is negative beyond its bound: no path has such a delay, so a clock is wrong by more than its bound.
func (d Delay) ProvesFault() bool { return d.OK() && d.Value < -d.Bound }

// RoundTrip is (T4-T1)-(T3-T2), in which clock offsets cancel. It needs all four timestamps. It is undefined if a clock was
// stepped between two of them, and if a timestamp is wrong: a reflector does not send before it receives, nor keep a packet for longer
// than until its reply arrives.
func (p *Packet) RoundTrip() (time.Duration, bool) {
	residence, ok := p.Residence()
	if !ok || residence < 0 || !p.T1.Present() || !p.T4.Present() || p.Local.Reason == LocalStepped || p.Remote.Reason == RemoteStepped {
		return 0, false
	}
	trip := p.T4.At.Sub(p.T1.At) - residence
	return max(trip, 0), trip >= 0
}

// Residence is T3-T2: the residence time of the packet in the reflector.
func (p *Packet) Residence() (time.Duration, bool) {
	if !p.T2.Present() || !p.T3.Present() {
		return 0, false
	}
	return p.T3.At.Sub(p.T2.At), true
}

// Reason is why a one-way delay is, or is not, defined.
type Reason uint8

// The reasons. The zero value is Unknown, so that an unset Bound or Delay is never valid.
const (
	// Unknown: the quality of the clock was never reported.
	Unknown Reason = iota
	// OK: the delay is defined and its bound holds.
	OK
	// NoStamp: a required timestamp is missing.
	NoStamp
	// NoClock: this host's clock is not disciplined, by configuration.
	NoClock
	// ClockSilent: the clock daemon does not reply, and its last reply is too old.
	ClockSilent
	// LocalUnsynchronized: this host's clock is not synchronized.
	LocalUnsynchronized
	// LocalStepped: this host's clock was stepped within the window.
	LocalStepped
	// RemoteUnsynchronized: the remote end has S=0 in its Error Estimate.
	RemoteUnsynchronized
	// RemoteStepped: the remote end's clock was stepped within the window.
	RemoteStepped
	// BoundTooLarge: the combined bound exceeds the configured limit.
	BoundTooLarge
	// TransmitBeforeReceive: the remote end's transmit timestamp precedes its receive timestamp, so that one of them is wrong.
	TransmitBeforeReceive
	// ResidenceTooLong: the residence time in the remote end exceeds the time until the reply arrived, so that one of its timestamps is wrong.
	ResidenceTooLong
	// WrongFormat: the remote end's timestamps are not of the format (NTP or PTP) that the Z bit of its Error Estimate names.
	WrongFormat
	// PTPInUTC: the remote end's timestamps in PTP format are in UTC instead of TAI.
	PTPInUTC
	// ClocksApart: one of the clocks is wrong, whatever its bound: the timestamps of both ends are further apart than bound.Apart, or, of a load
	// test, packets arrived before they were sent, or after the transfer.
	ClocksApart
)

// Reasons lists all values in order.
func Reasons() []Reason {
	return []Reason{
		Unknown, OK, NoStamp, NoClock, ClockSilent, LocalUnsynchronized,
		LocalStepped, RemoteUnsynchronized, RemoteStepped, BoundTooLarge, TransmitBeforeReceive, ResidenceTooLong, WrongFormat, PTPInUTC, ClocksApart,
	}
}

// InWords is a reason, by the value of its label, as a sentence has it; other texts stay.
func InWords(reason string) string {
	for _, r := range Reasons() {
		if r.String() == reason && r != OK {
			return r.words()
		}
	}
	return reason
}

// Values returns reasons with their words, as metric.Desc.Values has them.
func Values(reasons ...Reason) (all []string) {
	for _, r := range reasons {
		all = append(all, r.String()+": "+r.words())
	}
	return all
}

// Invalid lists the reasons of a delay that has no valid error bound.
func Invalid() []Reason { return slices.DeleteFunc(Reasons(), func(r Reason) bool { return r == OK }) }

func (r Reason) words() string {
	return [...]string{
		Unknown: "the quality of the clocks is not known", NoStamp: "timestamps are missing",
		NoClock:     "this host has no synchronized clock, since the clock source is none",
		ClockSilent: "this host's clock daemon does not reply", LocalUnsynchronized: "this host's clock is not synchronized",
		LocalStepped: "this host's clock was stepped", RemoteUnsynchronized: "the remote clock is not synchronized",
		RemoteStepped: "the remote clock was stepped", BoundTooLarge: "the error bound is too large",
		TransmitBeforeReceive: "the reflector's transmit timestamp precedes its receive timestamp",
		ResidenceTooLong:      "by the reflector's timestamps it kept the packet for longer than until its reply arrived",
		WrongFormat:           "the reflector's timestamps are not of the format that its Z bit says",
		PTPInUTC:              "the reflector's PTP time is UTC, not TAI",
		ClocksApart:           "the timestamps of both ends are impossible within the error bounds of their clocks: one of the clocks is wrong",
	}[r]
}

// String is the value of the metric label `reason`.
func (r Reason) String() string {
	words := [...]string{
		Unknown: "unknown", OK: "ok", NoStamp: "no_timestamp", NoClock: "no_clock",
		ClockSilent: "clock_silent", LocalUnsynchronized: "local_unsynchronized",
		LocalStepped: "local_stepped", RemoteUnsynchronized: "remote_unsynchronized", RemoteStepped: "remote_stepped",
		BoundTooLarge: "bound_too_large", TransmitBeforeReceive: "transmit_before_receive", ResidenceTooLong: "residence_too_long", WrongFormat: "wrong_format", PTPInUTC: "ptp_in_utc", ClocksApart: "clocks_apart",
	}
	if int(r) >= len(words) || words[r] == "" {
		return "invalid"
	}
	return words[r]
}
