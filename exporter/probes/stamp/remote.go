package stamp

import (
	"math/bits"
	"slices"
	"time"

	"oneway.example/exporter/seqwin"
	wire "oneway.example/exporter/wire/stamp"
)

// remote is the forward direction as our reflector has counted it, widened to
// 64 bits from the Receipts of one epoch (one life of its session).
type remote struct {
	known           bool
	epoch, previous uint32
	counts          seqwin.Counts
	corrupted, tx   uint64
	drops           uint64 // of its socket
	words           int    // of counts.Recent
	// decided is Base before the newest Receipt, former is Next of the life before.
	decided, former uint64
	// heard is when an answer of the present life came last, by sched.Now.
	heard time.Duration
}

// firstOf finds the number with which the far end's count began: what it has
// decided, received (told by the bitmap) and lost, reaches from there to Base. A
// bitmap that is full may hide more; all that is not pending is then taken.
func firstOf(c *seqwin.Counts, words int) uint64 {
	received := uint64(0)
	for _, w := range c.Recent[:words] {
		received += uint64(bits.OnesCount64(w))
	}
	decided := c.Lost + received
	if decided >= uint64(64*words) {
		decided = c.Base - min(c.Base, c.Next-min(c.Next, c.Received+c.Lost))
	}
	return c.Base - min(c.Base, decided)
}

// news is what a Receipt turned out to be.
type news uint8

const (
	newsStale   news = iota // older than what is known: a reordered answer
	newsFormer              // of a former life of the far end's session
	newsFirst               // the first that is heard
	newsUpdate              // the same epoch, further on
	newsRestart             // the far end has lost its session and started anew
)

// update takes a filled Receipt.
func (r *remote) update(rc *wire.Receipt) news {
	if r.known && rc.Epoch != r.epoch {
		if rc.Epoch == r.previous {
			return newsFormer
		}
		previous, former := r.epoch, r.counts.Next
		*r = (&remote{}).widen(rc)
		r.previous, r.former = previous, former
		return newsRestart
	}
	next := r.widen(rc)
	if r.known && (next.counts.Next < r.counts.Next || next.counts.Received < r.counts.Received ||
		next.counts.Lost < r.counts.Lost || next.counts.Duplicated < r.counts.Duplicated ||
		next.counts.Late < r.counts.Late || next.tx < r.tx || next.corrupted < r.corrupted) {
		return newsStale
	}
	next.previous, next.former, next.decided = r.previous, r.former, r.counts.Base
	first := !r.known
	*r = next
	if first {
		return newsFirst
	}
	return newsUpdate
}

func (r *remote) widen(rc *wire.Receipt) remote {
	old := &r.counts
	n := remote{known: true, epoch: rc.Epoch, words: rc.Words}
	n.counts = seqwin.Counts{
		First:      old.First,
		Base:       seqwin.Extend(old.Base, rc.Base),
		Next:       seqwin.Extend(old.Next, rc.Next),
		Received:   seqwin.Extend(old.Received, rc.Received),
		Lost:       seqwin.Extend(old.Lost, rc.Lost),
		Duplicated: seqwin.Extend(old.Duplicated, rc.Duplicated),
		Reordered:  seqwin.Extend(old.Reordered, rc.Reordered),
		Late:       seqwin.Extend(old.Late, rc.Late),
		Bursts:     seqwin.Extend(old.Bursts, rc.Bursts),
		Recent:     rc.Recent,
	}
	n.corrupted = seqwin.Extend(r.corrupted, rc.Corrupted)
	n.tx = seqwin.Extend(r.tx, rc.Tx)
	if n.drops = r.drops; rc.Host {
		n.drops = seqwin.Extend(r.drops, rc.SocketDrops)
	}
	return n
}

// learn takes what our reflector tells of the forward direction and of the
// stamps of its earlier answers. It reports false for an answer of a former life of the
// reflector's session, whose numbers mean nothing in the present one. Another life begins only with
// an answer that is fresh: others may be replayed.
func (a *account) learn(r *reply, now time.Duration, fresh bool) (present bool) {
	rc := &r.receipt
	if a.remote.known && rc.Epoch != a.remote.epoch && !fresh {
		return false
	}
	a.remote.heard = now
	if rc.Query {
		a.query.heard = a.query.count
	}
	if seqwin.Extend(a.flights.next, rc.Next) > a.flights.next || rc.Base > rc.Next && a.flights.next < 1<<32 {
		a.discarded[discardBadReceipt]++
		return true
	}
	a.kind, a.est.ends.Far.Ours = farOurs, true
	switch a.remote.update(rc) {
	case newsStale:
	case newsFormer:
		return false
	case newsFirst:
		// What was sent before the far end began to count never reached it.
		first := firstOf(&a.remote.counts, rc.Words) // less what was guessed of another's reflector
		a.farBegins(first-min(first, a.fwd.now.received+a.fwd.now.lost+a.fwd.now.dropped), rc, now)
		a.countForward(rc, now)
	case newsRestart:
		a.farRestarted(rc, now)
		a.countForward(rc, now)
	case newsUpdate:
		a.anew = a.anew && !fresh // it has not restarted
		a.countForward(rc, now)
	}
	if !a.reverseOn {
		a.beginReverse(0, now)
	}
	next := seqwin.Extend(a.reverse.Counts().Next, r.packet.Seq)
	if rc.Query {
		// Tx of a query's answer says how many answers have been sent: those
		// are all that will ever come.
		if next = a.remote.tx; rc.Finish {
			a.finishReverse(next, now)
		}
	}
	for i, left := range slices.Backward(rc.Left[:]) { // the stamps of the answers before, oldest first
		if back := uint64(i) + 1; next >= back {
			a.est.answers.left(next-back, left, a.est.conclude)
		}
	}
	return true
}

