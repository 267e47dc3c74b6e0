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
			s.discarded[why]++
		}
		return
	}
	s.lastAnswer, s.lastSuccess, s.peerError = now, in.At.Time(), nil
	s.far.heard(reply.packet.Error)
	present := true
	if reply.filled() {
		present = s.learn(&reply, now)
		if reply.receipt.Query {
			s.query.answered(reply.receipt.Finish)
			return
		}
	} else if query, _ := s.query.knows(reply.packet.SenderT1); query {
		s.foreignQuery(&reply, now)
		return
	}
	s.answer(in, &reply, now, present)
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
		return r, discardReasons, false
	case r.filled() && r.receipt.Run != s.run:
		return r, discardBadReceipt, false
	}
	return r, 0, true
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
func (s *session) answer(in *tstamp.In, r *reply, now time.Duration, present bool) {
	s.roundTrips.lose(s.flights.expire(now, s.opts.LossTimeout))
	seq := seqwin.Extend(s.flights.next, r.packet.SenderSeq)
	f := s.flights.get(seq)
	switch {
	// What answers nothing that was asked must not move the window.
	case seq >= s.flights.next:
		s.discarded[discardUnknownSequence]++
		return
	case f != nil && r.packet.SenderT1 != s.opts.format.Encode(f.user, s.opts.TAIOffset):
		s.discarded[discardBadEcho]++
		return
	}
	var a answer
	if f != nil {
		a = s.answerOf(in, r, f, now)
	}
	n, verdict := uint64(0), seqwin.Late
	if present {
		n, verdict = s.number(&r.packet, now, a.lost[sample.Reverse])
	} else {
		s.rev.ended.late++
		s.rev.now.late++
	}
	if r.hasFollow && r.followUp.Mode != 0 && !r.filled() {
		s.answers.settle(seqwin.Extend(n, r.followUp.Seq), s.decode(r, r.followUp.T3, in.At), s.conclude)
	}
	if s.kind == farStateful && verdict != seqwin.Duplicate {
		s.numbered.add(seq, n, now)
	}
	switch {
	case verdict == seqwin.Duplicate:
		return
	case f == nil:
		s.discarded[discardUnknownSequence]++ // forgotten long ago
		s.forgotten(seq, r, in)
		return
	case f.state == flightOut:
		f.state = flightAnswered
		s.roundTrips.received++
		s.roundTrips.times.Decided(1, 0)
	case f.state == flightExpired, f.state == flightUnanswered:
		if f.state == flightUnanswered {
			s.roundTrips.unanswered--
		}
		f.state = flightAnsweredLate
		s.roundTrips.answeredLate++
		a.expired = true
	default: // a second answer: no sample
		s.numbered.again++
		return
	}
	a.packet.ReverseSeq = n
	if a.lost[sample.Forward] && present && !s.farLost(seq) {
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

// number finds the answer's own number and what the reverse window says of it.
func (s *session) number(p *wire.ReflectorPacket, now time.Duration, overdue bool) (uint64, seqwin.Verdict) {
	if s.kind == farUnknown {
		s.kind = farStateless
	}
	if s.kind == farStateless && p.Seq != p.SenderSeq {
		s.kind = farStateful
	}
	if !s.reverseOn {
		begin := uint64(p.Seq)
		if s.query.begin > 0 {
			begin = min(begin, s.query.begin)
		}
		s.reverse.Start(begin)
		s.reverseOn = true
	}
	s.reverse.Expire(now, s.opts.LossTimeout)
	n := seqwin.Extend(s.reverse.Counts().Next, p.Seq)
	verdict := seqwin.Late
	if overdue {
		if s.reverse.AddOverdue(n, now) == seqwin.Duplicate {
			verdict = seqwin.Duplicate
		}
	} else {
		verdict = s.reverse.Add(n, now)
	}
	s.countReverse()
	return n, verdict
}

func (s *session) countReverse() {
	c := s.reverse.Counts()
	s.rev.count(c, seqwin.RecentBits, s.series.direction[sample.Reverse].observeBurst, s.droppedHere)
	sent := c.Next - c.First
	if s.kind == farOurs {
		sent = max(sent, s.remote.tx)
	}
	s.rev.now.sent = s.rev.ended.sent + sent
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
