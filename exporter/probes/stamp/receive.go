package stamp

import (
	"time"

	"oneway.example/exporter/core/bound"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/estimate/seqwin"
	"oneway.example/exporter/net/sched"
	"oneway.example/exporter/net/tstamp"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/exporter/net/wire/timefmt"
)

// received processes one datagram of this session, which arrived at now: the account takes the remote end's counts
// and the request of the reply, the estimator takes the timestamps.
func (s *session) received(in *tstamp.In, now time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	a := s.account
	a.setLate(sched.Now() - now)
	reply, why, ok := s.open(in)
	if !ok {
		if why == discardReasons {
			a.rev.now.corrupted++
		} else {
			a.refuse(why, now)
		}
		if why.ofKey() {
			s.peerError = nil // something replies
		}
		return
	}
	a.lose(a.outstandingPackets.expire(now, s.opts.LossTimeout))
	q, why, ok := a.requestOf(&reply)
	if !ok {
		a.refuse(why, now)
		return
	}
	s.peerError = nil
	s.estimator.remote.heard(reply.packet.Error)
	present := true
	switch {
	case q.forgotten(): // only a 32-bit value identifies the session
		present = reply.receipt.Epoch == a.remote.epoch
	case reply.filled():
		present = a.learn(&reply, now, a.fresh(&reply, q))
	}
	switch {
	case !q.statsQuery:
		s.reply(in, &reply, q, now, present)
	case reply.filled():
		a.statsQuery.answered(reply.receipt.Finish)
	default:
		a.foreignStatsQuery(&reply, now)
	}
}

// reply processes the reply to a test packet; present: it is of the remote end's current session.
func (s *session) reply(in *tstamp.In, r *reply, q request, now time.Duration, present bool) {
	e := s.estimator
	var one pendingReply
	if q.outstanding != nil {
		one = e.replyOf(in, r, q, now)
	}
	s.account.countHops(in, r)
	s.account.countTrafficClass(in)
	n, verdict, first := s.account.take(&r.packet, q, now, one.lost, present)
	if r.hasFollow && r.followUp.Mode != 0 && !r.filled() {
		e.replies.settle(seqwin.Extend(n, r.followUp.Seq), s.opts.decode(r, r.followUp.T3, in.At), e.conclude)
	}
	one.packet.ReverseSeq = n
	switch {
	case q.outstanding == nil && verdict != seqwin.Duplicate:
		// Our reflector counted it as received, and reports when; of several copies the first counts.
		if a := s.account; r.filled() && q.seq >= a.fwd.lastOverdue && !a.remoteLost(q.seq) && e.forgotten(r, in) {
			a.fwd.tooLate(q.seq)
		}
	case !first:
	case verdict == seqwin.Late:
		// It is lost in reverse; its forward delay is valid.
		one.lost[sample.Reverse], one.undecided = true, false
		e.conclude(&one)
	default:
		s.account.lastSuccess = in.At.Time()
		e.replies.put(&one, e.conclude)
	}
}

// reply is one parsed reply.
type reply struct {
	packet     stampfmt.ReflectorPacket
	followUp   stampfmt.FollowUp
	receipt    stampfmt.Receipt
	hasFollow  bool
	hasReceipt bool
}

// filled reports whether our reflector wrote its counts.
func (r *reply) filled() bool { return r.hasReceipt && r.receipt.Filled }

// open parses and checks a datagram. why is discardReasons for a damaged one that is still of this session.
func (s *session) open(in *tstamp.In) (r reply, why discardReason, ok bool) {
	if in.Truncated {
		return r, discardTruncated, false
	}
	b := in.Payload
	if len(b) < s.layout.base {
		return r, discardShort, false
	}
	if p, ok := stampfmt.ParseRejection(b); ok {
		if _, _, ours := s.account.requestOf(&reply{packet: p}); ours {
			return r, discardKeyRejected, false
		}
	}
	authentic, err := s.parse(b, &r.packet)
	if err != nil {
		return r, discardShort, false
	}
	switch {
	case authentic:
	case stampfmt.RepliesWithoutKey(b):
		if p, err := stampfmt.ParseReflector(b); err != nil || !s.account.recentRequest(p.SenderSeq) {
			return r, discardBadHMAC, false
		}
		return r, discardNoKey, false
	default:
		return r, discardBadHMAC, false
	}
	intact := s.readTLVs(b, &r)
	switch {
	case !intact, r.filled() && !stampfmt.CheckCRC(b, s.layout.authenticated),
		// Our reflector puts a Receipt into every reply to such a request.
		s.account.kind == remoteOurs && s.layout.receipt && !r.filled():
		return r, s.damaged(&r), false
	case r.filled() && r.receipt.Run != s.run:
		return r, discardBadReceipt, false
	}
	return r, 0, true
}

