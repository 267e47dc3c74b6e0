package stamp

import (
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/instant"
	"oneway.example/exporter/sample"
	wire "oneway.example/exporter/wire/stamp"
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

// outstanding is one test packet without a decided outcome.
type outstanding struct {
	seq   uint64
	sent  time.Duration // monotonic
	user  instant.Time  // T1 as written into the packet
	clock clockThen     // of this host, at the time of sending
	t1    sample.Stamp  // of the kernel, when available
	state packetState
}

// sentAt is T1: the kernel's timestamp, or the one in the packet if there is none.
func (f *outstanding) sentAt() sample.Stamp {
	if f.t1.Present() {
		return f.t1
	}
	return sample.Stamp{At: f.user, Origin: sample.User}
}

// unheard reports whether the packet has no reply yet.
func (f *outstanding) unheard() bool {
	return f.state == packetOutstanding || f.state == packetExpired || f.state == packetUnreplied
}

// clockThen is the quality of this host's clock at one time or the worst of several. The newest quality alone does
// not cover earlier timestamps: the clock may have been corrected since.
type clockThen struct {
	steps uint64
	bound sample.Bound
}

func thenOf(q clock.Quality) clockThen { return clockThen{q.Steps, q.Bound} }

// and returns the worse of both.
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

// outstandingPackets keeps the packets of twice the loss timeout in a ring of fixed size; a packet that is
// overwritten counts as expired.
type outstandingPackets struct {
	ring   []outstanding // length a power of two
	oldest uint64        // first number not yet answered or expired
	kept   uint64        // first number that may still get a reply
	next   uint64
	// unheard counts the packets in the ring without a reply.
	unheard uint64
	// lose is called with each packet whose round trip is given up; nil: no callback.
	lose func(*outstanding)
}

// minOutstandingPackets is the shortest ring: a session with one packet a second needs only a few places. The
// longest, for maxOutstanding packets within the loss timeout, has four times that number.
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

// add records that seq, which must be f.next, is being sent. It returns how many round trips were given up because
// the ring was full.
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
func (f *outstandingPackets) reply(e *outstanding, state packetState) {
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
	if e := f.at(*number); e.state == was && e.seq == *number {
		e.state, n = is, 1
	}
	*number++
	return n
}

// giveUp expires the oldest packet; forget removes the oldest expired one.
func (f *outstandingPackets) giveUp() (lost int) {
	if lost = f.pass(&f.oldest, packetOutstanding, packetExpired); lost > 0 && f.lose != nil {
		f.lose(f.at(f.oldest - 1))
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
func (f *outstandingPackets) outstanding() (n uint64) {
	for seq := f.kept; seq < f.next; seq++ {
		if s := f.at(seq).state; s == packetOutstanding || s == packetExpired {
			n++
		}
	}
	return n
}

// replySlots is how many replies wait for their true T3. A remote end sends it in the next reply (Follow-Up
// Telemetry), our reflector also in the two replies after that (Receipt), so that only the loss of three replies in
// a row loses a timestamp.
const replySlots = 8

// pendingReply is a received reply whose T3 may still be refined.
type pendingReply struct {
	packet      sample.Packet
	outstanding *outstanding  // place of its request
	arrived     time.Duration // monotonic
	clock       clockThen     // of this host, at sending and at arrival
	shared      bool          // both ends read one clock
	era         uint64        // of the clocks, at arrival
	lost        [2]bool       // by direction: the delay exceeded the loss timeout
	// undecided: the delay from T3 to T4 exceeded it, but the remote host may have been busy between T3 and sending: the
	// true T3 decides.
	undecided bool
	expired   bool // the round trip exceeded it
	seen      bool // false: an empty place
	waiting   bool
}

// replies holds the pending replies, by reverse number.
type replies struct {
	ring [replySlots]pendingReply
	next uint64 // highest reverse number seen + 1
	// early holds T3 of replies that have not arrived yet.
	early [replySlots]told
}

// told is the remote end's report on one reply: a true T3, or its difference to the one in the reply.
type told struct {
	number uint64 // of the reply, + 1; 0: none
	t3     instant.Time
	left   wire.Left
}

func (a *replies) at(reverseSeq uint64) *pendingReply { return &a.ring[reverseSeq%replySlots] }

// settle sets the true T3 of the reply numbered reverseSeq and passes it to done.
func (a *replies) settle(reverseSeq uint64, t3 instant.Time, done func(*pendingReply)) {
	if !t3.IsZero() {
		a.tell(told{number: reverseSeq + 1, t3: t3}, done)
	}
}

// left does the same for our reflector's report.
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

// put adds a reply. The previous one in its place, and those too old for a report of the remote end, are passed to
// done unchanged.
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

// flush passes all replies that arrived before the given time to done, oldest first.
func (a *replies) flush(before time.Duration, done func(*pendingReply)) {
	start := a.next - min(a.next, replySlots)
	for seq := start; seq < a.next; seq++ {
		if w := a.at(seq); w.waiting && w.arrived < before {
			w.waiting = false
			done(w)
		}
	}
}
