// Package bound computes the error bound of a one-way delay, and decides whether it is valid.
//
// It is the only place where the parts of a bound are chosen, added and judged, for light probes, load tests,
// calibration and the reflector.
//
//	bound = local clock + remote clock + local timestamp + remote timestamp
//
// # Proven parts and limits
//
// Proven, if the daemons' reports are correct: each clock's part (chrony: |offset| + root dispersion + root
// delay/2, aged) and the time for which a packet was held between its timestamp and the wire
// (sample.Stamp.TXUncertainty). A limit without proof: the error of a single timestamp. It is the interface's
// calibration if that is trusted; otherwise KernelError, UserError or CardError below, plus the driver's interrupt
// moderation for receive timestamps. A timestamp with a larger error is not detected by itself.
//
// Sums saturate, so that a large part never gives a small bound. A bound above Limit, or with a negative part,
// belongs to no valid delay (sample.BoundTooLarge).
package bound

import (
	"math"
	"time"

	"oneway.example/exporter/core/sample"
)

// Limit is the largest bound of a valid delay.
const Limit = time.Hour

// Apart is the largest difference of timestamps of two ends that is a delay: a larger one shows that a clock is wrong.
const Apart = 365 * 24 * time.Hour

// Unbounded is a bound without information.
const Unbounded = time.Duration(math.MaxInt64)

// Sum adds the parts of a bound. It is Unbounded if a part is negative, which is invalid, or if the sum overflows.
func Sum(parts ...time.Duration) time.Duration {
	var sum time.Duration
	for _, p := range parts {
		if p < 0 || p > Unbounded-sum {
			return Unbounded
		}
		sum += p
	}
	return sum
}

// Check returns sample.OK, or why a bound belongs to no valid delay: it is negative, or larger than limit or Limit.
// A limit of zero means Limit.
func Check(b, limit time.Duration) sample.Reason {
	if limit <= 0 || limit > Limit {
		limit = Limit
	}
	if b < 0 || b > limit {
		return sample.BoundTooLarge
	}
	return sample.OK
}

// ClockBound is the quality of a clock with this largest error. Above Limit it is unknown, since such a value is more
// likely a fault of arithmetic or of a daemon.
func ClockBound(largest time.Duration) sample.Bound {
	if why := Check(largest, 0); why != sample.OK {
		return sample.Bound{Reason: why}
	}
	return sample.Bound{Error: largest, Reason: sample.OK}
}

// LowConfidence reports whether a bound exceeds its delay, so that not even the sign is known. Such a delay is
// valid and stays in every distribution: a filter by size would bias the rest.
func LowConfidence(d sample.Delay) bool { return d.OK() && d.Bound > d.Value.Abs() }

// Clocks is the combined error bound of both clocks, or why it is unknown: the sender's reason first.
func Clocks(local, remote sample.Bound) sample.Bound {
	switch {
	case local.Reason != sample.OK:
		return sample.Bound{Reason: local.Reason}
	case remote.Reason != sample.OK:
		return sample.Bound{Reason: remote.Reason}
	}
	return ClockBound(Sum(local.Error, remote.Error))
}

// SharedClock reports whether it suffices that both ends read one clock (package hostid): its error is in both
// timestamps and cancels. This is used only if a clock is not trusted otherwise (decision 3). A step between the
// timestamps does not cancel, and a configuration without a clock is respected.
func SharedClock(local, remote sample.Bound) bool {
	switch local.Reason {
	case sample.LocalStepped, sample.NoClock:
		return false
	case sample.OK:
		return remote.Reason == sample.RemoteUnsynchronized
	default:
		return remote.Reason != sample.RemoteStepped
	}
}

