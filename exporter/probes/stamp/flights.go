package stamp

import (
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/instant"
	"oneway.example/exporter/sample"
)

// flightState is what has become of a test packet as a round trip.
type flightState uint8

const (
	flightNone flightState = iota
	flightOut
	flightAnswered
	flightExpired
)

// flight is one test packet on its way.
type flight struct {
	seq   uint64
	sent  time.Duration // monotonic
	user  instant.Time  // T1 as written into the packet
	clock clockThen     // this host's, when it was sent
	t1    sample.Stamp  // the kernel's stamp, once it has come
	state flightState
}

// clockThen is what this host's clock said of itself at some moment, or at several:
// then the worst of it. What it says at the end is not enough: a daemon that has
// found its clock wrong, and mended it, knows little of the stamps before.
type clockThen struct {
	steps uint64
	bound sample.Bound
}

func thenOf(q clock.Quality) clockThen { return clockThen{q.Steps, q.Bound} }

// and is the worse of both.
func (c clockThen) and(q clock.Quality) clockThen {
	switch {
	case q.Steps != c.steps:
		c.bound = sample.Bound{Reason: sample.NearStepped}
	case c.bound.Reason != sample.OK:
	case q.Bound.Reason != sample.OK:
		c.bound = q.Bound
	default:
		c.bound.Error = max(c.bound.Error, q.Bound.Error)
	}
	return c
}

// flights remembers the packets of the last loss timeout in a ring. Its memory
// is fixed: a packet that is pushed out is taken as expired.
type flights struct {
	ring   []flight // length a power of two
	oldest uint64   // first number not yet answered or expired for good
	next   uint64
}

// Ring limits: a session of one packet a second needs no more than a few
// places; one of 20,000/s with a timeout of 3 s fills the largest.
const (
	minFlights = 16
	maxFlights = 1 << 16
)

func newFlights(interval, keep time.Duration) flights {
	n := minFlights
	for n < maxFlights && time.Duration(n)*interval < keep+keep/2 {
		n *= 2
	}
	return flights{ring: make([]flight, n)}
}

func (f *flights) at(seq uint64) *flight { return &f.ring[seq&uint64(len(f.ring)-1)] }

// get finds the packet numbered seq, if it is still remembered.
func (f *flights) get(seq uint64) *flight {
	if e := f.at(seq); e.state != flightNone && e.seq == seq {
		return e
	}
	return nil
}

// add notes that seq, which must be f.next, is being sent. It returns how many
// round trips were given up for want of room.
func (f *flights) add(seq uint64, sent time.Duration, user instant.Time, then clockThen) (lost int) {
	for seq-f.oldest >= uint64(len(f.ring)) {
		lost += f.giveUp()
	}
	*f.at(seq) = flight{seq: seq, sent: sent, user: user, clock: then, state: flightOut}
	f.next = seq + 1
	return lost
}

// withdraw takes the newest packet back: it never left this host.
func (f *flights) withdraw(seq uint64) {
	if seq+1 != f.next {
		return
	}
	f.at(seq).state = flightNone
	f.next = seq
	f.oldest = min(f.oldest, seq)
}

// expire gives up the packets that were sent more than wait ago and returns
// how many of them had no answer.
func (f *flights) expire(now, wait time.Duration) (lost int) {
	for f.oldest < f.next && now-f.at(f.oldest).sent > wait {
		lost += f.giveUp()
	}
	return lost
}

func (f *flights) giveUp() (lost int) {
	if e := f.at(f.oldest); e.state == flightOut && e.seq == f.oldest {
		e.state = flightExpired
		lost = 1
	}
	f.oldest++
	return lost
}

// outstanding counts packets that are neither answered nor given up.
func (f *flights) outstanding() (n uint64) {
	for seq := f.oldest; seq < f.next; seq++ {
		if f.at(seq).state == flightOut {
			n++
		}
	}
	return n
}
