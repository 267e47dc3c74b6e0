package stamp

import (
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/instant"
	"oneway.example/exporter/sample"
	wire "oneway.example/exporter/wire/stamp"
)

// packetState is what has become of a test packet as a round trip.
type packetState uint8

const (
	packetNone packetState = iota
	packetOutstanding
	packetReplied // in time
	// packetExpired: the round trip is lost. A reply may come all the same, since either
	// direction may take as long as the waiting time.
	packetExpired
	packetRepliedLate
	packetUnreplied // for twice as long
)

// outstanding is one test packet on its way.
type outstanding struct {
	seq   uint64
	sent  time.Duration // monotonic
	user  instant.Time  // T1 as written into the packet
	clock clockThen     // this host's, when it was sent
	t1    sample.Stamp  // the kernel's stamp, once it has come
	state packetState
}

// sentAt is T1: the kernel's stamp, or the one in the packet where there is none.
func (f *outstanding) sentAt() sample.Stamp {
	if f.t1.Present() {
		return f.t1
	}
	return sample.Stamp{At: f.user, Origin: sample.User}
}

// unheard: no reply to it has come.
func (f *outstanding) unheard() bool {
	return f.state == packetOutstanding || f.state == packetExpired || f.state == packetUnreplied
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
		c.bound = sample.Bound{Reason: sample.LocalStepped}
	case c.bound.Reason != sample.OK:
	case q.Bound.Reason != sample.OK:
		c.bound = q.Bound
	default:
		c.bound.Error = max(c.bound.Error, q.Bound.Error)
	}
	return c
}

// outstandingPackets remembers the packets of twice the loss timeout in a ring. Its memory
// is fixed: a packet that is pushed out is taken as expired.
type outstandingPackets struct {
	ring   []outstanding // length a power of two
	oldest uint64        // first number not yet answered or expired
	kept   uint64        // first number of which a reply may still come
	next   uint64
	// unheard counts the packets in the ring of which no reply has come.
	unheard uint64
	// lose is called with each packet whose round trip is given up; nil: nobody is told.
	lose func(*outstanding)
}

// minOutstandingPackets is the shortest ring: a session of one packet a second needs no more than a few
// places. One of maxOutstanding within its loss timeout, the most that is configured, has
// four times as many.
const minOutstandingPackets = 16

func newOutstandingPackets(o *Options) outstandingPackets {
	keep := 2*o.LossTimeout + time.Second
	n := minOutstandingPackets
	for n < 4*maxOutstanding && time.Duration(n)*o.Interval < keep+keep/2 {
		n *= 2
	}
	return outstandingPackets{ring: make([]outstanding, n)}
}

func (f *outstandingPackets) at(seq uint64) *outstanding { return &f.ring[seq&uint64(len(f.ring)-1)] }

// get finds the packet numbered seq, if it is still remembered.
func (f *outstandingPackets) get(seq uint64) *outstanding {
	if e := f.at(seq); e.state != packetNone && e.seq == seq {
		return e
	}
	return nil
}

// add notes that seq, which must be f.next, is being sent. It returns how many
// round trips were given up for want of room.
func (f *outstandingPackets) add(seq uint64, sent time.Duration, user instant.Time, then clockThen) (lost int) {
	for seq-f.kept >= uint64(len(f.ring)) {
		if f.oldest == f.kept {
			lost += f.giveUp()
		}
		f.forget()
	}
	e := f.at(seq)
	if !e.unheard() {
		f.unheard++
	}
	*e = outstanding{seq: seq, sent: sent, user: user, clock: then, state: packetOutstanding}
	f.next = seq + 1
	return lost
}

// withdraw takes the newest packet back: it never left this host.
func (f *outstandingPackets) withdraw(seq uint64) {
	if seq+1 != f.next {
		return
	}
	f.at(seq).state = packetNone
	f.unheard--
	f.next = seq
	f.oldest, f.kept = min(f.oldest, seq), min(f.kept, seq)
}

// reply notes the first reply to e.
func (f *outstandingPackets) reply(e *outstanding, state packetState) {
	e.state = state
	f.unheard--
}

// expire gives up the round trips of packets that were sent more than wait ago and returns
// how many of them had no reply; after twice as long none can come any more that was in
// time in both directions.
func (f *outstandingPackets) expire(now, wait time.Duration) (lost int) {
	for f.oldest < f.next && now-f.at(f.oldest).sent > wait {
		lost += f.giveUp()
	}
	for f.kept < f.oldest && now-f.at(f.kept).sent > 2*wait {
		f.forget()
	}
	return lost
}

// pass goes on from a number: the packet of it that was in one state is in another.
func (f *outstandingPackets) pass(number *uint64, was, is packetState) (n int) {
	if e := f.at(*number); e.state == was && e.seq == *number {
		e.state, n = is, 1
	}
	*number++
	return n
}

