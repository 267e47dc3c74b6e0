package stamp

import (
	"time"

	"oneway.example/exporter/bound"
	"oneway.example/exporter/instant"
	"oneway.example/exporter/sample"
	"oneway.example/exporter/sched"
	"oneway.example/exporter/seqwin"
	"oneway.example/exporter/tstamp"
	wire "oneway.example/exporter/wire/stamp"
)

// received takes one datagram that the hub found to be for this session.
func (s *session) received(in *tstamp.In) {
	now := sched.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	reply, why, ok := s.open(in)
	if !ok {
		if why == discardReasons {
			s.rev.now.corrupted++
		} else {
			s.refuse(why, now)
		}
		return
	}
	s.roundTrips.lose(s.flights.expire(now, s.opts.LossTimeout))
	q, why, ok := s.asked(&reply)
	if !ok {
		s.refuse(why, now)
		return
	}
	s.peerError = nil
	s.far.heard(reply.packet.Error)
	present := true
	switch {
	case q.forgotten(): // nothing but 32 bits say that it is of this session
		present = reply.receipt.Epoch == s.remote.epoch
	case reply.filled():
		present = s.learn(&reply, now, s.fresh(&reply, q))
	}
	switch {
	case !q.query:
		s.answer(in, &reply, q, now, present)
	case reply.filled():
		s.query.answered(reply.receipt.Finish)
	default:
		s.foreignQuery(&reply, now)
	}
}

// refuse counts what came and is no answer to this session's questions.
func (s *session) refuse(why discardReason, now time.Duration) {
	s.discarded[why]++
	s.refused, s.lastRefused = why, now
}

// question is what an answer says that it answers.
type question struct {
	query bool
	seq   uint64
	// flight is what is known of test packet seq; nil: it is forgotten.
	flight *flight
}

func (q *question) forgotten() bool { return !q.query && q.flight == nil }

// first: no answer to it has come before.
func (q *question) first() bool { return q.flight != nil && q.flight.unheard() }

// asked finds the question by its number and its time, which is known to nobody but this host and who
// has seen the packet. What answers nothing that was asked moves nothing. Of the answer to a question
// that is forgotten, the random Run in our reflector's Receipt tells that it is of this session.
func (s *session) asked(r *reply) (q question, why discardReason, ok bool) {
	test := !r.filled() || !r.receipt.Query
	if test {
		q.seq = seqwin.Extend(s.flights.next, r.packet.SenderSeq)
		q.flight = s.flights.get(q.seq)
		why = discardUnknownSequence
		if q.flight != nil {
			why = discardBadEcho
			if r.packet.SenderT1 == s.opts.format.Encode(q.flight.user, s.opts.TAIOffset) {
				return q, 0, true
			}
		}
	}
	if !test || !r.filled() {
		q.query, _ = s.query.knows(r.packet.SenderT1)
		return q, why, q.query
	}
	return q, why, q.flight == nil && q.seq < s.flights.next
}

// reply is one parsed answer.
type reply struct {
	packet     wire.ReflectorPacket
	followUp   wire.FollowUp
	receipt    wire.Receipt
	hasFollow  bool
	hasReceipt bool
}

// filled: our reflector wrote its counts.
func (r *reply) filled() bool { return r.hasReceipt && r.receipt.Filled }

// open parses and checks a datagram. why is discardReasons for a damaged one.
func (s *session) open(in *tstamp.In) (r reply, why discardReason, ok bool) {
	if in.Truncated {
		return r, discardTruncated, false
	}
	b := in.Payload
	if len(b) < s.layout.base {
		return r, discardShort, false
	}
	authentic, err := s.parse(b, &r.packet)
	if err != nil {
		return r, discardShort, false
	}
	if !authentic {
		return r, discardBadHMAC, false
	}
	intact := s.readTLVs(b, &r)
	switch {
	case !intact, r.filled() && !wire.CheckCRC(b, s.layout.authenticated),
		// From our reflector every answer to such a question has a Receipt.
		s.kind == farOurs && s.layout.receipt && !r.filled():
		return r, s.damaged(&r), false
	case r.filled() && r.receipt.Run != s.run:
		return r, discardBadReceipt, false
	}
	return r, 0, true
}

