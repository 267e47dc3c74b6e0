package ledger

import (
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
)

// packetState is the state of a test packet's round trip.
type packetState uint8

const (
	packetNone packetState = iota
	packetOutstanding
	packetReplied // within the loss timeout
	// packetExpired: the round trip is lost. A reply may still arrive, since each direction may take as long as the
	// loss timeout.
	packetExpired
	packetRepliedLate
	packetUnreplied // within twice the loss timeout
)

// Outstanding is one test packet without a decided outcome.
type Outstanding struct {
	sent time.Duration // monotonic
	user instant.Time  // T1 as written into the packet
	// t1 is the kernel's timestamp, when available, with its origin and uncertainty.
	t1            instant.Time
	txUncertainty time.Duration
	// clockError, clockSteps and clockReason are the ClockThen of this host at the time of sending.
	clockError  time.Duration
	clockSteps  uint32
	clockReason sample.Reason
	origin      sample.Origin
	state       packetState
	// numbered: the reverse window has taken the number of a reply to it.
	numbered bool
}

// Clock is the quality of this host's clock at the time of sending.
func (f *Outstanding) Clock() ClockThen {
	return ClockThen{f.clockSteps, sample.Bound{Error: f.clockError, Reason: f.clockReason}}
}

// stamped takes the kernel's timestamp.
func (f *Outstanding) stamped(t1 sample.Stamp) {
	f.t1, f.origin, f.txUncertainty = t1.At, t1.Origin, t1.TXUncertainty
}

// SentAt is T1: the kernel's timestamp, or the one in the packet if there is none.
func (f *Outstanding) SentAt() sample.Stamp {
	if f.origin != sample.Absent {
		return sample.Stamp{At: f.t1, Origin: f.origin, TXUncertainty: f.txUncertainty}
	}
	return sample.Stamp{At: f.user, Origin: sample.User}
}

// unheard reports whether the packet has no reply yet.
func (f *Outstanding) unheard() bool {
	return f.state == packetOutstanding || f.state == packetExpired || f.state == packetUnreplied
}

// ClockThen is the quality of this host's clock at one time or the worst of several. The newest quality alone does
// not cover earlier timestamps: the clock may have been corrected since.
type ClockThen struct {
	steps uint32 // the low bits of the number of steps
	// Bound is the error bound of the clock, or why it is not known.
	Bound sample.Bound
}

// ThenOf returns the quality at one time.
func ThenOf(q clock.Quality) ClockThen { return ClockThen{uint32(q.Steps), q.Bound} }

// And returns the worse of both.
func (c ClockThen) And(q clock.Quality) ClockThen {
	switch {
	case uint32(q.Steps) != c.steps:
		c.Bound = sample.Bound{Reason: sample.LocalStepped}
	case c.Bound.Reason != sample.OK:
	case q.Bound.Reason != sample.OK:
		c.Bound = q.Bound
	default:
		c.Bound.Error = max(c.Bound.Error, q.Bound.Error)
	}
	return c
}

// outstandingPackets keeps the packets of twice the loss timeout in a ring. The ring is doubled while it is full of
// packets that may still get a reply, up to its limit; then a packet that is overwritten counts as expired.
type outstandingPackets struct {
	ring []Outstanding // length a power of two; number n is at n modulo the length
	most uint32        // limit of the length
	// unheard counts the packets in the ring without a reply.
	unheard uint32
	oldest  uint64 // first number not yet answered or expired
	kept    uint64 // first number that may still get a reply
	next    uint64
	// lose is called with each packet whose round trip is given up; nil: no callback.
	lose func(seq uint64, f *Outstanding)
}

// The lengths of the shortest ring, and of the longest one of a session with few packets. The longest of all, for
// MaxOutstanding packets within the loss timeout, has four times that number.
const (
	minOutstandingPackets  = 8
	fullOutstandingPackets = 16
)

// newOutstandingPackets makes a ring for regularly sent packets, which are kept as long as a reply in time in both
// directions may arrive, or a reply waits for its true T3. Its limit leaves space for clusters of Poisson arrivals.
func newOutstandingPackets(o *Options) outstandingPackets {
	length := func(least int, of time.Duration) int {
		for least < 4*MaxOutstanding && time.Duration(least)*o.Interval < of {
			least *= 2
		}
		return least
	}
	return outstandingPackets{
		ring: make([]Outstanding, length(minOutstandingPackets, o.LossTimeout+max(o.LossTimeout, o.replyWait())+TickInterval)),
		most: uint32(length(fullOutstandingPackets, 3*o.LossTimeout+3*TickInterval/2)),
	}
}