// giveUp takes the oldest packet as lost, forget the oldest that was kept as never answered.
func (f *outstandingPackets) giveUp() (lost int) {
	if lost = f.pass(&f.oldest, packetOutstanding, packetExpired); lost > 0 && f.lose != nil {
		f.lose(f.at(f.oldest - 1))
	}
	return lost
}

func (f *outstandingPackets) forget() { f.pass(&f.kept, packetExpired, packetUnreplied) }

// answered counts the packets from one number up to another that have been answered, as far back as
// they are remembered.
func (f *outstandingPackets) answered(from, to uint64) (n uint64) {
	for seq := max(from, to-min(to, uint64(len(f.ring)))); seq < to; seq++ {
		if e := f.get(seq); e != nil && !e.unheard() {
			n++
		}
	}
	return n
}

// outstanding counts packets of which a reply may still come.
func (f *outstandingPackets) outstanding() (n uint64) {
	for seq := f.kept; seq < f.next; seq++ {
		if s := f.at(seq).state; s == packetOutstanding || s == packetExpired {
			n++
		}
	}
	return n
}

// replySlots is how many replies wait for their true T3. A remote end tells it in
// the next reply (Follow-Up Telemetry), ours also in the two after that
// (Receipt), so that only three replies lost in a row lose a stamp.
const replySlots = 8

// pendingReply is one received answer whose T3 may still become more exact.
type pendingReply struct {
	packet      sample.Packet
	outstanding *outstanding  // its request's place
	arrived     time.Duration // monotonic
	clock       clockThen     // this host's, when its request was sent and when it came
	shared      bool          // both ends read one clock
	era         uint64        // of the clocks, when it came
	lost        [2]bool       // by direction: it took longer than the waiting time
	expired     bool          // the round trip did
	seen        bool          // false: an empty place
	waiting     bool
}

// replies holds those that wait, by reverse number.
type replies struct {
	ring [replySlots]pendingReply
	next uint64 // highest reverse number seen + 1
	// early is what was told of a reply that others have overtaken.
	early [replySlots]told
}

// told is what the remote end says of one reply: a true T3, or how much later than
// the one in the reply it was.
type told struct {
	number uint64 // the reply's, + 1; 0: nothing
	t3     instant.Time
	left   wire.Left
}

func (a *replies) at(reverseSeq uint64) *pendingReply { return &a.ring[reverseSeq%replySlots] }

// settle gives the reply numbered reverseSeq its true T3 and hands it to done.
func (a *replies) settle(reverseSeq uint64, t3 instant.Time, done func(*pendingReply)) {
	if !t3.IsZero() {
		a.tell(told{number: reverseSeq + 1, t3: t3}, done)
	}
}

// left does so for what our reflector tells.
func (a *replies) left(reverseSeq uint64, l wire.Left, done func(*pendingReply)) {
	if l.Known {
		a.tell(told{number: reverseSeq + 1, left: l}, done)
	}
}

func (a *replies) tell(t told, done func(*pendingReply)) {
	w := a.at(t.number - 1)
	if w.packet.ReverseSeq != t.number-1 || !w.seen {
		a.early[(t.number-1)%replySlots] = t
		return
	}
	if w.waiting {
		w.settle(t, done)
	}
}

func (w *pendingReply) settle(t told, done func(*pendingReply)) {
	t3 := &w.packet.T3
	switch {
	case !t.left.Known:
		*t3 = sample.Stamp{At: t.t3, Origin: sample.FollowUp}
	case t3.Present():
		*t3 = sample.Stamp{At: t3.At.Add(t.left.After), Origin: sample.FollowUp, TXUncertainty: t.left.TXUncertainty}
	}
	w.waiting = false
	done(w)
}

// put keeps a new answer; the one that held its place, and those too old for
// the remote end to tell of, are handed to done as they are.
func (a *replies) put(w pendingReply, done func(*pendingReply)) {
	slot := a.at(w.packet.ReverseSeq)
	if slot.waiting {
		slot.waiting = false
		done(slot)
	}
	*slot = w
	slot.seen, slot.waiting = true, true
	if t := a.early[w.packet.ReverseSeq%replySlots]; t.number == w.packet.ReverseSeq+1 {
		slot.settle(t, done)
	}
	a.next = max(a.next, w.packet.ReverseSeq+1)
	for i := range a.ring {
		if old := &a.ring[i]; old.waiting && old.packet.ReverseSeq+4 < a.next {
			old.waiting = false
			done(old)
		}
	}
}

// flush hands all that arrived before the given time to done, oldest first.
func (a *replies) flush(before time.Duration, done func(*pendingReply)) {
	start := a.next - min(a.next, replySlots)
	for seq := start; seq < a.next; seq++ {
		if w := a.at(seq); w.waiting && w.arrived < before {
			w.waiting = false
			done(w)
		}
	}
}
