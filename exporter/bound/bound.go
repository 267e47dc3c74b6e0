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
// its stamp and the wire (sample.Stamp.Held). A limit, not a proof: the error of a single
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
func Clocks(near, far sample.Bound) sample.Bound {
	switch {
	case near.Reason != sample.OK:
		return sample.Bound{Reason: near.Reason}
	case far.Reason != sample.OK:
		return sample.Bound{Reason: far.Reason}
	}
	sum := Sum(near.Error, far.Error)
	if why := Check(sum, 0); why != sample.OK {
		return sample.Bound{Reason: why}
	}
	return sample.Bound{Error: sum, Reason: sample.OK}
}

// SharedClock tells whether it suffices that both ends read one clock (package hostid): its
// error is in both stamps and cancels. That is used only where a clock is not trusted
// otherwise (decision 3). A step between the stamps does not cancel, and a configuration
// that says that there is no clock is obeyed.
func SharedClock(near, far sample.Bound) bool {
	switch near.Reason {
	case sample.NearStepped, sample.NoClock:
		return false
	case sample.OK:
		return far.Reason == sample.FarUnsynchronised
	default:
		return far.Reason != sample.FarStepped
	}
}
