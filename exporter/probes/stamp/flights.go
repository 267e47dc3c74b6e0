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
	flightAnswered // in time
	// flightExpired: the round trip is lost. An answer may come all the same, since either
	// direction may take as long as the waiting time.
	flightExpired
	flightAnsweredLate
	flightUnanswered // for twice as long
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

// unheard: no answer to it has come.
func (f *flight) unheard() bool {
	return f.state == flightOut || f.state == flightExpired || f.state == flightUnanswered
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

// flights remembers the packets of twice the loss timeout in a ring. Its memory
// is fixed: a packet that is pushed out is taken as expired.
type flights struct {
	ring   []flight // length a power of two
	oldest uint64   // first number not yet answered or expired
	kept   uint64   // first number of which an answer may still come
	next   uint64
	// unheard counts the packets in the ring of which no answer has come.
	unheard uint64
}

// minFlights is the shortest ring: a session of one packet a second needs no more than a few
// places. One of maxOutstanding within its loss timeout, the most that is configured, has
// four times as many.
const minFlights = 16

func newFlights(o *Options) flights {
	keep := 2*o.LossTimeout + time.Second
	n := minFlights
	for n < 4*maxOutstanding && time.Duration(n)*o.Interval < keep+keep/2 {
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
func (f *flights) add(seq uint64, sent time.Duration, user instant.Time, then clockThen) (lost, unanswered int) {
	for seq-f.kept >= uint64(len(f.ring)) {
		if f.oldest == f.kept {
			lost += f.giveUp()
		}
		unanswered += f.forget()
	}
	e := f.at(seq)
	if !e.unheard() {
		f.unheard++
	}
	*e = flight{seq: seq, sent: sent, user: user, clock: then, state: flightOut}
	f.next = seq + 1
	return lost, unanswered
}

// withdraw takes the newest packet back: it never left this host.
func (f *flights) withdraw(seq uint64) {
	if seq+1 != f.next {
		return
	}
	f.at(seq).state = flightNone
	f.unheard--
	f.next = seq
	f.oldest, f.kept = min(f.oldest, seq), min(f.kept, seq)
}

// answer notes the first answer to e.
func (f *flights) answer(e *flight, state flightState) {
	e.state = state
	f.unheard--
}

// expire gives up the round trips of packets that were sent more than wait ago and returns
// how many of them had no answer; after twice as long none can come any more that was in
// time in both directions, and it returns how many have had none till then.
func (f *flights) expire(now, wait time.Duration) (lost, unanswered int) {
	for f.oldest < f.next && now-f.at(f.oldest).sent > wait {
		lost += f.giveUp()
	}
	for f.kept < f.oldest && now-f.at(f.kept).sent > 2*wait {
		unanswered += f.forget()
	}
	return lost, unanswered
}

func (f *flights) giveUp() (lost int) {
	if e := f.at(f.oldest); e.state == flightOut && e.seq == f.oldest {
		e.state = flightExpired
		lost = 1
	}
	f.oldest++
	return lost
}

func (f *flights) forget() (unanswered int) {
	if e := f.at(f.kept); e.state == flightExpired && e.seq == f.kept {
		e.state = flightUnanswered
		unanswered = 1
	}
	f.kept++
	return unanswered
}

// answered counts the packets from one number up to another that have been answered, as far back as
// they are remembered.
func (f *flights) answered(from, to uint64) (n uint64) {
	for seq := max(from, to-min(to, uint64(len(f.ring)))); seq < to; seq++ {
		if e := f.get(seq); e != nil && !e.unheard() {
			n++
		}
	}
	return n
}

// outstanding counts packets of which an answer may still come.
func (f *flights) outstanding() (n uint64) {
	for seq := f.kept; seq < f.next; seq++ {
		if s := f.at(seq).state; s == flightOut || s == flightExpired {
			n++
		}
	}
	return n
}
