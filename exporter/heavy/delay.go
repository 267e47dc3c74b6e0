package heavy

import (
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/control"
	"oneway.example/exporter/instant"
	"oneway.example/exporter/sample"
	"oneway.example/exporter/tstamp/phc"
)

// clockOf is what this host's monitor says of its clock at an instant.
func clockOf(m clock.Monitor, at instant.Time) control.Clock {
	q := m.Quality(at)
	return control.Clock{At: at, Bound: q.Bound.Error, Reason: q.Bound.Reason.String(), Steps: q.Steps}
}

// reasonNamed is the reason of a word; an unknown word is an unknown clock.
func reasonNamed(word string) sample.Reason {
	for _, r := range sample.Reasons() {
		if r.String() == word {
			return r
		}
	}
	return sample.Unknown
}

// judgeClocks says what both clocks together are worth for this transfer. A clock's error
// is the larger of its bounds before and after, and of what was seen between; the far
// clock's is not seen between, where it can only have grown as a clock's bound does, some
// microseconds a minute. Where both ends read one clock its error
// is in both stamps and cancels; a step does not, and a configuration that says that
// there is no clock is obeyed.
func (t *Transfer) judgeClocks() {
	near, far := t.Near.verdict(), t.Far.verdict()
	if far.Reason != sample.OK && far.Reason != sample.NearStepped {
		far.Reason = sample.FarUnsynchronised
	}
	switch {
	case near.Reason == sample.NearStepped:
		t.bound = near
	case far.Reason == sample.NearStepped:
		t.bound = sample.Bound{Reason: sample.FarStepped}
	case t.Shared && near.Reason != sample.NoClock:
		t.bound = sample.Bound{Reason: sample.OK}
	case near.Reason != sample.OK:
		t.bound = sample.Bound{Reason: near.Reason}
	case far.Reason != sample.OK:
		t.bound = sample.Bound{Reason: far.Reason}
	default:
		t.bound = sample.Bound{Error: near.Error + far.Error, Reason: sample.OK}
	}
}

// verdict is that of one clock, as if it were the near one.
func (c Clocks) verdict() sample.Bound {
	before, after := reasonNamed(c.Before.Reason), reasonNamed(c.After.Reason)
	switch {
	case c.Before.Steps != c.After.Steps || before == sample.NearStepped || after == sample.NearStepped:
		return sample.Bound{Reason: sample.NearStepped}
	case before != sample.OK:
		return sample.Bound{Reason: before}
	case after != sample.OK:
		return sample.Bound{Reason: after}
	}
	return sample.Bound{Error: max(c.Before.Bound, c.After.Bound, c.Largest, 0), Reason: sample.OK}
}

// Bound is what both clocks together may be off by during the transfer, stamps apart.
func (t *Transfer) Bound() sample.Bound { return t.bound }

// Stepped tells whether a clock was stepped between the beginning and the end: then not
// even the differences between delays mean anything.
func (t *Transfer) Stepped() bool {
	return t.bound.Reason == sample.NearStepped || t.bound.Reason == sample.FarStepped
}

// crystal is how fast two clocks that nothing disciplines drift apart at the most: 50 ppm
// each, the tolerance of ordinary oscillators.
const crystal = 100e-6

// Drift is how far, as a ratio of time, the difference of both clocks may change while the
// transfer lasts: by no more than two oscillators' worth, and of clocks within their
// bounds by no more than from one end of both to the other.
func (t *Transfer) Drift() float64 {
	if t.Shared && !t.Stepped() {
		return 0
	}
	took := t.Duration()
	if t.bound.Reason != sample.OK || took <= 0 {
		return crystal
	}
	return min(crystal, float64(2*t.bound.Error)/float64(took))
}

// Delay is the one-way delay of packet i, with its bound: both clocks, and both stamps.
// Its reason is sample.NoStamp for a packet that did not arrive intact, or lacks a stamp;
// with any other reason there is a value, if not always a valid one.
func (t *Transfer) Delay(i int) sample.Delay {
	p := &t.Packets[i]
	if !p.stamped() {
		return sample.Delay{Reason: sample.NoStamp}
	}
	d := sample.Delay{Value: p.Arrived.At.Sub(p.Sent.At), Reason: t.bound.Reason}
	if d.OK() {
		d.Bound = t.bound.Error + stampError(p.Sent) + stampError(p.Arrived)
	}
	near := p.Sent
	if t.Direction == sample.Reverse {
		near = p.Arrived
	}
	return t.calibrated.Correct(d, near, stampError(near))
}

// stampError bounds the error of one stamp against the clock that it was taken from; the
// figures, and where they come from, are those of package probes/stamp.
func stampError(s sample.Stamp) time.Duration {
	const (
		kernel = 25 * time.Microsecond
		user   = 2 * time.Millisecond
	)
	switch s.Origin {
	case sample.Hardware:
		return max(time.Microsecond+phc.MaxUncertainty, s.Held)
	case sample.Kernel, sample.FollowUp:
		return max(kernel, s.Held)
	default:
		return max(user, s.Held)
	}
}

// StampError is how far a delay of this transfer may be off for the stamps of both ends,
// of packets that were not held: the largest of the origins that occur.
func (t *Transfer) StampError() (most time.Duration) {
	for i := range t.Packets {
		if p := &t.Packets[i]; p.stamped() {
			p := *p
			p.Sent.Held, p.Arrived.Held = 0, 0
			most = max(most, stampError(p.Sent)+stampError(p.Arrived))
		}
	}
	return most
}
