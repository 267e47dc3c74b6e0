// Package feasible bounds the offset between two clocks by delays alone, for clocks that are disciplined by NTP
// only.
//
// Let theta be the remote clock minus the local one. The measured differences are
//
//	forward: T2 - T1 = Df + theta        reverse: T4 - T3 = Dr - theta
//
// No packet is faster than the path. If both true delays are known to be at least m, every pair of packets limits
// theta:
//
//	m - (T4 - T3)  <=  theta  <=  (T2 - T1) - m
//
// which is Cristian's bound on reading a remote clock (Distributed Computing 3, 1989, pages 146 to 158), applied to
// each direction separately: the fastest packets of the two directions need not belong together. The interval is
// (Df - m) + (Dr - m) wide. m = 0, which always holds, gives half the round trip about its middle, and asymmetry
// not included in m stays in it. The interval shrinks when queues are empty, not with the number of packets.
//
// Clocks move between packets, and fast while they are slewed: chronyd corrects by up to 83,333 ppm
// (chrony.conf(5), maxslewrate) without notice to the other end. Therefore theta is that of one packet's
// timestamps, and the limits of another packet are extended by the largest movement of each clock between the
// timestamps of the two, at the kernel's highest rate (maxRate). With the timestamps of packet p and those of a
// packet q, n = maxRate x |difference of the local timestamps| and likewise f of the remote ones,
//
//	forward of p:  m - (q.T4 - q.T3) - n(p.T1, q.T4) - f(p.T2, q.T3)  <=  theta
//	               theta  <=  (q.T2 - q.T1) - m + n(p.T1, q.T1) + f(p.T2, q.T2)
//
// and so for reverse, with T4 and T3 of p. Of p itself the forward delay counts in full, and the reverse delay with
// the movement of the local clock in a round trip. Moon, Skelly and Towsley (Estimation and removal of clock skew
// from network delay measurements, INFOCOM 1999) draw such a line of slope below the delays to find the skew. Here
// the slope is given, and the result is a bound, not an estimate.
//
// The bound holds only as long as m does: a route that has become shorter than m makes the interval wrong without
// notice, until it is empty. m should therefore come from the known length of the path (4.9 us/km of fiber, ITU-T
// G.114 annex A) or from measurements with better clocks.
package feasible

import (
	"math"
	"time"

	"oneway.example/exporter/core/instant"
)

// maxRate is the largest movement of a clock without a step, relative to the time that it shows: the kernel slews
// by at most 10 % (adjtimex(2), tick), the set frequency adds 500 ppm, and the oscillator's own error is taken as
// 500 ppm: 0.101 of true time, which is 0.1124 of the time shown by the slowest such clock.
const maxRate = 0.1124

// maxAge is the time for which a packet counts. Two synchronized clocks may be 0.9 s apart after it, so that older
// packets hardly limit the offset; the limit also lets the estimator recover from a step that was not reported.
const maxAge = 4 * time.Second

// slots is the number of parts of maxAge; the best packets of each part are kept.
const slots = 16

// Estimator holds the best packets of the last seconds. The zero value is ready. It is not safe for concurrent use,
// never allocates, and has 0.9 KiB.
type Estimator struct {
	// Minimum is a lower limit of both delays, 0 or more.
	Minimum time.Duration

	slots [slots]slot
}

// Packet is one answered packet: its timestamps, T1 and T4 of the local clock, T2 and T3 of the remote one, and the
// amounts by which timestamp errors may have reduced each measured delay.
type Packet struct {
	T1, T2, T3, T4               instant.Time
	ForwardStamps, ReverseStamps time.Duration
}

// clockPair is the time of an event by each clock.
type clockPair struct{ local, remote instant.Time }

// forward is the clock pair of the forward delay, reverse that of the other.
func (p *Packet) forward() clockPair { return clockPair{p.T1, p.T2} }
func (p *Packet) reverse() clockPair { return clockPair{p.T4, p.T3} }

// moved is the largest movement of theta between two moments, rounded up.
func moved(a, b clockPair) time.Duration {
	apart := math.Abs(float64(a.local.Sub(b.local))) + math.Abs(float64(a.remote.Sub(b.remote)))
	return time.Duration(math.Ceil(maxRate * apart))
}

// slot holds the best packets of one part of the time.
type slot struct {
	number           int64 // of the part since 1970; 0: empty
	forward, reverse mark
}

// mark is one direction's measured delay, and when.
type mark struct {
	delay time.Duration
	at    clockPair
}

// better replaces a mark by one with a narrower limit for all later times.
func (m *mark) better(other mark) {
	allowance := moved(m.at, other.at)
	if other.at.local < m.at.local {
		allowance = -allowance
	}
	if other.delay <= m.delay+allowance {
		*m = other
	}
}

// Add adds one answered packet. One older than those that have replaced its slot is ignored.
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

// Forward returns the range of the remote clock minus the local one in the forward delay of p, both ends included;
// Reverse that in the reverse delay. ok is false without a packet of the last seconds, and if no offset fits all
// packets (low > high): then Minimum is wrong, or a clock was stepped.
func (e *Estimator) Forward(p *Packet) (low, high time.Duration, ok bool) {
	return e.interval(p.forward(), p.T4)
}

// Reverse returns the range in the reverse delay of p. See Forward.
func (e *Estimator) Reverse(p *Packet) (low, high time.Duration, ok bool) {
	return e.interval(p.reverse(), p.T4)
}

func (e *Estimator) interval(at clockPair, now instant.Time) (low, high time.Duration, ok bool) {
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

// Contradictory reports whether there are packets and no offset fits all of them.
func (e *Estimator) Contradictory(p *Packet) bool {
	low, high, _ := e.Forward(p)
	return low > high
}

// Reset discards all packets, after a step of a clock or a change of the path.
func (e *Estimator) Reset() { e.slots = [slots]slot{} }

// numberOf returns the number of the part that contains at.
func numberOf(at instant.Time) int64 {
	return max(1, int64(at)/int64(maxAge/slots))
}
