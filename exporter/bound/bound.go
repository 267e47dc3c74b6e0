// Package bound says how far a one-way delay may be off, and when it says nothing.
//
// It is the one place where the parts of a bound are chosen, added and judged: light
// probes, load tests, calibration and the reflector use it.
//
//	bound = clock here + clock there + stamp here + stamp there
//
// # What is proven, and what is a limit
//
// Proven, given that the daemons tell the truth: each clock's share (chrony: |offset| +
// root dispersion + root delay/2, aged) and the time for which a packet was held between
// its stamp and the wire (sample.Stamp.TXUncertainty). A limit, not a proof: the error of a single
// stamp. It is the interface's calibration where that is trusted; else KernelError,
// UserError or CardError below, with the interrupt moderation that the driver tells of
// added to receive stamps. A stamp that is worse than its limit is not noticed by itself.
//
// Sums saturate: no part, however large, makes a small bound. A bound above Limit, or with
// a negative part, belongs to no valid delay (sample.BoundTooLarge).
package bound

import (
	"math"
	"time"

	"oneway.example/exporter/sample"
)

// Limit is the largest bound of a valid delay: what may be off by an hour says nothing.
const Limit = time.Hour

// Endless is a bound that says nothing.
const Endless = time.Duration(math.MaxInt64)

// Sum adds the parts of a bound. It is Endless if a part is negative, which no error is, or
// if the sum does not fit.
func Sum(parts ...time.Duration) time.Duration {
	var sum time.Duration
	for _, p := range parts {
		if p < 0 || p > Endless-sum {
			return Endless
		}
		sum += p
	}
	return sum
}

// Check is sample.OK, or why a bound belongs to no valid delay: it is negative, or larger
// than limit or Limit. A limit of zero stands for Limit.
func Check(b, limit time.Duration) sample.Reason {
	if limit <= 0 || limit > Limit {
		limit = Limit
	}
	if b < 0 || b > limit {
		return sample.BoundTooLarge
	}
	return sample.OK
}

// Claim is what is known of a clock that may be off by so much: of one that may be off by
// more than Limit nothing is, and what says so is more likely a fault of arithmetic or of a
// daemon than a clock.
func Claim(largest time.Duration) sample.Bound {
	if why := Check(largest, 0); why != sample.OK {
		return sample.Bound{Reason: why}
	}
	return sample.Bound{Error: largest, Reason: sample.OK}
}

// LowConfidence tells whether a bound exceeds its delay, of which then not even the sign is
// known. Such a delay is valid, and stays in every distribution: a filter by size would bias
// what it leaves.
func LowConfidence(d sample.Delay) bool { return d.OK() && d.Bound > d.Value.Abs() }

// Clocks is what both clocks together may be off by, or why that is not known: the sender's
// reason first.
func Clocks(local, remote sample.Bound) sample.Bound {
	switch {
	case local.Reason != sample.OK:
		return sample.Bound{Reason: local.Reason}
	case remote.Reason != sample.OK:
		return sample.Bound{Reason: remote.Reason}
	}
	return Claim(Sum(local.Error, remote.Error))
}

// SharedClock tells whether it suffices that both ends read one clock (package hostid): its
// error is in both stamps and cancels. That is used only where a clock is not trusted
// otherwise (decision 3). A step between the stamps does not cancel, and a configuration
// that says that there is no clock is obeyed.
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

// The limits of a single stamp's error against the clock that it was taken from.
const (
	// KernelError is that of the kernel's software stamp of a packet that was not held: it
	// is taken within microseconds of the driver (Linux,
	// Documentation/networking/timestamping.rst). The figure is the 99th percentile between
	// two stamps of a loaded 2-core host.
	KernelError = 25 * time.Microsecond
	// UserError is that of a stamp taken in user space, which misses the host's own delay:
	// the 99th percentile of a loaded 2-core host. A busy host does not bound it.
	UserError = 2 * time.Millisecond
	// CardError is that of a network card's stamp, on the card's own clock.
	CardError = time.Microsecond
	// CardConversion is how far a card's stamp converted to the system's clock may be off
	// at the most; above it nothing is converted (package tstamp/phc).
	CardConversion = 20 * time.Microsecond
)

// Host is what is known of the stamps of one end. The zero value is a host of unknown
// interrupt moderation, not calibrated, that is none of ours.
type Host struct {
	// Conversion is how far a card's stamps are off for their conversion to the system's
	// clock: CardConversion where nothing better is known.
	Conversion time.Duration
	// Moderation is for how long the interface may hold an interrupt back after a packet
	// has come (ethtool: rx-usecs): the kernel's receive stamp is late by as much. Zero:
	// none, or not told.
	Moderation time.Duration
	// Calibrated is that of this host's interface; the remote end's is not known here.
	Calibrated Calibration
	// Ours tells that what the end wrote into its packets without a word on its origin is a
	// stamp taken in user space. Of a foreign reflector it is covered by the Error
	// Estimate (RFC 8762 section 4.2.1).
	Ours bool
}

