package chrony

import (
	"math"
	"time"

	"oneway.example/exporter/clock"
)

const (
	// sameUpdate: reference times nearer than this are of one update. chronyd moves the reference time a little with each
	// slew, and has at most one update per second.
	sameUpdate = 50 * time.Millisecond
	// ownStep is the maximum age of the sample that made chronyd step the clock: it steps at once after the exchange.
	ownStep = 500 * time.Millisecond
)

// leapUpdates is the number of updates that must not find an announced leap second, so that its source has inserted it, too: the first
// one may not see a step at all.
const leapUpdates = 4

// maxSamples is the number of updates in chronyd's regression (sourcestats.c, MAX_SAMPLES): after as many none is from
// before the step.
const maxSamples = 64

// settler decides when chronyd's replies are valid again after a step.
//
// chronyd does not detect a step of less than 10 s by another process: until its next update, which can be a quarter of an
// hour away, it continues to report a small bound. And that update, recognized by a new reference time, need not contain
// the step: the filter of a reference clock may still select samples from before it; the regression fits one line to
// samples of both sides; and because of the jump the new samples have little weight compared with the old ones, so that
// for a minute or more chronyd reports microseconds with an offset of a second.
//
// Therefore the settler keeps an account: the size of the step minus the offsets found by chronyd's updates since (the last
// offset of each). When they have found all of it, within the bounds before and now, or when no sample from before the step
// can be left, chronyd has settled.
//
// No wait is needed if chronyd itself stepped the clock, which is detected in one of two ways: it moved its reference time
// together with the clock (`chronyc makestep`), or it has just had an update whose offset is the step.
//
// An announced leap second is inserted by the kernel, as chronyd has asked for, and chronyd is not told (reference.c,
// leap_start_timeout). Its source has inserted it as well, so that no update finds it: a few that find nothing suffice.
type settler struct {
	last    *report // the last reply; nil: none yet
	steps   uint64  // up to which chronyd has settled
	waiting uint64  // the awaited step count, if it differs from steps
	account account
}

// account is the part of others' steps that chronyd has not found yet.
type account struct {
	reported   bool    // chronyd knew the time before the step
	correction float64 // seconds
	ambiguous  float64 // offset of an update that may have been before or after the step
	before     float64 // chronyd's bound before the step
	leap       float64 // an announced leap second, in seconds; 0: none
	updates    int
}

// settled reports whether the last reply, r, is valid.
func (a *account) settled(r *report) bool {
	tolerance := a.before + r.uncertainty()
	return a.updates > 0 && (!a.reported || a.updates >= maxSamples ||
		math.Abs(a.correction) <= tolerance || math.Abs(a.correction-a.ambiguous) <= tolerance ||
		a.leap != 0 && a.updates >= leapUpdates && math.Abs(a.correction-a.leap) <= tolerance)
}

// reply handles a reply. It returns the count of steps up to which chronyd has settled.
func (s *settler) reply(c clock.Check, r *report) uint64 {
	previous := s.last
	s.last = r
	switch {
	case c.Steps == s.steps:
	case s.waiting == c.Steps: // at least the second reply since the step
		if r.updated.IsZero() {
			s.account = account{} // chronyd has restarted, without old samples
		} else if updated(previous, r) {
			s.account.correction -= r.lastOffset
			s.account.updates++
		}
		if s.account.settled(r) {
			s.steps = c.Steps
		}
	default:
		s.stepped(c, previous, r)
	}
	if s.steps == c.Steps {
		s.waiting = c.Steps
	}
	return s.steps
}

// stepped handles the first reply after a step.
func (s *settler) stepped(c clock.Check, previous, r *report) {
	settled := s.waiting == s.steps
	s.waiting = c.Steps
	if settled {
		s.account = account{}
	}
	a := &s.account
	a.updates = 0
	if previous == nil || previous.updated.IsZero() || r.updated.IsZero() {
		a.reported = false
		return
	}
	own := steppedItself(previous, r, c)
	switch {
	case settled && (own || movedAlong(previous, r)):
		s.steps = c.Steps
		return
	case settled:
		a.reported, a.before = true, previous.uncertainty()
	}
	switch {
	case own:
		a.correction -= r.lastOffset
	case movedAlong(previous, r):
	default:
		step := (r.era - previous.era).Seconds()
		if a.leap = 0; settled && isLeapSecond(previous, r, c) {
			a.leap = step
		}
		a.correction += step
		if updated(previous, r) {
			a.ambiguous = r.lastOffset
		}
	}
}

// leapDistance is the largest time between midnight and a leap second: it is detected within a second, when the clock is at the second
// before midnight (insertion) or after it.
const leapDistance = 3 * time.Second

// isLeapSecond reports whether the step is a leap second that chronyd has announced.
func isLeapSecond(before, after *report, c clock.Check) bool {
	step := map[uint16]time.Duration{leapInsert: -time.Second, leapDelete: time.Second}[before.leap]
	wall := (c.SteppedAt + after.era) % (24 * time.Hour)
	return step != 0 && (after.era-before.era-step).Abs() <= time.Millisecond && min(wall, 24*time.Hour-wall) <= leapDistance
}

// updated reports whether there was an update between the two replies.
func updated(before, after *report) bool {
	return !after.updated.IsZero() && after.updated.Sub(before.updated).Abs() > sameUpdate
}

// movedAlong reports whether the reference time is unchanged on the monotonic scale.
func movedAlong(before, after *report) bool {
	return !before.updated.IsZero() && !after.updated.IsZero() &&
		(after.updatedAt()-before.updatedAt()).Abs() <= min(sameUpdate, (after.era-before.era).Abs()/2)
}

// steppedItself reports whether there is a new update, from just before the step, whose offset is the step.
func steppedItself(before, after *report, c clock.Check) bool {
	if !updated(before, after) {
		return false
	}
	at := after.updatedAt()
	if at < c.SteppedAt-ownStep || at > c.Now.Mono {
		return false
	}
	step := math.Abs((after.era - before.era).Seconds())
	return math.Abs(step-math.Abs(after.lastOffset)) <= math.Abs(before.offset)+step/100+1e-3
}
