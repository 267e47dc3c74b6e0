package stream

import (
	"net/netip"
	"sync"
	"time"

	"oneway.example/exporter/sched"
)

// Session is one run's share of an Endpoint.
type Session struct {
	endpoint *Endpoint
	id       uint64
	// challenges holds the cookie that came last.
	challenges chan []byte

	mu         sync.Mutex
	left       bool
	receptions []*Reception
	// peer is the address that hellos came from last, local where they came to.
	peer  netip.AddrPort
	local netip.Addr
	// source is where the last packet of a stream came from, at sourceAt; zero: none came.
	source   netip.AddrPort
	sourceAt time.Duration
	// tokens are the challenges that may be sent now, as of refilled.
	tokens   float64
	refilled time.Duration
	greeted  bool
}

// ID is the number of the session.
func (s *Session) ID() uint64 { return s.id }

// Leave makes the session unknown: its packets are ignored from now on, what is being
// received ends, and what is being sent ends at the next packet.
func (s *Session) Leave() {
	e := s.endpoint
	e.mu.Lock()
	if e.sessions[s.id] == s {
		delete(e.sessions, s.id)
	}
	var mine []*sending
	for _, x := range e.sending {
		if x.session == s {
			mine = append(mine, x)
		}
	}
	s.mu.Lock()
	s.left = true
	receptions := s.receptions
	s.receptions = nil
	if e.byPeer[s.peer] == s {
		delete(e.byPeer, s.peer)
	}
	s.mu.Unlock()
	e.mu.Unlock()
	for _, x := range mine {
		x.cancel()
	}
	for _, r := range receptions {
		r.abandon()
	}
}

// isPeer notes where the session's other end is.
func (s *Session) isPeer(peer netip.AddrPort, local netip.Addr) {
	s.mu.Lock()
	before, left := s.peer, s.left
	s.peer, s.local = peer, local
	s.mu.Unlock()
	if before == peer || left {
		return
	}
	e := s.endpoint
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.byPeer[before] == s {
		delete(e.byPeer, before)
	}
	if e.sessions[s.id] == s {
		e.byPeer[peer] = s
	}
}

// Streamed tells where the last packet of a stream came from, and how long ago; false: none came.
func (s *Session) Streamed() (from netip.AddrPort, ago time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.source, sched.Now() - s.sourceAt, s.source.IsValid()
}

// sourceFor is the local address that the peer knows, to send from.
func (s *Session) sourceFor(peer netip.AddrPort) netip.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.peer == peer {
		return s.local
	}
	return netip.Addr{}
}

// Challenges of one session: as many a second, and at once.
const (
	challengesPerSecond = 20
	challengesAtOnce    = 5
)

// mayChallenge takes one of the session's challenges.
func (s *Session) mayChallenge(now monotonic) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.greeted {
		s.greeted, s.tokens = true, challengesAtOnce
	} else {
		s.tokens = min(challengesAtOnce, s.tokens+(now-s.refilled).Seconds()*challengesPerSecond)
	}
	s.refilled = now
	if s.tokens < 1 {
		return false
	}
	s.tokens--
	return true
}
