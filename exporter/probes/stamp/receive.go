package stamp

import (
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/core/bound"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/net/sched"
	"oneway.example/exporter/net/tstamp"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/exporter/net/wire/timefmt"
	"oneway.example/exporter/probes/stamp/ledger"
)

// received processes one datagram of this session, which arrived at now at a source port: the account finds the request of the
// reply, takes the remote end's counts, and decides about the packet; the estimator takes its verdicts.
func (s *session) received(port ledger.Port, in *tstamp.In, now time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	a := s.account
	a.SetLate(sched.Now() - now)
	s.peerError = lastError{} // something replies
	reply, why, ok := s.open(in)
	if !ok {
		s.refusedBytes = len(in.Payload)
		a.Refuse(why, now)
		return
	}
	reply.Port = port
	q, ok := a.Accept(&reply, now)
	if !ok {
		return
	}
	s.returnsTLVs = s.returnsTLVs || reply.Returned
	s.estimator.remote.heard(reply.Packet.Error)
	if !s.inNoFormat && reply.InNoFormat(s.opts.TAIOffset, in.At) {
		s.inNoFormat = true
		s.estimator.stepped() // earlier ones may have been read in another format
	}
	reply.AsStated = s.inNoFormat
	present := a.Report(&reply, q, now)
	if a.Returned() && now-s.portSince > portAge { // not with each packet: two reflectors may reply in turn
		s.begin(now) // the session there has not counted what the other reflector received
	}
	if !q.StatsQuery {
		one := s.pendingOf(in, &reply, q)
		a.Judge(in, &reply, q, &one, now, present)
	}
}

// pendingOf joins the timestamps of a reply to test packet q, and the states of the clocks. Of a packet that is not remembered,
// T1 is the copy in the reply; the clock is taken since its last step.
func (s *session) pendingOf(in *tstamp.In, r *ledger.Reply, q ledger.Request) (a ledger.PendingReply) {
	e := s.estimator
	a.Packet = s.sampleOf(in, r, q)
	a.Shared = r.Filled() && r.Receipt.Clock == stampfmt.ClockShared
	if f := q.Outstanding; f != nil {
		a.Clock = f.Clock()
		a.Era = e.arrived(a.Packet.Remote)
	} else {
		a.Clock = ledger.ThenOf(clock.Quality{Steps: e.steps, Bound: sample.Bound{Reason: sample.OK}})
	}
	a.Clock = a.Clock.And(e.clock.Quality(instant.Now()))
	switch f, stated := r.Format(s.opts.TAIOffset, in.At); {
	case !stated:
		a.Packet.Remote = sample.Bound{Reason: sample.WrongFormat}
	case f == timefmt.PTP && inUTC(&a.Packet, a.Clock.Bound, s.opts.TAIOffset):
		a.Packet.Remote = sample.Bound{Reason: sample.PTPInUTC}
	}
	return a
}

// inUTC reports whether the remote end's timestamps in PTP format are in UTC instead of TAI: its clock is behind by tai, to a second, which
// the bounds of both clocks exclude.
func inUTC(p *sample.Packet, local sample.Bound, tai time.Duration) bool {
	clocks := bound.Clocks(local, p.Remote)
	tolerance := min(time.Second, tai/4)
	if clocks.Reason != sample.OK || clocks.Error > tolerance || !p.T1.Present() || !p.T2.Present() || !p.T3.Present() || !p.T4.Present() {
		return false
	}
	offset := (p.T2.At.Sub(p.T1.At) - p.T4.At.Sub(p.T3.At)) / 2
	return (offset + tai).Abs() < tolerance
}

