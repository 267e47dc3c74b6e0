package ledger

import (
	"math"
	"math/bits"
	"slices"
	"time"

	"oneway.example/exporter/estimate/seqwin"
	"oneway.example/exporter/net/wire/stampfmt"
)

// remote is the state of the forward direction as counted by our reflector, widened to 64 bits from the Receipts of
// one epoch (one session of the reflector).
type remote struct {
	known           bool
	late            bool  // the newest Receipt counts more late packets
	words           uint8 // of counts.Recent
	turns           uint8 // how often the address has changed to another session since this one is the present one, see alternates
	epoch, previous uint32
	turn            uint32 // the first request after the last change, its low bits
	counts          seqwin.Counts
	corrupted, tx   uint64
	drops           uint64 // of its socket
	// decided is Base before the newest Receipt, former is Next of the previous session.
	decided, former uint64
	// heard is when the last reply of the current session arrived, by sched.Now.
	heard time.Duration
}

// firstOf returns the number at which the remote end's counts began: decided, received (by the bitmap) and lost
// numbers reach from there to Base. A full bitmap may hide more numbers; then all that are not pending count.
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

// receiptUpdate is the classification of a Receipt.
type receiptUpdate uint8

const (
	receiptStale   receiptUpdate = iota // older than the current state: a reordered reply
	receiptFormer                       // of an earlier session of the remote end than the present one
	receiptFirst                        // the first one received
	receiptNewer                        // the same epoch, newer
	receiptRestart                      // the remote end has lost its session and begun a new one
)

// update applies a filled Receipt.
func (r *remote) update(rc *stampfmt.Receipt) receiptUpdate {
	if r.known && rc.Epoch != r.epoch {
		other := (&remote{}).widen(rc)
		if rc.Epoch == r.previous || other.age(firstOf(&other.counts, rc.Words)) > other.age(r.former) { // the present one is newer
			return receiptFormer
		}
		other.previous, other.former = r.epoch, r.counts.Next
		*r = other
		return receiptRestart
	}
	next := r.widen(rc)
	if r.known && (next.counts.Next < r.counts.Next || next.counts.Received < r.counts.Received ||
		next.counts.Lost < r.counts.Lost || next.counts.Duplicated < r.counts.Duplicated ||
		next.counts.Late < r.counts.Late || next.tx < r.tx || next.corrupted < r.corrupted) {
		return receiptStale
	}
	next.previous, next.former, next.decided, next.late = r.previous, r.former, r.counts.Base, next.counts.Late > r.counts.Late
	next.turns, next.turn = r.turns, r.turn
	first := !r.known
	*r = next
	if first {
		return receiptFirst
	}
	return receiptNewer
}

// age returns how many requests ago number first was, of a session that has not counted more than 32 bits.
func (r *remote) age(first uint64) uint32 { return uint32(r.counts.Next - first) }

