package sched

import (
	"math/rand/v2"
	"time"
)

// Schedule determines when to send next.
type Schedule interface {
	// Next is the first slot after previous, always later than previous.
	Next(previous time.Duration) time.Duration
}

// Periodic has a slot every interval, at phase + k x interval: the periodic stream of RFC 3432. Lateness does not shift
// the slots. An interval below a nanosecond counts as one. The schedule has no state and is safe for concurrent use.
func Periodic(interval, phase time.Duration) Schedule {
	return periodic{max(interval, 1), phase}
}

type periodic struct{ interval, phase time.Duration }

func (s periodic) Next(previous time.Duration) time.Duration {
	since := (previous - s.phase) % s.interval
	if since < 0 { // before the phase: Go's remainder has the sign of the dividend
		since += s.interval
	}
	return previous - since + s.interval
}

// Scattered has a slot in every interval, each at a place of its own that seed decides: as many as Periodic has, and no common period
// with anything on the path. Links that send in slots, and queues that fill and drain in step, otherwise show all packets of a short stream the same
// delay. The schedule has no state and is safe for concurrent use.
func Scattered(interval time.Duration, seed uint64) Schedule {
	return scattered{max(interval, 1), seed}
}

type scattered struct {
	interval time.Duration
	seed     uint64
}

func (s scattered) Next(previous time.Duration) time.Duration {
	k := previous / s.interval
	for {
		if slot := s.slot(k); slot > previous {
			return slot
		}
		k++
	}
}

// slot is the time to send in interval k.
func (s scattered) slot(k time.Duration) time.Duration {
	place := rand.New(rand.NewPCG(s.seed, uint64(k))).Int64N(int64(s.interval))
	return k*s.interval + time.Duration(place)
}

// RandomPhase returns a start uniformly distributed in [0, interval), which RFC 3432 section 3 requires to avoid
// synchronization with other periodic events. Zero for an interval not above zero.
func RandomPhase(interval time.Duration, rng *rand.Rand) time.Duration {
	if interval <= 0 {
		return 0
	}
	return time.Duration(rng.Int64N(int64(interval)))
}

// poissonLimit is the longest gap of Poisson, in means.
const poissonLimit = 10

// Poisson has exponentially distributed gaps (RFC 2330 section 11.1.1), the sampling of RFC 7679. A gap is at least a
// nanosecond and at most poissonLimit means: longer ones, 4.5 in 100,000, are limited to that, so that a session is
// never idle for long; this reduces the mean by 0.0045 %. A mean below a nanosecond counts as one. rng must not be nil;
// the schedule is safe for concurrent use only if rng is.
func Poisson(mean time.Duration, rng *rand.Rand) Schedule {
	return poisson{max(mean, 1), rng}
}

type poisson struct {
	mean time.Duration
	rng  *rand.Rand
}

func (s poisson) Next(previous time.Duration) time.Duration {
	return previous + gap(s.rng.ExpFloat64(), s.mean)
}

// gap scales and limits a variate of mean 1.
func gap(exponential float64, mean time.Duration) time.Duration {
	return max(time.Duration(min(exponential, poissonLimit)*float64(mean)), 1)
}

// Skip is for a task that fired for the slot due at the time now and does not catch up: next is the first slot of s
// after now and after due, missed the number of skipped slots, due not counted.
func Skip(s Schedule, due, now time.Duration) (next time.Duration, missed uint64) {
	next = s.Next(due)
	if next > now {
		return next, 0
	}
	if p, ok := s.(periodic); ok { // constant time, however late
		last := now - (now-next)%p.interval
		return last + p.interval, uint64((last-next)/p.interval) + 1
	}
	for next <= now {
		next = s.Next(next)
		missed++
	}
	return next, missed
}