// sampleOf joins the four timestamps of one packet.
func (s *session) sampleOf(in *tstamp.In, r *ledger.Reply, q ledger.Request) sample.Packet {
	p := sample.Packet{
		Seq: q.Seq, T4: in.Stamp,
		T2:     sample.Stamp{At: r.Decode(r.Packet.T2, s.opts.TAIOffset, in.At), Origin: sample.InPacket},
		T3:     sample.Stamp{At: r.Decode(r.Packet.T3, s.opts.TAIOffset, in.At), Origin: sample.InPacket},
		Remote: remoteBound(r),
	}
	if q.Outstanding != nil {
		p.T1 = q.Outstanding.SentAt()
	} else {
		p.T1 = sample.Stamp{At: s.opts.format.Decode(r.Packet.SenderT1, s.opts.TAIOffset, in.At), Origin: sample.User}
	}
	if r.Filled() && r.Receipt.T2Origin != sample.Absent {
		p.T2.Origin = r.Receipt.T2Origin
	}
	for _, t := range []*sample.Stamp{&p.T2, &p.T3} {
		if t.At.IsZero() {
			t.Origin = sample.Absent
		}
	}
	return p
}

// open parses and checks a datagram.
func (s *session) open(in *tstamp.In) (r ledger.Reply, why ledger.DiscardReason, ok bool) {
	b := in.Payload
	if p, ok := stampfmt.ParseRejection(b); ok {
		if _, _, ours := s.account.RequestOf(&ledger.Reply{Packet: p}); ours {
			return r, ledger.DiscardKeyRejected, false
		}
	}
	key, why, ok := s.parse(b, &r.Packet)
	if !ok {
		return r, why, false
	}
	if why, ok = s.readTail(in, key, &r); !ok {
		return r, why, false
	}
	if s.account.Kind == ledger.RemoteOurs && s.layout.receipt && !r.Filled() {
		return r, s.damaged(&r), false // our reflector puts a Receipt into every reply to such a request
	}
	return r, 0, true
}

// damaged returns why the damaged reply r is refused: as corrupted if its echo or its Receipt still identifies this session.
func (s *session) damaged(r *ledger.Reply) ledger.DiscardReason {
	q, why, ok := s.account.RequestOf(r)
	if ok && !q.Forgotten() || r.HasReceipt && s.began(r.Receipt.Run) {
		return ledger.DiscardCorrupted
	}
	return why
}

// parse reads the base packet. In authenticated mode it returns the key that verifies it.
func (s *session) parse(b []byte, p *stampfmt.ReflectorPacket) (key *stampfmt.Key, why ledger.DiscardReason, ok bool) {
	why = ledger.DiscardShort
	if len(b) >= s.layout.leastReply() {
		if !s.layout.authenticated {
			*p, _ = stampfmt.ParseReflector(b) // it is long enough
			return nil, 0, true
		}
		for _, k := range s.keys {
			if read, err := stampfmt.ParseReflectorAuthenticated(b, k); err == nil {
				*p = read
				return k, 0, true
			}
		}
		why = ledger.DiscardBadHMAC
	}
	if s.layout.authenticated && stampfmt.RepliesWithoutKey(b) {
		if p, err := stampfmt.ParseReflector(b); err == nil && s.account.RecentRequest(p.SenderSeq) {
			return nil, ledger.DiscardNoKey, false
		}
	}
	return nil, why, false
}

// readTLVs reads the TLVs in use; false: the padding, whose pattern the sender chose, is damaged.
func (s *session) readTLVs(b []byte, r *ledger.Reply) (intact bool) {
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
				r.FollowUp, r.HasFollow = f, true
			}
		case stampfmt.TypeReceipt:
			rc, err := stampfmt.ParseReceipt(t.Value)
			if err != nil {
				return false
			}
			rc.Filled = rc.Filled && !unknown
			r.Receipt, r.HasReceipt = rc, true
		case stampfmt.TypeExtraPadding:
			if !stampfmt.CheckPadding(t.Value, r.Packet.SenderSeq) {
				return false
			}
		default: // not requested
		}
	}
	return true
}

// remoteBound returns the remote end's clock error bound: the Error Estimate of the reply (RFC 8762 section 4.2.1),
// refined by our reflector's Receipt. An estimate above bound.Limit is ignored, whatever the S bit.
func remoteBound(r *ledger.Reply) sample.Bound {
	e := r.Packet.Error
	switch {
	case r.Filled() && r.Receipt.Clock == stampfmt.ClockStepped:
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
