package stamp

import (
	"slices"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/net/tstamp"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/exporter/probes/stamp/ledger"
)

// arrived passes a packet to the session that it is for.
func (h *hub) arrived(in *tstamp.In, now time.Duration) {
	s, other, why := h.find(in)
	if other != nil && other.misaddressed(in, now) {
		return
	}
	if s == nil {
		s = h.findByEcho(in, why, now)
	}
	if s == nil && h.fromElsewhere(in, now) {
		return
	}
	if s == nil {
		h.mu.Lock()
		h.stray[why]++
		h.mu.Unlock()
		h.arrivedWithoutKey(in, now)
		return
	}
	if in.Stamp.Origin == sample.Kernel {
		h.series.hostRx.Observe(in.At.Sub(in.Stamp.At).Seconds())
	}
	s.received(h.port(), in, now)
}

// arrivedWithoutKey passes the reply of a reflector without a key to the authenticated sessions of its address: it has the
// SSID of none.
func (h *hub) arrivedWithoutKey(in *tstamp.In, now time.Duration) {
	if !stampfmt.RepliesWithoutKey(in.Payload) {
		return
	}
	h.mu.RLock()
	same := slices.Clone(h.byPeer[in.Peer]) // remove modifies the slice
	h.mu.RUnlock()
	for _, s := range same {
		if s.layout.authenticated {
			s.received(h.port(), in, now)
		}
	}
}

// findByEcho returns the session of a reply without an SSID, from a peer with several sessions: the one whose request it
// repeats. A reply to none was refused for a reason of the peer, which all of them tell.
func (h *hub) findByEcho(in *tstamp.In, why ledger.DiscardReason, now time.Duration) *session {
	h.mu.RLock()
	h.same = append(h.same[:0], h.byPeer[in.Peer]...) // remove modifies the slice
	h.mu.RUnlock()
	defer clear(h.same)
	for _, s := range h.same {
		if s.repeated(in.Payload) {
			return s
		}
	}
	for _, s := range h.same {
		s.hint(why, len(in.Payload), now)
	}
	return nil
}

// searchInterval is the least time between two searches of all sessions for a packet from an address of no peer.
const searchInterval = 100 * time.Millisecond

// fromElsewhere refuses a reply without an SSID from another address or port than the one that its request was sent to, and
// reports whether it is one.
func (h *hub) fromElsewhere(in *tstamp.In, now time.Duration) bool {
	if now-h.searched < searchInterval {
		return false
	}
	h.searched = now
	h.same = h.all(h.same[:0])
	defer func() { clear(h.same) }()
	return slices.ContainsFunc(h.same, func(s *session) bool { return s.peer != in.Peer && s.misaddressed(in, now) })
}

// misaddressed refuses a packet from another address or port than the peer's, if it repeats a request of s. The path tells the
// address.
func (s *session) misaddressed(in *tstamp.In, now time.Duration) bool {
	r, ok := s.echo(in.Payload)
	if !ok {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if q, _, ok := s.account.RequestOf(&r); !ok || q.Forgotten() || s.ended {
		return false
	}
	s.peerError = lastError{}
	if s.repliesFrom == nil || *s.repliesFrom != in.Peer {
		from := in.Peer // in is used again
		s.repliesFrom = &from
	}
	s.account.Refuse(ledger.DiscardWrongPeer, now)
	return true
}

// echo reads the copy of a request in b.
func (s *session) echo(b []byte) (r ledger.Reply, ok bool) {
	r.Packet.SenderSeq, r.Packet.SenderT1, ok = stampfmt.ParseEcho(b, s.layout.authenticated)
	return r, ok
}

// repeated reports whether b repeats the number and time of a request of s: then the remote end replies without SSID.
func (s *session) repeated(b []byte) bool {
	r, ok := s.echo(b)
	if !ok {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	q, _, ok := s.account.RequestOf(&r)
	if ok = ok && !q.Forgotten(); ok {
		s.account.ShareNumbers()
	}
	return ok
}

// hint takes why a packet of n bytes from the peer, which may be of another session, was refused.
func (s *session) hint(why ledger.DiscardReason, n int, now time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.peerError, s.refusedBytes = lastError{}, n
	s.account.Hint(why, now)
}

// find returns the session of a reply: by its SSID (RFC 8972 section 3), which an RFC 8762 reflector leaves zero,
// else by the peer if it has one session. other is the session of its SSID if that has another peer.
func (h *hub) find(in *tstamp.In) (found, other *session, why ledger.DiscardReason) {
	b := in.Payload
	h.mu.RLock()
	defer h.mu.RUnlock()
	var s *session
	if len(b) >= stampfmt.MinReplyBytes {
		s = h.sessions[ssidOf(b, false)]
	}
	if (s == nil || s.layout.authenticated) && len(b) >= stampfmt.AuthenticatedBytes {
		if a := h.sessions[ssidOf(b, true)]; a != nil && (a.layout.authenticated || s == nil && stampfmt.InAuthenticatedFormat(b)) {
			s = a // also a rejection
		}
	}
	if s != nil && s.peer == in.Peer {
		return s, nil, 0
	}
	same := h.byPeer[in.Peer]
	switch {
	case len(same) == 1:
		return same[0], s, 0
	case len(b) < stampfmt.MinReplyBytes:
		return nil, s, ledger.DiscardShort
	case len(same) == 0 && s != nil:
		return nil, s, ledger.DiscardWrongPeer
	}
	return nil, s, ledger.DiscardUnknownSession
}

// failed passes an ICMP error to all sessions of its address.
func (h *hub) failed(e tstamp.ICMPError) {
	h.mu.RLock()
	same := slices.Clone(h.byPeer[e.Peer]) // remove modifies the slice
	h.mu.RUnlock()
	for _, s := range same {
		s.failed(e)
	}
}