// The error limits of a single timestamp relative to its clock.
const (
	// KernelError is the error of the kernel's software timestamp of a packet that was not held: it is taken within
	// microseconds of the driver (Linux, Documentation/networking/timestamping.rst). The value is the 99th
	// percentile between two timestamps of a loaded 2-core host.
	KernelError = 25 * time.Microsecond
	// UserError is the error of a timestamp taken in user space, which lacks the host's own delay: the 99th
	// percentile of a loaded 2-core host. A busy host may exceed it.
	UserError = 2 * time.Millisecond
	// CardError is the error of a network card's timestamp, on the card's own clock.
	CardError = time.Microsecond
	// CardConversion is the largest error of a card's timestamp converted to the system's clock; above it nothing
	// is converted (package tstamp/phc).
	CardConversion = 20 * time.Microsecond
)

// Host is the quality of the timestamps of one end. The zero value is a foreign host, not calibrated, of unknown
// interrupt moderation.
type Host struct {
	// Conversion is the error of converting a card's timestamps to the system's clock; CardConversion if no better
	// value is known.
	Conversion time.Duration
	// Moderation is the longest time for which the interface delays an interrupt after a packet's arrival (ethtool:
	// rx-usecs), which delays the kernel's receive timestamp. Zero: none, or not reported.
	Moderation time.Duration
	// Calibration is the calibration of this host's interface; the remote end's is unknown here.
	Calibration Calibration
	// RunsOneway: timestamps in the end's packets without a reported origin were taken in user space. Those of a
	// foreign reflector are covered by the Error Estimate (RFC 8762 section 4.2.1).
	RunsOneway bool
}

// sent is the error limit of a transmit timestamp, received that of a receive timestamp.
func (h *Host) sent(s sample.Stamp) time.Duration { return h.limit(s, KernelError) }

func (h *Host) received(s sample.Stamp) time.Duration {
	return h.limit(s, Sum(KernelError, h.Moderation))
}

// Receive is the error limit of the kernel's receive timestamps of this host's interface, and whether it is
// calibrated: the default plus moderation was not measured on this interface.
func (h *Host) Receive() (limit time.Duration, calibrated bool) {
	limit = Sum(KernelError, h.Moderation)
	switch c := &h.Calibration; {
	case c.Origin == sample.Absent:
		return limit, false
	case c.Trusted:
		return c.Largest, true
	default:
		return Sum(max(c.Random, limit), c.Systematic.Abs()), true
	}
}

func (h *Host) limit(s sample.Stamp, kernel time.Duration) time.Duration {
	switch s.Origin {
	case sample.Hardware:
		return max(Sum(CardError, h.Conversion), s.TXUncertainty)
	case sample.Kernel, sample.FollowUp:
		return max(kernel, s.TXUncertainty)
	case sample.InPacket:
		if !h.RunsOneway {
			return 0
		}
		return max(UserError, s.TXUncertainty)
	default:
		return max(UserError, s.TXUncertainty)
	}
}

// Ends are the timestamp qualities of both ends of one path. The zero value: both unknown.
type Ends struct {
	Local, Remote Host
	// Limit is the largest bound of a valid delay; zero: Limit.
	Limit time.Duration
}

// StampError is the error limit of a delay from its two timestamps, without calibration.
func (e *Ends) StampError(dir sample.Direction, sent, received sample.Stamp) time.Duration {
	if dir == sample.Reverse {
		return Sum(e.Remote.sent(sent), e.Local.received(received))
	}
	return Sum(e.Local.sent(sent), e.Remote.received(received))
}

// ResidenceError limits the error of the residence time of a packet in the remote end (sample.Packet.Residence), which has one clock.
func (e *Ends) ResidenceError(received, sent sample.Stamp) time.Duration {
	return Sum(e.Remote.received(received), e.Remote.sent(sent))
}

// RoundTripError limits the error of a round trip (sample.Packet.RoundTrip): of its four timestamps, and of the rates of both clocks
// over the residence time.
func (e *Ends) RoundTripError(p *sample.Packet) time.Duration {
	residence, _ := p.Residence()
	return Sum(e.ResidenceError(p.T2, p.T3), e.Local.sent(p.T1), e.Local.received(p.T4), max(0, residence)/rateDivisor)
}