// farBegins begins to count what the far end receives, after so many packets that it has not
// counted.
func (a *account) farBegins(unaccounted uint64, rc *wire.Receipt, now time.Duration) {
	a.farDrops.begin()
	a.takeFarDrops(rc, now)
	a.fwd.restart(unaccounted, a.droppedThere(unaccounted), true)
}

func (a *account) takeFarDrops(rc *wire.Receipt, now time.Duration) {
	if rc.Host {
		a.farHost = true
		a.farDrops.update(a.remote.drops, now)
	}
}

func (a *account) countForward(rc *wire.Receipt, now time.Duration) {
	a.takeFarDrops(rc, now)
	a.fwd.count(a.remote.counts, 64*rc.Words, a.droppedThere)
	a.fwd.now.corrupted = a.fwd.ended.corrupted + a.remote.corrupted
}

// finishReverse decides all answers below number end.
func (a *account) finishReverse(end uint64, now time.Duration) {
	if a.order.fits(end, a.questions()) {
		a.reverse.Finish(end, now)
		a.countReverse()
	}
}

// farRestarted closes the account of the far end's former life.
func (a *account) farRestarted(rc *wire.Receipt, now time.Duration) {
	// What the former life had not accounted for was received if it was answered, else
	// it cannot be known any more; the numbers from First on are the new life's.
	first := firstOf(&a.remote.counts, rc.Words)
	unaccounted := first - min(first, a.fwd.now.received+a.fwd.now.lost+a.fwd.now.dropped)
	received := min(unaccounted, a.flights.answered(a.remote.former, first))
	a.fwd.answered(received)
	lost := unaccounted - received
	a.unsure[unsureFarRestart] += lost
	a.farBegins(lost, rc, now)
	// Answers to questions that it had not received by then may have overtaken this one.
	later := a.flights.next - min(a.flights.next, a.remote.counts.Next)
	if !a.anew || a.order.next > a.remote.tx+later { // else the new life's own answers have begun its numbers
		a.renumber(0, now)
	}
	a.anew = false
}

// endLife closes the forward account of another's reflector, which has begun its numbers anew with
// the answer to question seq. Of the questions before, those that were not accounted for and
// have no answer are lost, wherever that was.
func (a *account) endLife(seq uint64) {
	d := &a.fwd
	answered, known := a.answered()-a.numbered.before, d.now.received-d.ended.received+d.overdue
	unaccounted := seq - min(seq, d.now.received+d.now.lost)
	received := min(unaccounted, answered-min(answered, known))
	d.answered(received)
	lost := unaccounted - received
	a.unsure[unsureFarRestart] += lost
	d.restart(lost, 0, false)
	d.known = true
	a.numbered = numbered{begin: seq, before: a.answered()}
}

// renumber begins a new life of the far end's numbers with n. The answers of the old one that are
// missing are lost.
func (a *account) renumber(n uint64, now time.Duration) {
	a.restarts++
	a.rev.restart(a.rev.now.inFlight(), 0, false)
	a.reverse.Reset()
	a.reserve()
	a.beginReverse(n, now)
	a.est.renumber()
}

// foreignQuery takes the answer of a reflector to which a query is a test
// packet. If it numbers its answers, the numbers of those to test packets lie
// between the answers to the first query and to the last.
func (a *account) foreignQuery(r *reply, now time.Duration) {
	if a.kind == farOurs {
		a.discarded[discardBadReceipt]++ // ours fills it in
		return
	}
	q := &a.query
	_, last := q.knows(r.packet.SenderT1)
	switch n := seqwin.Extend(a.reverse.Counts().Next, r.packet.Seq); {
	case !q.foreign && q.tries == 1 && !a.reverseOn:
		q.begin = n + 1
	case q.ended && last:
		if q.finished = true; r.packet.Seq != r.packet.SenderSeq { // else it has no number of its own
			a.kind = farStateful
			a.finishReverse(n, now)
		}
	}
	q.foreign = true
}
