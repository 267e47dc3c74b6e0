package chrony

import (
	"math"
	"time"

	"oneway.example/exporter/clock"
)

const (
	// sameUpdate: reference times nearer than this are of one update. chronyd moves
	// the reference time a little with each slew, and updates not more often than
	// every second.
	sameUpdate = 50 * time.Millisecond
	// ownStep is how long before its own step chronyd can have taken the sample that
	// made it step: it steps at once, only the exchange lies between.
	ownStep = 500 * time.Millisecond
)

// wholeRegister is how many updates chronyd's regression can remember
// (sourcestats.c, MAX_SAMPLES): after as many nothing is left of before the step.
const wholeRegister = 64

// settler decides when chronyd's word is worth something again after a step.
//
// chronyd does not notice that somebody else steps the clock by less than 10 s: until
// its next update, which can be a quarter of an hour away, it goes on to report a
// small bound. And that update, recognized by a new reference time, need not see the
// step either. A reference clock's filter may still choose samples from before it;
// the regression fits one line to samples of both sides; and the filter's memory of
// the jump makes the good samples weigh nothing beside the old ones, so that for a
// minute or more chronyd reports microseconds while it is a second off.
//
// So the settler keeps an account: what the clock was stepped by, less what chronyd's
// updates have found since (the last offset of each). When they have found it all,
// to within the bounds of before and now, or when nothing can be left of the time
// before the step, chronyd has settled.
//
// No waiting is needed when chronyd stepped the clock itself, which shows in one of
// two ways: it moved its reference time along with the clock (`chronyc makestep`), or
// it has just had an update whose offset is the step.
type settler struct {
	last    *report // the last reply; nil: none yet
	steps   uint64  // up to which chronyd's word is good
	waiting uint64  // the step count waited for, if it is not steps
	account account
}

// account is what chronyd has still to find of steps that were not its own.
type account struct {
	known   bool    // chronyd knew the time before the step
	owed    float64 // seconds
	doubt   float64 // what an update has found that may have been before or after the step
	before  float64 // chronyd's bound before the step
	updates int
}

// settled reports whether the last reply, r, may be believed.
func (a *account) settled(r *report) bool {
	tolerance := a.before + r.uncertainty()
	return a.updates > 0 && (!a.known || a.updates >= wholeRegister ||
		math.Abs(a.owed) <= tolerance || math.Abs(a.owed-a.doubt) <= tolerance)
}

// reply takes a reply in. It returns the count of steps up to which chronyd
// has settled.
func (s *settler) reply(c clock.Check, r *report) uint64 {
	previous := s.last
	s.last = r
	switch {
	case c.Steps == s.steps:
	case s.waiting == c.Steps: // at least the second reply since the step
		if r.updated.IsZero() {
			s.account = account{} // a chronyd that has started since, and remembers nothing
		} else if updated(previous, r) {
			s.account.owed -= r.lastOffset
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

// stepped takes in the first reply after a step.
func (s *settler) stepped(c clock.Check, previous, r *report) {
	settled := s.waiting == s.steps
	s.waiting = c.Steps
	if settled {
		s.account = account{}
	}
	a := &s.account
	a.updates = 0
	if previous == nil || previous.updated.IsZero() || r.updated.IsZero() {
		a.known = false
		return
	}
	own := steppedItself(previous, r, c)
	switch {
	case settled && (own || movedAlong(previous, r)):
		s.steps = c.Steps
		return
	case settled:
		a.known, a.before = true, previous.uncertainty()
	}
	switch {
	case own:
		a.owed -= r.lastOffset
	case movedAlong(previous, r):
	default:
		a.owed += (r.era - previous.era).Seconds()
		if updated(previous, r) {
			a.doubt = r.lastOffset
		}
	}
}

// updated: there was an update between the two replies.
func updated(before, after *report) bool {
	return !after.updated.IsZero() && after.updated.Sub(before.updated).Abs() > sameUpdate
}

// movedAlong: on the monotonic scale the reference time is where it was.
func movedAlong(before, after *report) bool {
	return !before.updated.IsZero() && !after.updated.IsZero() &&
		(after.updatedAt()-before.updatedAt()).Abs() <= min(sameUpdate, (after.era-before.era).Abs()/2)
}

// steppedItself: there is a new update, from just before the step, and what it
// measured is what the clock was stepped by.
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
