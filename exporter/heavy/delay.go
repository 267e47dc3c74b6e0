package heavy

import (
	"time"

	"oneway.example/exporter/bound"
	"oneway.example/exporter/clock"
	"oneway.example/exporter/control"
	"oneway.example/exporter/instant"
	"oneway.example/exporter/sample"
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
// microseconds a minute.
func (t *Transfer) judgeClocks() {
	near, far := t.Near.verdict(), t.Far.verdict()
	switch far.Reason { // as that of the far end
	case sample.OK, sample.BoundTooLarge:
	case sample.NearStepped:
		far.Reason = sample.FarStepped
	default:
		far.Reason = sample.FarUnsynchronised
	}
	t.bound = bound.Clocks(near, far)
	if t.Shared && bound.SharedClock(near, far) {
		t.bound = sample.Bound{Reason: sample.OK}
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
	case min(c.Before.Bound, c.After.Bound, c.Largest) < 0:
		return sample.Bound{Reason: sample.BoundTooLarge} // no error is negative
	}
	return sample.Bound{Error: max(c.Before.Bound, c.After.Bound, c.Largest), Reason: sample.OK}
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
	return min(crystal, 2*float64(t.bound.Error)/float64(took))
}

// Delay is the one-way delay of packet i, with its bound: both clocks, and both stamps.
// Its reason is sample.NoStamp for a packet that did not arrive intact, or lacks a stamp;
// with any other reason there is a value, if not always a valid one.
func (t *Transfer) Delay(i int) sample.Delay {
	p := &t.Packets[i]
	if !p.stamped() {
		return sample.Delay{Reason: sample.NoStamp}
	}
	d, _ := t.ends.Delay(t.Direction, p.Sent, p.Arrived, t.bound)
	return d
}

// StampError is how far a delay of this transfer may be off for the stamps of both ends,
// of packets that were not held: the largest of the origins that occur.
func (t *Transfer) StampError() (most time.Duration) {
	for i := range t.Packets {
		if p := &t.Packets[i]; p.stamped() {
			sent := p.Sent
			sent.Held = 0
			most = max(most, t.ends.Stamps(t.Direction, sent, p.Arrived))
		}
	}
	return most
}

// SpacingError is how far the time between two arrivals of this transfer may be off for the
// receiver's stamps: the largest of the origins that occur. What the far end's interface holds back is not known here.
func (t *Transfer) SpacingError() (most time.Duration) {
	for i := range t.Packets {
		if p := &t.Packets[i]; p.stamped() {
			most = max(most, t.ends.Spacing(t.Direction, p.Arrived))
		}
	}
	return most
}
