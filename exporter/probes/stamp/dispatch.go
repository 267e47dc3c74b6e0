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
	s, why := h.find(in)
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
	s.received(in, now)
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
			s.received(in, now)
		}
	}
}

// find returns the session of a reply: by its SSID (RFC 8972 section 3), which an RFC 8762 reflector leaves zero,
// else by the peer if it has one session.
func (h *hub) find(in *tstamp.In) (*session, ledger.DiscardReason) {
	b := in.Payload
	if len(b) < stampfmt.UnauthenticatedBytes-3 {
		return nil, ledger.DiscardShort
	}
	h.mu.RLock()
	defer h.mu.RUnlock()
	s := h.sessions[ssidOf(b, false)]
	if (s == nil || s.layout.authenticated) && len(b) >= stampfmt.AuthenticatedBytes {
		if a := h.sessions[ssidOf(b, true)]; a != nil && (a.layout.authenticated || s == nil && stampfmt.InAuthenticatedFormat(b)) {
			s = a // also a rejection
		}
	}
	if s != nil && s.peer == in.Peer {
		return s, 0
	}
	if same := h.byPeer[in.Peer]; len(same) == 1 {
		return same[0], 0
	} else if len(same) > 1 {
		return nil, ledger.DiscardUnknownSession
	}
	if s != nil {
		return nil, ledger.DiscardWrongPeer
	}
	return nil, ledger.DiscardUnknownSession
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
