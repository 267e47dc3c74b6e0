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

// settler decides when chronyd's word is worth something again after a step.
//
// chronyd does not notice that somebody else steps the clock: until its next
// update, which can be a quarter of an hour away, it goes on to report a small
// bound. So after a step a new update is waited for, recognised by a new
// reference time. No waiting is needed when chronyd stepped the clock itself,
// which shows in one of two ways: it moved its reference time along with the
// clock (`chronyc makestep`), or it has just had an update whose offset is the step.
type settler struct {
	last     *report // the last reply; nil: none yet
	steps    uint64  // up to which chronyd's word is good
	waiting  uint64  // the step count waited for, if it is not steps
	baseline *report // the first reply after the step
}

// reply takes a reply in. It returns the count of steps up to which chronyd
// has settled.
func (s *settler) reply(c clock.Check, r *report) uint64 {
	previous := s.last
	s.last = r
	switch {
	case c.Steps == s.steps:
	case s.waiting == c.Steps: // at least the second reply since the step
		if !r.updated.IsZero() && !near(r.updated.Sub(s.baseline.updated), sameUpdate) {
			s.steps = c.Steps
		}
	default:
		settled := s.waiting == s.steps
		s.waiting, s.baseline = c.Steps, r
		if previous != nil && (settled && movedAlong(previous, r) || steppedItself(previous, r, c)) {
			s.steps = c.Steps
		}
	}
	if s.steps == c.Steps {
		s.waiting = c.Steps
	}
	return s.steps
}

// movedAlong: on the monotonic scale the reference time is where it was.
func movedAlong(before, after *report) bool {
	return !before.updated.IsZero() && !after.updated.IsZero() &&
		near(after.updatedAt()-before.updatedAt(), min(sameUpdate, abs(after.era-before.era)/2))
}

// steppedItself: there is a new update, from just before the step, and what it
// measured is what the clock was stepped by.
func steppedItself(before, after *report, c clock.Check) bool {
	if after.updated.IsZero() || near(after.updated.Sub(before.updated), sameUpdate) {
		return false
	}
	at := after.updatedAt()
	if at < c.SteppedAt-ownStep || at > c.Now.Mono {
		return false
	}
	step := math.Abs((after.era - before.era).Seconds())
	return math.Abs(step-math.Abs(after.lastOffset)) <= math.Abs(before.offset)+step/100+1e-3
}

// near reports whether |d| <= limit.
func near(d, limit time.Duration) bool { return abs(d) <= limit }

func abs(d time.Duration) time.Duration { return max(d, -d) }