// damaged returns why the damaged reply r is refused; discardReasons if its echo or its Receipt still identifies
// this session.
func (s *session) damaged(r *reply) discardReason {
	q, why, ok := s.account.requestOf(r)
	if ok && !q.forgotten() || r.hasReceipt && r.receipt.Run == s.run {
		return discardReasons
	}
	return why
}

// parse reads the base packet, trying each key in authenticated mode.
func (s *session) parse(b []byte, p *stampfmt.ReflectorPacket) (authentic bool, err error) {
	if !s.layout.authenticated {
		*p, err = stampfmt.ParseReflector(b)
		return true, err
	}
	for _, k := range s.keys {
		if *p, err = stampfmt.ParseReflectorAuthenticated(b, k); err == nil {
			return s.verifyTLVs(b, k), nil
		}
	}
	return false, nil
}

// verifyTLVs checks the HMAC TLV, the last one of ours.
func (s *session) verifyTLVs(b []byte, k *stampfmt.Key) bool {
	return len(b) == s.layout.base || k.VerifyTLVs(b, s.layout.base, len(b)-hmacTLVBytes)
}

// readTLVs reads the TLVs in use; false: the padding, whose pattern the sender chose, is damaged.
func (s *session) readTLVs(b []byte, r *reply) (intact bool) {
	rest := b[s.layout.base:]
	for len(rest) > 0 {
		var t stampfmt.TLV
		var err error
		if t, rest, err = stampfmt.NextTLV(rest); err != nil {
			return false
		}
		if t.Flags&stampfmt.FlagMalformed != 0 {
			return true // the remote end did not process what follows
		}
		// Unrecognized, or with a wrong HMAC (RFC 8972 section 4.8).
		unknown := t.Flags&(stampfmt.FlagUnrecognized|stampfmt.FlagIntegrity) != 0
		switch t.Type {
		case stampfmt.TypeFollowUp:
			if f, err := stampfmt.ParseFollowUp(t.Value); err == nil && !unknown {
				r.followUp, r.hasFollow = f, true
			}
		case stampfmt.TypeReceipt:
			rc, err := stampfmt.ParseReceipt(t.Value)
			if err != nil {
				return false
			}
			rc.Filled = rc.Filled && !unknown
			r.receipt, r.hasReceipt = rc, true
		case stampfmt.TypeExtraPadding:
			if !stampfmt.CheckPadding(t.Value, r.packet.SenderSeq) {
				return false
			}
		default: // not requested
		}
	}
	return true
}

// remoteBound returns the remote end's clock error bound: the Error Estimate of the reply (RFC 8762 section 4.2.1),
// refined by our reflector's Receipt. An estimate above bound.Limit is ignored, whatever the S bit.
func remoteBound(r *reply) sample.Bound {
	e := r.packet.Error
	switch {
	case r.filled() && r.receipt.Clock == stampfmt.ClockStepped:
		return sample.Bound{Reason: sample.RemoteStepped}
	case !e.Synchronized() || !e.Valid():
		return sample.Bound{Reason: sample.RemoteUnsynchronized}
	}
	return bound.ClockBound(e.Bound())
}

// remoteClock is the last Error Estimate of the remote end (RFC 8762 section 4.2.1). The zero value: none.
type remoteClock struct {
	known, synchronized bool
	bound               time.Duration
}

// heard takes the Error Estimate of a reply. A multiplier of zero means that the field is not to be used (RFC 4656
// section 4.1.2); an error above bound.Limit (up to 17,000 years) means that the writer's error is unknown.
func (c *remoteClock) heard(e timefmt.ErrorEstimate) {
	usable := e.Valid() && e.Bound() <= bound.Limit
	*c = remoteClock{known: true, synchronized: e.Synchronized() && usable, bound: e.Bound()}
}
