// Package feasible bounds the offset between two clocks from delays alone: help
// after the fact where nothing better than NTP disciplines them.
//
// Let theta be the remote clock minus the local one. What is measured is not the delay
// but
//
//	forward: T2 - T1 = Df + theta        reverse: T4 - T3 = Dr - theta
//
// No packet is faster than the path. If both true delays are known to be at least m,
// every pair of packets leaves only so much space for theta:
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
// A clock moves while time goes by, and while it is slewed it moves fast: chronyd corrects
// by up to 83,333 ppm (chrony.conf(5), maxslewrate) without a word to the other end. So
// theta is that of one packet's stamps, and what another packet tells of it counts with an
// allowance for how far each clock may have moved between the stamps of the two, at the
// rate that the kernel allows at the most (maxRate). With the stamps of packet p and those
// of a packet q, n = maxRate x |difference of the local stamps| and likewise f of the remote ones,
//
//	forward of p:  m - (q.T4 - q.T3) - n(p.T1, q.T4) - f(p.T2, q.T3)  <=  theta
//	               theta  <=  (q.T2 - q.T1) - m + n(p.T1, q.T1) + f(p.T2, q.T2)
//
// and so for reverse, with T4 and T3 of p. Within p itself its own forward delay counts in
// full, and its reverse delay with what the local clock may do in a round trip. Moon, Skelly
// and Towsley (Estimation and removal of clock skew from network delay measurements,
// INFOCOM 1999) draw such a line of slope below the delays to find the skew. Here the slope
// is given, and the result is a bound, not an estimate.
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

// maxRate is how far a clock may move, as a ratio of the time that it shows, without a
// step: the kernel slews by 10 % at the most (adjtimex(2), tick), the frequency that is
// set adds 500 ppm, and the oscillator's own error is taken as 500 ppm: 0.101 of the time
// that goes by, which is 0.1124 of what the slowest such clock shows of it.
const maxRate = 0.1124

// maxAge is how long a packet counts. After so long two clocks may be 0.9 s apart that
// were together, so that it is hardly ever worth anything; that it ends lets the estimator
// recover from a step that nobody told it of.
const maxAge = 4 * time.Second

// slots is in how many parts maxAge is cut; of each the best packets are kept.
const slots = 16

// Estimator holds the best packets of the last seconds. The zero value is ready, for a
// path of which nothing is known. It is not safe for concurrent use, never allocates,
// and has 0.9 KiB.
type Estimator struct {
	// Minimum is what both delays are known to be at least, 0 or more.
	Minimum time.Duration

	slots [slots]slot
}

// Packet is one answered packet: its stamps, T1 and T4 of the local clock, T2 and T3 of the
// remote one, and what the stamps may have made each measured delay too small by.
type Packet struct {
	T1, T2, T3, T4               instant.Time
	ForwardStamps, ReverseStamps time.Duration
}

// moment is when something was stamped, by each clock.
type moment struct{ local, remote instant.Time }

// forward is when the forward delay was measured, reverse when the other was.
func (p *Packet) forward() moment { return moment{p.T1, p.T2} }
func (p *Packet) reverse() moment { return moment{p.T4, p.T3} }

// moved is how far theta may have moved between two moments, rounded up.
func moved(a, b moment) time.Duration {
	apart := math.Abs(float64(a.local.Sub(b.local))) + math.Abs(float64(a.remote.Sub(b.remote)))
	return time.Duration(math.Ceil(maxRate * apart))
}

// slot has the best packets of one part of the time.
type slot struct {
	number           int64 // of the part since 1970; 0: empty
	forward, reverse mark
}

// mark is one direction's measured delay, and when.
type mark struct {
	delay time.Duration
	at    moment
}

// better replaces a mark by one that is worth more for all times to come.
func (m *mark) better(other mark) {
	allowance := moved(m.at, other.at)
	if other.at.local < m.at.local {
		allowance = -allowance
	}
	if other.delay <= m.delay+allowance {
		*m = other
	}
}

// Add takes one answered packet. One older than those that have taken its place is
// ignored.
func (e *Estimator) Add(p *Packet) {
	number := numberOf(p.T4)
	s := &e.slots[uint64(number)%slots]
	if s.number > number {
		return
	}
	f := mark{p.T2.Sub(p.T1) + p.ForwardStamps, p.forward()}
	r := mark{p.T4.Sub(p.T3) + p.ReverseStamps, p.reverse()}
	if s.number < number {
		*s = slot{number, f, r}
		return
	}
	s.forward.better(f)
	s.reverse.better(r)
}

// Forward is what is left for the remote clock minus the local one in the forward delay of p,
// both ends included; Reverse is so in the reverse delay. It is unknown, ok false, without
// a packet of the last seconds, and where no offset fits them all (low > high): then
// Minimum is wrong, or a clock was stepped.
func (e *Estimator) Forward(p *Packet) (low, high time.Duration, ok bool) {
	return e.interval(p.forward(), p.T4)
}

// Reverse is what is left in the reverse delay of p. See Forward.
func (e *Estimator) Reverse(p *Packet) (low, high time.Duration, ok bool) {
	return e.interval(p.reverse(), p.T4)
}

func (e *Estimator) interval(at moment, now instant.Time) (low, high time.Duration, ok bool) {
	low, high = math.MinInt64, math.MaxInt64
	for i := range e.slots {
		s := &e.slots[i]
		if s.number == 0 || numberOf(now)-s.number >= slots || s.number-numberOf(now) >= slots {
			continue
		}
		high = min(high, s.forward.delay-e.Minimum+moved(at, s.forward.at))
		low = max(low, e.Minimum-s.reverse.delay-moved(at, s.reverse.at))
		ok = true
	}
	return low, high, ok && low <= high
}

// Contradictory reports whether there are packets, and no offset fits them all.
func (e *Estimator) Contradictory(p *Packet) bool {
	low, high, _ := e.Forward(p)
	return low > high
}

// Reset forgets all packets: a clock was stepped, or the path has changed.
func (e *Estimator) Reset() { e.slots = [slots]slot{} }

// numberOf is the part of the time in which at is.
func numberOf(at instant.Time) int64 {
	return max(1, int64(at)/int64(maxAge/slots))
}
