// Package feasible bounds the offset between two clocks from delays alone: help
// after the fact where nothing better than NTP disciplines them.
//
// Let theta be the far clock minus the near one. What is measured is not the delay
// but
//
//	forward: T2 - T1 = Df + theta        reverse: T4 - T3 = Dr - theta
//
// No packet is faster than the path. If both true delays are known to be at least m,
// every pair of packets leaves only so much room for theta:
//
//	m - (T4 - T3)  <=  theta  <=  (T2 - T1) - m
//
// which is Cristian's bound on reading a remote clock (Distributed Computing 3, 1989,
// pages 146 to 158), taken for each direction by itself: the fastest packets of either
// need not belong together. The interval is
// (Df - m) + (Dr - m) wide, so that m = 0, which is always true, leaves half the round
// trip about its middle, and asymmetry that m does not know of stays in it. It shrinks
// with queues that empty, not with the number of packets.
//
// theta moves while time goes by. An older packet counts with an allowance that grows
// with its age, at the rate by which the two clocks may drift apart; Moon, Skelly and
// Towsley (Estimation and removal of clock skew from network delay measurements,
// INFOCOM 1999) draw the same line of slope below the delays to find the skew. Here the
// slope is given, and the result is a bound, not an estimate.
//
// It holds only as long as m does: a route that has become shorter than m makes the
// interval wrong without a sign, until it is empty. So m is for those who know their
// path, by its length (4.9 us/km of fibre, ITU-T G.114 annex A) or by measurements
// with good clocks.
package feasible

import (
	"math"
	"time"

	"oneway.example/exporter/instant"
)

// DefaultDrift is the rate by which two disciplined clocks may drift apart: 500 ppm
// each, the most that the kernel's discipline and ntpd correct by (RFC 5905 section
// 11.3, ntp_adjtime(2) MAXFREQ). chronyd corrects a large offset faster (maxslewrate):
// the interval is not to be relied on during such a correction.
const DefaultDrift = 1e-3

// DefaultMaxAge is how long a packet counts. With DefaultDrift one of that age is
// worth 60 ms less, hardly ever the best; that it ends lets the estimator recover
// from a step that nobody told it of.
const DefaultMaxAge = time.Minute

// slots is in how many parts MaxAge is cut; of each the best packets are kept.
const slots = 16

// Estimator holds the best packets of the last MaxAge. The zero value is ready, for a
// path of which nothing is known. It is not safe for concurrent use, never allocates,
// and has 0.6 KiB.
type Estimator struct {
	// Minimum is what both delays are known to be at least, 0 or more.
	Minimum time.Duration
	// Drift is the largest rate, as a ratio, at which the clocks drift apart; 0:
	// DefaultDrift.
	Drift float64
	// MaxAge is how long a packet counts; 0: DefaultMaxAge.
	MaxAge time.Duration

	slots [slots]slot
}

// slot has the best packets of one part of the time.
type slot struct {
	number           int64 // of the part since 1970; 0: empty
	forward, reverse mark
}

// mark is one direction's measured delay, and when.
type mark struct {
	delay time.Duration
	at    instant.Time
}

// Add takes one answered packet: the measured delays T2-T1 and T4-T3, each made larger
// by what its stamps may have made it too small, and when. A packet older than those
// that have taken its place is ignored.
func (e *Estimator) Add(forward, reverse time.Duration, at instant.Time) {
	number := e.number(at)
	s := &e.slots[uint64(number)%slots]
	if s.number > number {
		return
	}
	f, r := mark{forward, at}, mark{reverse, at}
	if s.number < number {
		*s = slot{number, f, r}
		return
	}
	e.better(&s.forward, f)
	e.better(&s.reverse, r)
}

// better replaces a mark by one that is worth more for all times to come.
func (e *Estimator) better(old *mark, m mark) {
	if m.delay <= old.delay+e.signed(m.at.Sub(old.at)) {
		*old = m
	}
}

// Interval is what is left for the far clock minus the near one at the instant at, both
// ends included. It is unknown, ok false, without a packet of the last MaxAge, and where
// no offset fits them all (low > high): then Minimum is wrong, or a clock was stepped
// or drifts faster than Drift.
func (e *Estimator) Interval(at instant.Time) (low, high time.Duration, ok bool) {
	low, high = math.MinInt64, math.MaxInt64
	for i := range e.slots {
		s := &e.slots[i]
		if s.number == 0 {
			continue
		}
		if age := at.Sub(s.forward.at); age.Abs() <= e.maxAge() {
			high = min(high, s.forward.delay-e.Minimum+e.allowance(age))
			ok = true
		}
		if age := at.Sub(s.reverse.at); age.Abs() <= e.maxAge() {
			low = max(low, e.Minimum-s.reverse.delay-e.allowance(age))
		}
	}
	return low, high, ok && low > math.MinInt64 && low <= high
}

// Contradictory reports whether there are packets, and no offset fits them all.
func (e *Estimator) Contradictory(at instant.Time) bool {
	low, high, _ := e.Interval(at)
	return low > high
}

// Reset forgets all packets: a clock was stepped, or the path has changed.
func (e *Estimator) Reset() { e.slots = [slots]slot{} }

func (e *Estimator) number(at instant.Time) int64 {
	return max(1, int64(at)/max(1, int64(e.maxAge())/slots))
}

func (e *Estimator) maxAge() time.Duration {
	if e.MaxAge <= 0 {
		return DefaultMaxAge
	}
	return e.MaxAge
}

// allowance is how far the offset may have moved in the time between two instants.
func (e *Estimator) allowance(age time.Duration) time.Duration { return e.signed(age.Abs()) }

// signed is the drift of a duration, rounded up.
func (e *Estimator) signed(d time.Duration) time.Duration {
	drift := e.Drift
	if drift <= 0 {
		drift = DefaultDrift
	}
	return time.Duration(math.Ceil(drift * float64(d)))
}