func (f *outstandingPackets) at(seq uint64) *Outstanding { return &f.ring[seq&uint64(len(f.ring)-1)] }

// get finds the packet numbered seq, if it is still remembered.
func (f *outstandingPackets) get(seq uint64) *Outstanding {
	if seq >= f.next || f.next-seq > uint64(len(f.ring)) {
		return nil
	}
	if e := f.at(seq); e.state != packetNone {
		return e
	}
	return nil
}

// add records that seq, which must be f.next, is being sent. It returns how many round trips were given up because
// the ring was full. It allocates only when the ring grows.
func (f *outstandingPackets) add(seq uint64, sent time.Duration, user instant.Time, then ClockThen) (lost int) {
	for seq-f.kept >= uint64(len(f.ring)) {
		if len(f.ring) < int(f.most) {
			f.grow()
			continue
		}
		if f.oldest == f.kept {
			lost += f.giveUp()
		}
		f.forget()
	}
	e := f.at(seq)
	if !e.unheard() {
		f.unheard++
	}
	*e = Outstanding{
		sent: sent, user: user, clockError: then.Bound.Error, clockSteps: then.steps, clockReason: then.Bound.Reason,
		state: packetOutstanding,
	}
	f.next = seq + 1
	return lost
}

// grow doubles the ring.
func (f *outstandingPackets) grow() {
	old := *f
	f.ring = make([]Outstanding, 2*len(old.ring))
	for seq := f.next - min(f.next, uint64(len(old.ring))); seq < f.next; seq++ {
		*f.at(seq) = *old.at(seq)
	}
}

// withdraw removes the newest packet: it never left this host.
func (f *outstandingPackets) withdraw(seq uint64) {
	if seq+1 != f.next {
		return
	}
	f.at(seq).state = packetNone
	f.unheard--
	f.next = seq
	f.oldest, f.kept = min(f.oldest, seq), min(f.kept, seq)
}

// reply records the first reply to e.
func (f *outstandingPackets) reply(e *Outstanding, state packetState) {
	e.state = state
	f.unheard--
}

// expire gives up the round trips of packets that were sent more than wait ago and returns how many had no reply.
// After twice that time no reply can arrive that is in time in both directions.
func (f *outstandingPackets) expire(now, wait time.Duration) (lost int) {
	for f.oldest < f.next && now-f.at(f.oldest).sent > wait {
		lost += f.giveUp()
	}
	for f.kept < f.oldest && now-f.at(f.kept).sent > 2*wait {
		f.forget()
	}
	return lost
}

// pass advances a number: its packet changes from state was to state is.
func (f *outstandingPackets) pass(number *uint64, was, is packetState) (n int) {
	if e := f.at(*number); e.state == was {
		e.state, n = is, 1
	}
	*number++
	return n
}

// giveUp expires the oldest packet; forget removes the oldest expired one.
func (f *outstandingPackets) giveUp() (lost int) {
	if lost = f.pass(&f.oldest, packetOutstanding, packetExpired); lost > 0 && f.lose != nil {
		f.lose(f.oldest-1, f.at(f.oldest-1))
	}
	return lost
}

func (f *outstandingPackets) forget() { f.pass(&f.kept, packetExpired, packetUnreplied) }

// answered counts the packets in [from, to) that have a reply, as far back as the ring reaches.
func (f *outstandingPackets) answered(from, to uint64) (n uint64) {
	for seq := max(from, to-min(to, uint64(len(f.ring)))); seq < to; seq++ {
		if e := f.get(seq); e != nil && !e.unheard() {
			n++
		}
	}
	return n
}

// outstanding counts packets that may still get a reply.
func (f *outstandingPackets) outstanding() uint64 {
	return f.count(packetOutstanding) + f.count(packetExpired)
}

// unansweredSince counts the given up round trips from number told on, without those before the last one with a reply.
func (f *outstandingPackets) unansweredSince(told uint64) uint64 {
	last := f.oldest - min(f.oldest, told)
	for n := range last {
		if e := f.get(f.oldest - 1 - n); e == nil {
			break
		} else if !e.unheard() {
			return n
		}
	}
	return last
}

// awaited counts packets whose reply would be in time.
func (f *outstandingPackets) awaited() uint64 { return f.count(packetOutstanding) }

func (f *outstandingPackets) count(state packetState) (n uint64) {
	for seq := f.kept; seq < f.next; seq++ {
		if f.at(seq).state == state {
			n++
		}
	}
	return n
}