// damaged is why r, which is damaged, is refused: discardReasons if it is of this session all the same, by
// its echo or by its Receipt, since damage seldom takes both.
func (s *session) damaged(r *reply) discardReason {
	q, why, ok := s.asked(r)
	if ok && !q.forgotten() || r.hasReceipt && r.receipt.Run == s.run {
		return discardReasons
	}
	return why
}

// parse reads the base packet, trying each key in authenticated mode.
func (s *session) parse(b []byte, p *wire.ReflectorPacket) (authentic bool, err error) {
	if !s.layout.authenticated {
		*p, err = wire.ParseReflector(b)
		return true, err
	}
	for _, k := range s.accept {
		if *p, err = wire.ParseReflectorAuthenticated(b, k); err == nil {
			return s.verifyTLVs(b, k), nil
		}
	}
	return false, nil
}

// verifyTLVs checks the HMAC TLV, which is the last of ours.
func (s *session) verifyTLVs(b []byte, k *wire.Key) bool {
	return len(b) == s.layout.base || k.VerifyTLVs(b, s.layout.base, len(b)-hmacTLVBytes)
}

// readTLVs notes the TLVs that matter; false means that the padding, whose
// pattern we chose, came back damaged.
func (s *session) readTLVs(b []byte, r *reply) (intact bool) {
	rest := b[s.layout.base:]
	for len(rest) > 0 {
		var t wire.TLV
		var err error
		if t, rest, err = wire.NextTLV(rest); err != nil {
			return false
		}
		if t.Flags&wire.FlagMalformed != 0 {
			return true // what follows was not read by the far end, nor is it by us
		}
		// Unrecognised, or not to be believed: its HMAC was wrong (RFC 8972 section 4.8).
		unknown := t.Flags&(wire.FlagUnrecognised|wire.FlagIntegrity) != 0
		switch t.Type {
		case wire.TypeFollowUp:
			if f, err := wire.ParseFollowUp(t.Value); err == nil && !unknown {
				r.followUp, r.hasFollow = f, true
			}
		case wire.TypeReceipt:
			rc, err := wire.ParseReceipt(t.Value)
			if err != nil {
				return false
			}
			rc.Filled = rc.Filled && !unknown
			r.receipt, r.hasReceipt = rc, true
		case wire.TypeExtraPadding:
			if !wire.CheckPadding(t.Value, r.packet.SenderSeq) {
				return false
			}
		default: // not asked for
		}
	}
	return true
}

// answer takes the answer to a test packet; present says that it is of the present life of the
// far end's session. Those of a former one were lost in reverse when that ended.
func (s *session) answer(in *tstamp.In, r *reply, q question, now time.Duration, present bool) {
	seq, f := q.seq, q.flight
	var a answer
	if f != nil {
		a = s.answerOf(in, r, f, now)
	}
	n, verdict := uint64(0), seqwin.Late
	switch {
	case present:
		n, verdict = s.number(&r.packet, q, now, a.lost[sample.Reverse])
	case q.first(): // another one may be recorded
		s.rev.ended.late++
		s.rev.now.late++
	}
	if r.hasFollow && r.followUp.Mode != 0 && !r.filled() {
		s.answers.settle(seqwin.Extend(n, r.followUp.Seq), s.decode(r, r.followUp.T3, in.At), s.conclude)
	}
	switch {
	case verdict == seqwin.Duplicate:
		return
	case f == nil:
		s.refuse(discardUnknownSequence, now) // forgotten long ago
		s.forgotten(seq, r, in)
		return
	case !q.first(): // no sample
		s.numbered.again++
		return
	}
	a.expired = f.state != flightOut
	s.answered(f)
	switch {
	case verdict != seqwin.Late:
		s.lastAnswer, s.lastSuccess = now, in.At.Time()
	case !a.expired:
		s.refused, s.lastRefused = discardWrongNumber, now
	}
	a.packet.ReverseSeq = n
	if a.lost[sample.Forward] && present && seq >= s.numbered.begin && !s.farLost(seq) {
		s.fwd.tooLate(seq)
	}
	if verdict == seqwin.Late {
		// It is lost in reverse; the forward delay that it tells is valid all the same.
		a.lost[sample.Reverse] = true
		s.conclude(&a)
		return
	}
	s.answers.put(a, s.conclude)
}