// rateDivisor: two clocks that are slewed differ by at most a quarter in rate (adjtimex(2): each by 10 % and 500 ppm).
const rateDivisor = 4

// SpacingError is the error limit of the time between two receive timestamps of this origin. The kernel's are late and
// never early, so that one limit covers both; others have errors of either sign.
func (e *Ends) SpacingError(dir sample.Direction, received sample.Stamp) time.Duration {
	h := &e.Remote
	if dir == sample.Reverse {
		h = &e.Local
	}
	limit := h.received(received)
	if c := &h.Calibration; c.Trusted && c.Origin == received.Origin {
		limit = max(c.Largest, received.TXUncertainty)
	}
	if received.Origin == sample.Kernel {
		return limit
	}
	return Sum(limit, limit)
}

// Delay is the one-way delay between two timestamps with its bound, given the combined bound of both clocks. Its
// reason is sample.NoStamp if a timestamp is missing; with any other reason there is a value, though not always a
// valid one.
//
// proof: the value is negative beyond its bound, which proves a clock fault. This uses uncorrected timestamps: the
// median of the shortest paths is zero after the correction by a calibration.
func (e *Ends) Delay(dir sample.Direction, sent, received sample.Stamp, clocks sample.Bound) (d sample.Delay, proof bool) {
	if !sent.Present() || !received.Present() {
		return sample.Delay{Reason: sample.NoStamp}, false
	}
	d = sample.Delay{Value: received.At.Sub(sent.At), Reason: clocks.Reason, TXUncertainty: max(sent.TXUncertainty, received.TXUncertainty)}
	if d.OK() {
		d.Bound = Sum(clocks.Error, e.StampError(dir, sent, received))
		if d.Reason = Check(d.Bound, 0); d.OK() && d.Value.Abs() > Apart {
			d.Reason = sample.ClocksApart
		}
		proof = d.ProvesFault()
	}
	local, assumed := sent, e.Local.sent(sent)
	if dir == sample.Reverse {
		local, assumed = received, e.Local.received(received)
	}
	d = e.Local.Calibration.Correct(d, local, assumed)
	if d.OK() {
		d.Reason = Check(d.Bound, e.Limit)
	}
	return d, proof
}

// Calibration is the measured error of one kind of timestamp of an interface (package calibration). The zero value
// corrects nothing.
type Calibration struct {
	// Origin of the timestamps with these errors; sample.Absent: none.
	Origin sample.Origin
	// Systematic is subtracted from a delay for its local timestamp. It may be negative.
	Systematic time.Duration
	// Random is the largest distance from Systematic of the error of 95 % of the timestamps. Not negative.
	Random time.Duration
	// Trusted: Largest, the largest error measured, replaces the assumed limit in the bound, also if it is smaller.
	// Otherwise a bound is only widened.
	Trusted bool
	Largest time.Duration
}

// Correct removes the systematic error of the local timestamp from d, the delay of either direction, and updates
// its bound, which includes assumed for that timestamp. A timestamp of another origin, such as a user-space
// fallback, leaves d unchanged. The value of a delay without a bound is corrected as well, so that variation
// compares equal kinds.
func (c Calibration) Correct(d sample.Delay, local sample.Stamp, assumed time.Duration) sample.Delay {
	if c.Origin == sample.Absent || local.Origin != c.Origin {
		return d
	}
	d.Value -= c.Systematic
	if !d.OK() {
		return d
	}
	others := d.Bound - assumed // of the clocks and of the remote timestamp
	if c.Trusted {
		d.Bound = Sum(others, max(c.Largest, local.TXUncertainty))
	} else {
		d.Bound = Sum(others, max(c.Random, assumed), c.Systematic.Abs())
	}
	return d
}
