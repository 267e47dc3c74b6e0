package stamp

import (
	"slices"
	"time"

	"oneway.example/exporter/sample"
	"oneway.example/exporter/seqwin"
	wire "oneway.example/exporter/wire/stamp"
)

// learn takes what our reflector tells of the forward direction and of the
// stamps of its earlier answers. It reports false for an answer of a former life of the
// reflector's session, whose numbers mean nothing in the present one. Another life begins only with
// an answer that is fresh: others may be replayed.
func (s *session) learn(r *reply, now time.Duration, fresh bool) (present bool) {
	rc := &r.receipt
	if s.remote.known && rc.Epoch != s.remote.epoch && !fresh {
		return false
	}
	s.remote.heard = now
	if rc.Query {
		s.query.heard = s.query.count
	}
	if seqwin.Extend(s.flights.next, rc.Next) > s.flights.next || rc.Base > rc.Next && s.flights.next < 1<<32 {
		s.discarded[discardBadReceipt]++
		return true
	}
	s.kind = farOurs
	switch s.remote.update(rc) {
	case newsStale:
	case newsFormer:
		return false
	case newsFirst:
		// What was sent before the far end began to count never reached it.
		s.farBegins(firstOf(&s.remote.counts, rc.Words), rc, now)
		s.countForward(rc, now)
	case newsRestart:
		s.farRestarted(rc, now)
		s.countForward(rc, now)
	case newsUpdate:
		s.countForward(rc, now)
	}
	if !s.reverseOn {
		s.beginReverse(0, now)
	}
	if rc.Query {
		// Tx of a query's answer says how many answers have been sent: those
		// are all that will ever come.
		s.finishReverse(rc, now)
		s.settleLeft(rc, s.remote.tx)
		return true
	}
	s.settleLeft(rc, seqwin.Extend(s.reverse.Counts().Next, r.packet.Seq))
	return true
}

// settleLeft takes the stamps of the answers before the one numbered next.
func (s *session) settleLeft(rc *wire.Receipt, next uint64) {
	for i, left := range slices.Backward(rc.Left[:]) { // oldest first
		if back := uint64(i) + 1; next >= back {
			s.answers.left(next-back, left, s.conclude)
		}
	}
}

// farBegins begins to count what the far end receives, after so many packets that it has not
// counted.
func (s *session) farBegins(unaccounted uint64, rc *wire.Receipt, now time.Duration) {
	s.farDrops.begin()
	s.takeFarDrops(rc, now)
	s.fwd.restart(unaccounted, s.droppedThere(unaccounted), s.series.direction[sample.Forward].observeBurst)
}

func (s *session) takeFarDrops(rc *wire.Receipt, now time.Duration) {
	if rc.Host {
		s.farHost = true
		s.farDrops.update(s.remote.drops, now)
	}
}

func (s *session) countForward(rc *wire.Receipt, now time.Duration) {
	s.takeFarDrops(rc, now)
	s.fwd.count(s.remote.counts, 64*rc.Words, s.series.direction[sample.Forward].observeBurst, s.droppedThere)
	s.fwd.now.corrupted = s.fwd.ended.corrupted + s.remote.corrupted
}

func (s *session) finishReverse(rc *wire.Receipt, now time.Duration) {
	if rc.Finish && s.order.fits(s.remote.tx, s.questions()) {
		s.reverse.Finish(s.remote.tx, now)
		s.countReverse()
	}
}

// farRestarted closes the books of the far end's former life.
func (s *session) farRestarted(rc *wire.Receipt, now time.Duration) {
	// What the former life had not accounted for was received if it was answered, else
	// it cannot be known any more; the numbers from First on are the new life's.
	first := firstOf(&s.remote.counts, rc.Words)
	unaccounted := first - min(first, s.fwd.now.received+s.fwd.now.lost+s.fwd.now.dropped)
	received := min(unaccounted, s.flights.answered(s.remote.former, first))
	s.fwd.answered(received)
	lost := unaccounted - received
	s.unsure[unsureFarRestart] += lost
	s.farBegins(lost, rc, now)
	s.renumber(0, now)
}
