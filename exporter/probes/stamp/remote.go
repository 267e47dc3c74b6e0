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
	// heard is when a reply of the present life came last, by sched.Now.
	heard time.Duration
}

// firstOf finds the number with which the remote end's count began: what it has
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

// receiptUpdate is what a Receipt turned out to be.
type receiptUpdate uint8

const (
	receiptStale   receiptUpdate = iota // older than what is known: a reordered reply
	receiptFormer                       // of a former life of the remote end's session
	receiptFirst                        // the first that is heard
	receiptNewer                        // the same epoch, further on
	receiptRestart                      // the remote end has lost its session and started anew
)

// update takes a filled Receipt.
func (r *remote) update(rc *wire.Receipt) receiptUpdate {
	if r.known && rc.Epoch != r.epoch {
		if rc.Epoch == r.previous {
			return receiptFormer
		}
		previous, former := r.epoch, r.counts.Next
		*r = (&remote{}).widen(rc)
		r.previous, r.former = previous, former
		return receiptRestart
	}
	next := r.widen(rc)
	if r.known && (next.counts.Next < r.counts.Next || next.counts.Received < r.counts.Received ||
		next.counts.Lost < r.counts.Lost || next.counts.Duplicated < r.counts.Duplicated ||
		next.counts.Late < r.counts.Late || next.tx < r.tx || next.corrupted < r.corrupted) {
		return receiptStale
	}
	next.previous, next.former, next.decided = r.previous, r.former, r.counts.Base
	first := !r.known
	*r = next
	if first {
		return receiptFirst
	}
	return receiptNewer
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
// stamps of its earlier answers. It reports false for a reply of a former life of the
// reflector's session, whose numbers mean nothing in the present one. Another life begins only with
// a reply that is fresh: others may be replayed.
func (a *account) learn(r *reply, now time.Duration, fresh bool) (present bool) {
	rc := &r.receipt
	if a.remote.known && rc.Epoch != a.remote.epoch && !fresh {
		return false
	}
	a.remote.heard = now
	if rc.StatsQuery {
		a.statsQuery.heard = a.statsQuery.count
	}
	if seqwin.Extend(a.outstandingPackets.next, rc.Next) > a.outstandingPackets.next || rc.Base > rc.Next && a.outstandingPackets.next < 1<<32 {
		a.discarded[discardBadReceipt]++
		return true
	}
	a.kind, a.est.ends.Remote.Ours = remoteOurs, true
	switch a.remote.update(rc) {
	case receiptStale:
	case receiptFormer:
		return false
	case receiptFirst:
		// What was sent before the remote end began to count never reached it.
		first := firstOf(&a.remote.counts, rc.Words) // less what was guessed of another's reflector
		a.remoteBegins(first-min(first, a.fwd.now.received+a.fwd.now.lost+a.fwd.now.dropped), rc, now)
		a.countForward(rc, now)
	case receiptRestart:
		a.remoteRestarted(rc, now)
		a.countForward(rc, now)
	case receiptNewer:
		a.anew = a.anew && !fresh // it has not restarted
		a.countForward(rc, now)
	}
	if !a.reverseOn {
		a.beginReverse(0, now)
	}
	next := seqwin.Extend(a.reverse.Counts().Next, r.packet.Seq)
	if rc.StatsQuery {
		// Tx of a query's reply says how many replies have been sent: those
		// are all that will ever come.
		if next = a.remote.tx; rc.Finish {
			a.finishReverse(next, now)
		}
	}
	for i, left := range slices.Backward(rc.Left[:]) { // the stamps of the replies before, oldest first
		if back := uint64(i) + 1; next >= back {
			a.est.replies.left(next-back, left, a.est.conclude)
		}
	}
	return true
}

// remoteBegins begins to count what the remote end receives, after so many packets that it has not
// counted.
func (a *account) remoteBegins(unaccounted uint64, rc *wire.Receipt, now time.Duration) {
	a.remoteDrops.begin()
	a.told = toldMarks{}
	a.takeRemoteDrops(rc, now)
	a.fwd.restart(unaccounted, a.droppedThere(unaccounted), true)
}

func (a *account) takeRemoteDrops(rc *wire.Receipt, now time.Duration) {
	if rc.Host {
		a.remoteHost = true
		a.remoteDrops.update(a.remote.drops, now)
		a.takeMarks(rc)
	}
}

func (a *account) countForward(rc *wire.Receipt, now time.Duration) {
	a.takeRemoteDrops(rc, now)
	a.fwd.count(a.remote.counts, 64*rc.Words, a.droppedThere)
	a.fwd.now.corrupted = a.fwd.ended.corrupted + a.remote.corrupted
}

// finishReverse decides all replies below number end.
func (a *account) finishReverse(end uint64, now time.Duration) {
	if a.order.fits(end, a.requests()) {
		a.reverse.Finish(end, now)
		a.countReverse()
	}
}

// remoteRestarted closes the account of the remote end's former life.
func (a *account) remoteRestarted(rc *wire.Receipt, now time.Duration) {
	// What the former life had not accounted for was received if it was answered, else
	// it cannot be known any more; the numbers from First on are the new life's.
	first := firstOf(&a.remote.counts, rc.Words)
	unaccounted := first - min(first, a.fwd.now.received+a.fwd.now.lost+a.fwd.now.dropped)
	received := min(unaccounted, a.outstandingPackets.answered(a.remote.former, first))
	a.fwd.answered(received)
	lost := unaccounted - received
	a.lowConfidence[lowConfidenceRemoteRestart] += lost
	a.remoteBegins(lost, rc, now)
	// Answers to requests that it had not received by then may have overtaken this one.
	later := a.outstandingPackets.next - min(a.outstandingPackets.next, a.remote.counts.Next)
	if !a.anew || a.order.next > a.remote.tx+later { // else the new life's own answers have begun its numbers
		a.renumber(0, now)
	}
	a.anew = false
}

// endLife closes the forward account of another's reflector, which has begun its numbers anew with
// the reply to request seq. Of the requests before, those that were not accounted for and
// have no reply are lost, wherever that was.
func (a *account) endLife(seq uint64) {
	d := &a.fwd
	answered, known := a.answered()-a.numbered.before, d.now.received-d.ended.received+d.overdue
	unaccounted := seq - min(seq, d.now.received+d.now.lost)
	received := min(unaccounted, answered-min(answered, known))
	d.answered(received)
	lost := unaccounted - received
	a.lowConfidence[lowConfidenceRemoteRestart] += lost
	d.restart(lost, 0, false)
	d.known = true
	a.numbered = numbered{begin: seq, before: a.answered()}
}

// renumber begins a new life of the remote end's numbers with n. The replies of the old one that are
// missing are lost.
func (a *account) renumber(n uint64, now time.Duration) {
	a.restarts++
	a.rev.restart(a.rev.now.outstanding(), 0, false)
	a.reverse.Reset()
	a.reserve()
	a.beginReverse(n, now)
	a.est.renumber()
}

// foreignStatsQuery takes the reply of a reflector to which a query is a test
// packet. If it numbers its replies, the numbers of those to test packets lie
// between the replies to the first query and to the last.
func (a *account) foreignStatsQuery(r *reply, now time.Duration) {
	if a.kind == remoteOurs {
		a.discarded[discardBadReceipt]++ // ours fills it in
		return
	}
	q := &a.statsQuery
	_, last := q.knows(r.packet.SenderT1)
	switch n := seqwin.Extend(a.reverse.Counts().Next, r.packet.Seq); {
	case !q.foreign && q.tries == 1 && !a.reverseOn:
		q.begin = n + 1
	case q.ended && last:
		if q.finished = true; r.packet.Seq != r.packet.SenderSeq { // else it has no number of its own
			a.kind = remoteStateful
			a.finishReverse(n, now)
		}
	}
	q.foreign = true
}