// answered takes the first answer to f.
func (s *session) answered(f *flight) {
	if f.seq < s.numbered.begin {
		s.numbered.before++
	}
	if f.state == flightOut {
		s.flights.answer(f, flightAnswered)
		s.roundTrips.received++
		s.roundTrips.times.Decided(1, 0)
		return
	}
	if f.state == flightUnanswered {
		s.roundTrips.unanswered--
	}
	s.flights.answer(f, flightAnsweredLate)
	s.roundTrips.answeredLate++
}

// answerOf joins what is known of the answer to f.
func (s *session) answerOf(in *tstamp.In, r *reply, f *flight, now time.Duration) answer {
	a := answer{
		packet: s.sampleOf(in, r, f), arrived: now, clock: f.clock.and(s.clock.Quality(instant.Now())),
		shared: r.filled() && r.receipt.Clock == wire.ClockShared, waiting: true,
	}
	// A step there begins another era for all stamps that come after it.
	if stepping := a.packet.Far.Reason == sample.FarStepped; stepping != s.farStepping {
		if s.farStepping = stepping; stepping {
			s.stepped()
		}
	}
	a.era = s.era
	if now-f.sent > s.opts.LossTimeout {
		a.lost = s.overdue(&a, f)
	}
	return a
}

// sampleOf joins the four stamps of one packet.
func (s *session) sampleOf(in *tstamp.In, r *reply, f *flight) sample.Packet {
	p := sample.Packet{
		Seq: f.seq, T1: f.t1, T4: in.Stamp,
		T2:  sample.Stamp{At: s.decode(r, r.packet.T2, in.At), Origin: sample.InPacket},
		T3:  sample.Stamp{At: s.decode(r, r.packet.T3, in.At), Origin: sample.InPacket},
		Far: farBound(r),
	}
	if r.filled() && r.receipt.T2Origin != sample.Absent {
		p.T2.Origin = r.receipt.T2Origin
	}
	for _, t := range []*sample.Stamp{&p.T2, &p.T3} {
		if t.At.IsZero() {
			t.Origin = sample.Absent
		}
	}
	return p
}

// decode reads a stamp that the far end wrote, in the format that the answer's
// own Error Estimate names (RFC 8762 section 4.2.1): it need not be ours.
func (s *session) decode(r *reply, raw uint64, near instant.Time) instant.Time {
	return r.packet.Error.Format().Decode(raw, s.opts.TAIOffset, near)
}

// farBound reads what the far end says of its clock: the Error Estimate of the
// answer (RFC 8762 section 4.2.1), refined by our reflector's own word. An estimate of
// more than bound.Limit is none, whatever the S bit says.
func farBound(r *reply) sample.Bound {
	e := r.packet.Error
	switch {
	case r.filled() && r.receipt.Clock == wire.ClockStepped:
		return sample.Bound{Reason: sample.FarStepped}
	case !e.Synchronised() || !e.Valid():
		return sample.Bound{Reason: sample.FarUnsynchronised}
	}
	return bound.Claim(e.Bound())
}

// fresh tells whether the question was asked after the last answer of the reflector's present life had
// come, and this is its first answer: so no replayed answer of another life is.
func (s *session) fresh(r *reply, q question) bool {
	if !q.query {
		return q.first() && q.flight.sent > s.remote.heard
	}
	_, last := s.query.knows(r.packet.SenderT1)
	return last && s.query.heard != s.query.count
}