func (r *remote) widen(rc *stampfmt.Receipt) remote {
	old := &r.counts
	n := remote{known: true, epoch: rc.Epoch, words: uint8(rc.Words)}
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

// learn applies our reflector's report on the forward direction and on the timestamps of its earlier replies. It
// returns false for a reply of a previous session, whose numbers are undefined in the current one. Only a fresh
// reply begins another session: others may be replayed.
func (a *Account) learn(r *Reply, now time.Duration, fresh bool) (present bool) {
	rc := &r.Receipt
	if a.remote.known && rc.Epoch != a.remote.epoch && !fresh {
		return false
	}
	if rc.Epoch == a.remote.epoch {
		a.remote.heard = now
	}
	if rc.StatsQuery {
		a.statsQuery.heard = a.statsQuery.count
	}
	if seqwin.Extend(a.outstandingPackets.next, rc.Next) > a.outstandingPackets.next || rc.Base > rc.Next && a.outstandingPackets.next < 1<<32 {
		a.discard(DiscardBadReceipt)
		return true
	}
	if a.Kind != RemoteOurs {
		a.closePorts()
		a.Kind = RemoteOurs
		a.decided(Verdict{Kind: RemoteIdentified})
	}
	switch a.remote.update(rc) {
	case receiptStale:
	case receiptFormer:
		a.returned = a.remote.turns > 0 // otherwise the reply may have been overtaken
		return false
	case receiptFirst:
		first := firstOf(&a.remote.counts, rc.Words) // less the counts derived as from a foreign reflector
		a.remoteBegins(first-min(first, a.fwd.now.accounted()), rc, now)
		a.countForward(rc, now)
	case receiptRestart:
		if a.faults != nil {
			a.faults.unreported = nil
		}
		a.remoteRestarted(rc, now)
		a.countForward(rc, now)
	case receiptNewer:
		a.renumbered = a.renumbered && !fresh // it has not restarted
		switch {
		case a.answeredElsewhere(rc):
			a.Shared = SharedAddress
			a.unshare(r, Request{}, now)
			return true
		case a.remote.turns == 0: // otherwise another session has received packets that this one may count as lost
			a.countForward(rc, now)
		}
	}
	if r.Port > a.ports().told {
		a.fault().ports.told = r.Port
	}
	if !a.reverseOn {
		a.beginReverse(0, now)
	}
	next := seqwin.Extend(a.reverse.Counts().Next, r.Packet.Seq)
	if rc.StatsQuery {
		// Tx in a statistics reply is how many replies were sent: the final count.
		if next = a.remote.tx; rc.Finish {
			a.finishReverse(next, now)
		}
	}
	a.rev.told = a.rev.told || rc.TellsTX
	for i, left := range slices.Backward(rc.EarlierTX[:]) { // the timestamps of the previous replies, oldest first
		a.rev.told = a.rev.told || left.Known
		if back := uint64(i) + 1; next >= back {
			a.replies.left(next-back, left, a.conclude)
		}
	}
	return true
}

// remoteBegins begins the remote end's count of received packets, after unaccounted packets without a reply that it has not
// counted. Those that its host did not drop may have reached its previous session: neither direction is known to have
// lost them.
func (a *Account) remoteBegins(unaccounted uint64, rc *stampfmt.Receipt, now time.Duration) {
	a.remote.turn = uint32(a.outstandingPackets.next)
	a.remoteDrops.Begin()
	a.lastHostBlock = lastHostBlock{}
	a.takeRemoteDrops(rc, now)
	dropped := a.droppedThere(unaccounted, now)
	a.fwd.now.dropped += dropped
	a.undirected(LowConfidenceRemoteRestart, unaccounted-dropped)
	a.fwd.undecide(unaccounted - dropped)
	a.fwd.restart()
}

func (a *Account) takeRemoteDrops(rc *stampfmt.Receipt, now time.Duration) {
	if rc.Host {
		a.remoteHost = true
		a.remoteDrops.Update(a.remote.drops, now)
		a.takeHostBlock(rc)
	}
}

func (a *Account) countForward(rc *stampfmt.Receipt, now time.Duration) {
	a.takeRemoteDrops(rc, now)
	a.fwd.count(a.remote.counts, 64*rc.Words, func(lost uint64) uint64 { return a.droppedThere(lost, now) })
	a.fwd.now.corrupted = a.fwd.ended.corrupted + a.remote.corrupted
	if a.faults == nil {
		return
	}
	a.faults.unreported = slices.DeleteFunc(a.faults.unreported, func(seq uint64) bool {
		told := seq < a.remote.counts.Base
		if told && !a.remoteLost(seq) {
			a.fwd.tooLate(seq)
		}
		return told
	})
}

// finishReverse decides all replies below number end.
func (a *Account) finishReverse(end uint64, now time.Duration) {
	if a.order.fits(end, a.requests()) {
		a.heard(now)
		a.reverse.Finish(end, now)
		a.countReverse()
	}
}

// remoteRestarted closes the account of the remote end's previous session.
func (a *Account) remoteRestarted(rc *stampfmt.Receipt, now time.Duration) {
	// Packets not accounted for by the previous session were received if they have a reply, else their outcome is
	// unknown; the numbers from First on are of the new session.
	first := firstOf(&a.remote.counts, rc.Words)
	unaccounted := first - min(first, a.fwd.now.accounted())
	received := min(unaccounted, a.outstandingPackets.answered(a.remote.former, first))
	a.fwd.answered(received)
	a.remoteBegins(unaccounted-received, rc, now)
	// Replies to requests that it had not received by then may have overtaken this one.
	later := a.outstandingPackets.next - min(a.outstandingPackets.next, a.remote.counts.Next)
	if !a.renumbered || a.order.next > a.remote.tx+later { // otherwise replies of the new session have begun its numbers
		a.renumber(0, now)
	}
	a.renumbered = false
}

// endLife closes the forward account of a foreign reflector whose numbers began anew with request seq. Earlier requests that are neither
// accounted for nor answered are lost: forward, as far as the old numbers tell. unknown takes the others, which have no direction.
func (a *Account) endLife(seq uint64, unknown func(n uint64)) {
	d := &a.fwd
	answered, known := a.answered()-a.numbered.before, d.now.received-d.ended.received+d.overdue
	unaccounted := seq - min(seq, d.now.accounted()+a.ports().open)
	received := min(unaccounted, answered-min(answered, known))
	d.answered(received)
	missing, before := a.numbered.missing(a.reverse.Counts().First), d.now.lost-d.ended.lost-d.overdue
	lost := min(unaccounted-received, missing-min(missing, before))
	d.missed(lost)
	unknown(unaccounted - received - lost)
	d.restart()
	d.known = true
	a.numbered = numbered{begin: seq, before: a.answered()}
}

// renumber begins a new range of the remote end's numbers with n. Missing replies of the old range are lost.
func (a *Account) renumber(n uint64, now time.Duration) {
	a.Restarts++
	a.beginNumbers(n, now)
}

// beginNumbers ends a range of the remote end's numbers and begins another one with n.
func (a *Account) beginNumbers(n uint64, now time.Duration) {
	a.endNumbers(a.rev.now.outstanding)
	a.beginReverse(n, now)
}

// endNumbers ends a range of the remote end's numbers; lost of its replies are missing.
func (a *Account) endNumbers(lost func() uint64) {
	a.Flush(math.MaxInt64) // first: it decides replies of the old range
	a.replies = replies{}
	a.decided(Verdict{Kind: RemoteRenumbered})
	a.rev.missed(lost())
	a.rev.restart()
	a.reverse.Reset()
	a.reserve()
}

// foreignStatsQuery processes the reply of a reflector that treats a statistics query as a test packet. If it
// numbers its replies, those to test packets are between the replies to the first query and to the last.
func (a *Account) foreignStatsQuery(r *Reply, now time.Duration) {
	if a.Kind == RemoteOurs {
		a.discard(DiscardBadReceipt) // our reflector fills it in
		return
	}
	q := &a.statsQuery
	_, last := q.contains(r.Packet.SenderT1)
	switch n := seqwin.Extend(a.reverse.Counts().Next, r.Packet.Seq); {
	case !q.foreign && q.tries == 1 && !a.reverseOn:
		q.begin = n + 1
	case q.ended && last:
		if q.finished = true; r.Packet.Seq != r.Packet.SenderSeq { // otherwise it copies the sender's number
			a.Kind = RemoteStateful
			a.finishReverse(n, now)
		}
	}
	q.foreign = true
}
