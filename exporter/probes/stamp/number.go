package stamp

import (
	"math"
	"time"

	"oneway.example/exporter/sample"
	"oneway.example/exporter/seqwin"
	wire "oneway.example/exporter/wire/stamp"
)

// number finds the answer's own number and what the reverse window says of it. An answer whose number
// cannot be is late: it tells of the question, and moves nothing.
func (s *session) number(p *wire.ReflectorPacket, q question, now time.Duration, overdue bool) (uint64, seqwin.Verdict) {
	if !s.reverseOn {
		s.beginReverse(s.firstNumber(uint64(p.Seq)), now)
	}
	s.reverse.Expire(now, s.opts.LossTimeout)
	n := seqwin.Extend(s.reverse.Counts().Next, p.Seq)
	first := q.first()
	switch where := s.order.judge(n, s.questions(), first && q.flight.sent > s.order.at, s.kind == farOurs); {
	case where == placeAnew:
		n = uint64(p.Seq)
		if s.kind != farOurs {
			s.endLife(q.seq)
		}
		s.renumber(n, now)
	case where == placeRefused, first && s.reverse.Seen(n): // that one was another question's
		s.discarded[discardWrongNumber]++
		return n, seqwin.Late
	}
	switch {
	case s.kind == farOurs:
	case p.Seq != p.SenderSeq:
		s.kind = farStateful
	case s.kind == farUnknown:
		s.kind = farStateless
	}
	verdict := seqwin.Late
	if overdue {
		if s.reverse.AddOverdue(n, now) == seqwin.Duplicate {
			verdict = seqwin.Duplicate
		}
	} else {
		verdict = s.reverse.Add(n, now)
	}
	unheard := s.flights.unheard
	if first {
		unheard--
	}
	s.order.take(n, s.questions(), unheard, now)
	if s.kind == farStateful && verdict != seqwin.Duplicate {
		s.numbered.add(q.seq, n, now)
	}
	s.countReverse()
	return n, verdict
}

// questions counts test packets and queries.
func (s *session) questions() uint64 { return s.flights.next + uint64(s.query.count) }

func (s *session) beginReverse(first uint64, now time.Duration) {
	s.reverse.Start(first)
	s.order.begin(first, now)
	s.reverseOn = true
}

// firstNumber is that of the first answer to a test packet, if one numbered n is the first that
// is heard.
func (s *session) firstNumber(n uint64) uint64 {
	if begin := s.query.begin; begin > 0 && begin <= n && n-begin <= 2*s.questions() {
		return begin
	}
	return n
}

func (s *session) countReverse() {
	c := s.reverse.Counts()
	s.rev.count(c, seqwin.RecentBits, s.series.direction[sample.Reverse].observeBurst, s.droppedHere)
	sent := c.Next - c.First
	if s.kind == farOurs && s.order.fits(s.remote.tx, s.questions()) {
		sent = max(sent, s.remote.tx-min(s.remote.tx, c.First))
	}
	s.rev.now.sent = s.rev.ended.sent + sent
}

// endLife closes the forward books of another's reflector, which has begun its numbers anew with
// the answer to question seq. Of the questions before, those that were not accounted for and
// have no answer are lost, wherever that was.
func (s *session) endLife(seq uint64) {
	d := &s.fwd
	answered, known := s.roundTrips.answered()-s.numbered.before, d.now.received-d.ended.received+d.overdue
	unaccounted := seq - min(seq, d.now.received+d.now.lost)
	received := min(unaccounted, answered-min(answered, known))
	d.answered(received)
	lost := unaccounted - received
	s.unsure[unsureFarRestart] += lost
	d.restart(lost, 0, nil)
	d.known = true
	s.numbered = numbered{begin: seq, before: s.roundTrips.answered()}
}

// renumber begins a new life of the far end's numbers with n. The answers of the old one that are
// missing are lost.
func (s *session) renumber(n uint64, now time.Duration) {
	s.restarts++
	s.rev.restart(s.rev.now.inFlight(), 0, nil)
	s.fwd.variation.Break()
	s.rev.variation.Break()
	s.reverse.Reset()
	s.reserve()
	s.beginReverse(n, now)
	s.answers.flush(math.MaxInt64, s.conclude)
	s.answers = answers{}
	if s.offset != nil {
		s.offset.Reset() // with its host, maybe, and that one's clock
	}
}