// sent limits the error of a transmit stamp, received that of a receive stamp.
func (h *Host) sent(s sample.Stamp) time.Duration { return h.limit(s, KernelError) }

func (h *Host) received(s sample.Stamp) time.Duration {
	return h.limit(s, Sum(KernelError, h.Moderation))
}

// Receive is the limit of the kernel's receive stamps of this host's interface, and whether a
// calibration stands for it: of the default with the moderation nobody has measured whether
// it holds on this interface.
func (h *Host) Receive() (limit time.Duration, calibrated bool) {
	limit = Sum(KernelError, h.Moderation)
	switch c := &h.Calibrated; {
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
		if !h.Ours {
			return 0
		}
		return UserError
	default:
		return max(UserError, s.TXUncertainty)
	}
}

// Ends are both ends' stamps, and so one path's. The zero value knows nothing of either.
type Ends struct {
	Local, Remote Host
	// Most is the largest bound of a valid delay; zero: Limit.
	Most time.Duration
}

// Stamps is how far a delay may be off for its two stamps, not calibrated.
func (e *Ends) Stamps(dir sample.Direction, sent, received sample.Stamp) time.Duration {
	if dir == sample.Reverse {
		return Sum(e.Remote.sent(sent), e.Local.received(received))
	}
	return Sum(e.Local.sent(sent), e.Remote.received(received))
}

// Spacing is how far the time between two receive stamps of this origin may be off. The
// kernel's come late and never early, so that one limit covers both; others may be off to either side.
func (e *Ends) Spacing(dir sample.Direction, received sample.Stamp) time.Duration {
	h := &e.Remote
	if dir == sample.Reverse {
		h = &e.Local
	}
	limit := h.received(received)
	if c := &h.Calibrated; c.Trusted && c.Origin == received.Origin {
		limit = max(c.Largest, received.TXUncertainty)
	}
	if received.Origin == sample.Kernel {
		return limit
	}
	return Sum(limit, limit)
}

// Delay is the one-way delay between two stamps with its bound, given what both clocks
// together may be off by. Its reason is sample.NoStamp where a stamp is missing; with any
// other reason there is a value, if not always a valid one.
//
// proof: the value is negative beyond its bound, which only a fault of a clock explains.
// That is judged by the stamps as they are: the median of the shortest paths is zero once a
// calibration has corrected them.
func (e *Ends) Delay(dir sample.Direction, sent, received sample.Stamp, clocks sample.Bound) (d sample.Delay, proof bool) {
	if !sent.Present() || !received.Present() {
		return sample.Delay{Reason: sample.NoStamp}, false
	}
	d = sample.Delay{Value: received.At.Sub(sent.At), Reason: clocks.Reason, TXUncertainty: max(sent.TXUncertainty, received.TXUncertainty)}
	if d.OK() {
		d.Bound = Sum(clocks.Error, e.Stamps(dir, sent, received))
		if d.Reason = Check(d.Bound, 0); d.OK() {
			proof = d.Value < -d.Bound
		}
	}
	local, assumed := sent, e.Local.sent(sent)
	if dir == sample.Reverse {
		local, assumed = received, e.Local.received(received)
	}
	d = e.Local.Calibrated.Correct(d, local, assumed)
	if d.OK() {
		d.Reason = Check(d.Bound, e.Most)
	}
	return d, proof
}

// Calibration is what was measured of one stamp of an interface (package calibration). The
// zero value corrects nothing.
type Calibration struct {
	// Origin of the stamps that these are the errors of; sample.Absent: of none.
	Origin sample.Origin
	// Systematic is removed from a delay for its local stamp. It may be negative.
	Systematic time.Duration
	// Random is how far the error of 95 % of the stamps is from Systematic at the
	// most. Not negative.
	Random time.Duration
	// Trusted: Largest, how far any was, stands in the bound in place of what is
	// assumed, also if it is smaller. Otherwise a bound is only widened.
	Trusted bool
	Largest time.Duration
}

// Correct removes the systematic error of the local stamp from d, the delay of either
// direction, and brings its bound up to date. The bound of d already has assumed for
// the error of that stamp. A stamp of another origin, a user-space fallback for
// instance, leaves d as it is. The value of a delay without a bound is corrected
// as well, so that variation is taken between like and like.
func (c Calibration) Correct(d sample.Delay, local sample.Stamp, assumed time.Duration) sample.Delay {
	if c.Origin == sample.Absent || local.Origin != c.Origin {
		return d
	}
	d.Value -= c.Systematic
	if !d.OK() {
		return d
	}
	others := d.Bound - assumed // of the clocks and of the remote stamp
	if c.Trusted {
		d.Bound = Sum(others, max(c.Largest, local.TXUncertainty))
	} else {
		d.Bound = Sum(others, max(c.Random, assumed), c.Systematic.Abs())
	}
	return d
}
