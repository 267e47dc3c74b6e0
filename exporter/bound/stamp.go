package bound

import (
	"time"

	"oneway.example/exporter/sample"
)

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
	// Calibrated is that of this host's interface; the far end's is not known here.
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
		return max(Sum(CardError, h.Conversion), s.Held)
	case sample.Kernel, sample.FollowUp:
		return max(kernel, s.Held)
	case sample.InPacket:
		if !h.Ours {
			return 0
		}
		return UserError
	default:
		return max(UserError, s.Held)
	}
}

// Ends are both ends' stamps, and so one path's. The zero value knows nothing of either.
type Ends struct {
	Near, Far Host
	// Most is the largest bound of a valid delay; zero: Limit.
	Most time.Duration
}

// Stamps is how far a delay may be off for its two stamps, not calibrated.
func (e *Ends) Stamps(dir sample.Direction, sent, received sample.Stamp) time.Duration {
	if dir == sample.Reverse {
		return Sum(e.Far.sent(sent), e.Near.received(received))
	}
	return Sum(e.Near.sent(sent), e.Far.received(received))
}

// Spacing is how far the time between two receive stamps of this origin may be off. The
// kernel's come late and never early, so that one limit covers both; others may be off to either side.
func (e *Ends) Spacing(dir sample.Direction, received sample.Stamp) time.Duration {
	h := &e.Far
	if dir == sample.Reverse {
		h = &e.Near
	}
	limit := h.received(received)
	if c := &h.Calibrated; c.Trusted && c.Origin == received.Origin {
		limit = max(c.Largest, received.Held)
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
	d = sample.Delay{Value: received.At.Sub(sent.At), Reason: clocks.Reason, Held: max(sent.Held, received.Held)}
	if d.OK() {
		d.Bound = Sum(clocks.Error, e.Stamps(dir, sent, received))
		if d.Reason = Check(d.Bound, 0); d.OK() {
			proof = d.Value < -d.Bound
		}
	}
	near, assumed := sent, e.Near.sent(sent)
	if dir == sample.Reverse {
		near, assumed = received, e.Near.received(received)
	}
	d = e.Near.Calibrated.Correct(d, near, assumed)
	if d.OK() {
		d.Reason = Check(d.Bound, e.Most)
	}
	return d, proof
}
