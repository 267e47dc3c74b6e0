package sched

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Calendar says when runs of a heavy test are due. The zero Calendar has none; see
// Check.
type Calendar struct {
	// Every is the time between runs, above 0.
	Every time.Duration
	// Jitter is the time over which each run is spread at random, half of it before
	// and half after Every, so that the mean stays Every; at most Every. Without it,
	// two schedules that once meet at a link meet at each run.
	Jitter time.Duration
	// Windows are when a run may begin, in the local time of what Next is given; none:
	// at any time.
	Windows []Window
}

// Check says what is wrong with a calendar.
func (c Calendar) Check() error {
	switch {
	case c.Every <= 0:
		return fmt.Errorf("sched: runs every %v: it must be above 0s", c.Every)
	case c.Jitter < 0 || c.Jitter > c.Every:
		return fmt.Errorf("sched: a jitter of %v: it must be between 0s and the %v between runs", c.Jitter, c.Every)
	}
	for _, w := range c.Windows {
		if w.From < 0 || w.From >= minutesOfDay || w.To < 1 || w.To > minutesOfDay || w.From == w.To {
			return errors.New("sched: a window is never open")
		}
	}
	return nil
}

// First is when the first run is due after a start at now: at a random part of
// Every, so that not all tests of a restarted host begin at once. A nil rng: now.
func (c Calendar) First(now time.Time, rng *rand.Rand) time.Time {
	return c.fit(now.Add(below(c.Every, rng)), rng)
}

// Next is when the run after the one that was due at after is due: Every later, moved
// by Jitter. If no window is open then, it is when the next one opens, plus a random
// part of Every or of the window, so that not all who waited begin at once. It is
// the zero Time if no window ever opens. A nil rng: nothing is random.
func (c Calendar) Next(after time.Time, rng *rand.Rand) time.Time {
	due := after.Add(c.Every)
	if rng != nil && c.Jitter > 0 {
		due = due.Add(below(c.Jitter+1, rng) - c.Jitter/2)
	}
	return c.fit(due, rng)
}

// Open says whether a run may begin at t.
func (c Calendar) Open(t time.Time) bool {
	for _, w := range c.Windows {
		for days := -1; days <= 0; days++ { // also the one that opened yesterday
			if begin, end, ok := w.opens(t, days); ok && !t.Before(begin) && t.Before(end) {
				return true
			}
		}
	}
	return len(c.Windows) == 0
}

// fit moves a time into a window.
func (c Calendar) fit(t time.Time, rng *rand.Rand) time.Time {
	if c.Open(t) {
		return t
	}
	var begin, end time.Time
	for _, w := range c.Windows {
		for days := 0; days <= maxAhead; days++ {
			b, e, ok := w.opens(t, days)
			if !ok || !b.After(t) || !e.After(b) {
				continue
			}
			if begin.IsZero() || b.Before(begin) {
				begin, end = b, e
			}
			break
		}
	}
	if begin.IsZero() {
		return begin
	}
	return begin.Add(below(min(c.Every, end.Sub(begin)), rng))
}

// maxAhead days suffice for a window of one day of the week that falls into the hour
// over which the clocks are put forward.
const maxAhead = 14

// below is a random time from 0 to below d; 0 without rng.
func below(d time.Duration, rng *rand.Rand) time.Duration {
	if rng == nil || d <= 0 {
		return 0
	}
	return time.Duration(rng.Int64N(int64(d)))
}
