package stream

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/net/kernelcounts"
	"oneway.example/exporter/net/sched"
	"oneway.example/exporter/net/tstamp"
)

// Options of an Endpoint.
type Options struct {
	// Local is the address and UDP port to bind; port 0: the kernel chooses.
	Local netip.AddrPort
	// ReceiveBufferBytes is the value of SO_RCVBUF; zero: 8 MiB, enough for 50 ms of small packets
	// at 180,000/s, or of 1,500 bytes at 1 Gb/s. Packets above it are counted in
	// Received.Dropped.
	ReceiveBufferBytes int
	// Log; nil: discarded.
	Log *slog.Logger
	// OnHello, if set, is called for each hello of a joined session and each reply to one, on the receiving goroutine:
	// it must neither block nor call the Endpoint.
	OnHello func(session uint64, from netip.AddrPort)
}

// Endpoint is a UDP socket shared by the streams of many sessions: of a load server, or of a run of a
// client. The goroutine of Run reads it. Its methods are safe for concurrent
// use.
type Endpoint struct {
	conn *tstamp.Conn
	// counters of the kernel.
	counters kernelcounts.Files
	log      *slog.Logger
	onHello  func(uint64, netip.AddrPort)
	wall     func() instant.Time // the system clock
	secret   [32]byte            // key of the cookies

	mu       sync.RWMutex
	sessions map[uint64]*Session
	// byPeer is the session by source address, for packets with a damaged header.
	byPeer map[netip.AddrPort]*Session
	// sending is the stream of a transmit timestamp, by the upper half of its cookie.
	sending map[uint32]*sending
	token   uint32

	coalesceMu sync.Mutex
	coalescing int // number of Unstamped streams being received

	counts  [Reasons + 1]atomic.Uint64 // packets by the reason why they were ignored, or taken
	hellos  atomic.Uint64
	replies atomic.Uint64
}

// Open opens the socket. Run receives; an Endpoint without Run must be
// closed.
func Open(o Options) (*Endpoint, error) {
	c, err := tstamp.Open(o.Local, tstamp.Options{ReceiveBufferBytes: o.ReceiveBufferBytes})
	if err != nil {
		return nil, fmt.Errorf("stream: %w", err)
	}
	e := &Endpoint{
		conn: c, counters: kernelcounts.Open(), log: o.Log, onHello: o.OnHello, wall: instant.Now,
		sessions: make(map[uint64]*Session), byPeer: make(map[netip.AddrPort]*Session), sending: make(map[uint32]*sending),
	}
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	_, _ = rand.Read(e.secret[:]) // never fails
	return e, nil
}

// LocalAddr is the bound address, with the port that the kernel chose.
func (e *Endpoint) LocalAddr() netip.AddrPort { return e.conn.LocalAddr() }

// Run receives until ctx ends or the Endpoint is closed; both are no error. It closes the
// socket.
func (e *Endpoint) Run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, e.Close)
	defer stop()
	defer e.Close()
	ended := make(chan struct{})
	defer close(ended)
	go e.keep(ended)
	r := newReceiver(e)
	for {
		if err := e.conn.Receive(r.batch); err != nil {
			if errors.Is(err, net.ErrClosed) {
				return nil
			}
			return fmt.Errorf("stream: %w", err)
		}
		r.take()
	}
}

// renewEvery is how often a socket is checked whose interface may have been made again.
const renewEvery = time.Second

// keep renews the socket until Run has ended: the load server's may be bound to a link-local address.
func (e *Endpoint) keep(ended <-chan struct{}) {
	ticker := time.NewTicker(renewEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ended:
			return
		case <-ticker.C:
		}
		switch renewed, err := e.conn.Renew(); {
		case err != nil:
			e.log.Debug("A socket cannot be opened again", "address", e.conn.LocalAddr().String(), "err", err)
		case renewed:
			e.log.Info("Test traffic is received again, since the interface was made again", "address", e.conn.LocalAddr().String())
		}
	}
}

// Close closes the socket: Run and every Send return.
func (e *Endpoint) Close() {
	if e.conn.Close() == nil { // nil only the first time
		e.counters.Close()
	}
}

// Join adds a session, so that its packets are accepted. A second call returns the same
// Session.
func (e *Endpoint) Join(session uint64) *Session {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.sessions[session]
	if s == nil {
		s = &Session{endpoint: e, id: session, challenges: make(chan challenge, 1), limit: rate.NewLimiter(challengesPerSecond, challengesAtOnce)}
		e.sessions[session] = s
	}
	return s
}

// coalesce enables receive coalescing (UDP_GRO) while an Unstamped stream is received. Concurrent
// streams of other sessions lose the precision of their timestamps; they share the link
// anyway.
func (e *Endpoint) coalesce(change int) {
	e.coalesceMu.Lock()
	defer e.coalesceMu.Unlock()
	before := e.coalescing > 0
	e.coalescing += change
	if now := e.coalescing > 0; now != before {
		if err := e.conn.Coalesce(now); err != nil {
			e.log.Debug("Receive coalescing not available", "error", err)
		}
	}
}

// Ignored is the reason why a received packet was ignored.
type Ignored uint8

// The reasons.
const (
	// TooShort: shorter than a header.
	TooShort Ignored = iota
	// Foreign: another format or version.
	Foreign
	// DamagedHeader: its session is unknown.
	DamagedHeader
	// UnknownSession: not joined, or left.
	UnknownSession
	// UnknownTransfer: not expected, or finished.
	UnknownTransfer
	// BeyondPlan: the plan has no such number.
	BeyondPlan
	// HelloTooOften: above the rate of challenges of one session.
	HelloTooOften
	// BadHello: too short for a reply, from an invalid source, or an echo of an offered cookie.
	BadHello
	// UnknownType of packet.
	UnknownType
	// BadFeedback: a report or an order that is old, malformed, or for the other end.
	BadFeedback

	// taken: the packet was accepted.
	taken

	// Reasons is the number of reasons.
	Reasons = int(taken)
)

// String returns the label of the reason.
func (i Ignored) String() string {
	words := [...]string{
		TooShort: "too_short", Foreign: "foreign", DamagedHeader: "corrupted_header",
		UnknownSession: "unknown_session", UnknownTransfer: "unknown_transfer", BeyondPlan: "beyond_plan",
		HelloTooOften: "hello_too_often", BadHello: "bad_hello", UnknownType: "unknown_type",
		BadFeedback: "bad_feedback",
	}
	if int(i) >= len(words) || words[i] == "" {
		return "invalid"
	}
	return words[i]
}

// Stats are counters since Open.
type Stats struct {
	// Socket has those of the socket.
	Socket tstamp.Stats
	// Accepted counts data packets of streams, Hellos those of joined sessions, and Challenges the
	// replies to them.
	Accepted, Hellos, Challenges uint64
	// Ignored counts ignored packets, indexed by the reason.
	Ignored [Reasons]uint64
}

// Stats returns the counters; also after Close.
func (e *Endpoint) Stats() Stats {
	s := Stats{
		Socket: e.conn.Stats(), Accepted: e.counts[taken].Load(),
		Hellos: e.hellos.Load(), Challenges: e.replies.Load(),
	}
	for i := range s.Ignored {
		s.Ignored[i] = e.counts[i].Load()
	}
	return s
}

// challenge is a received cookie and its source.
type challenge struct {
	from   netip.AddrPort
	cookie []byte
}

// offer is a received cookie that was not requested.
type offer struct {
	cookie []byte
	at     monotonic
}

// rejection is a received ICMP error.
type rejection struct {
	err tstamp.ICMPError
	at  time.Duration // monotonic
}

// rejectionAge is the age up to which an ICMP error is the reason of a silent path: several times the second between the messages that
// a Linux host sends to one address (icmp_ratelimit), and less than the silence that ends a session.
const rejectionAge = 5 * time.Second

// Rejected returns the last ICMP error of a packet to the addresses of HelloAny, a tstamp.ICMPError. Without one of late it is nil.
func (s *Session) Rejected() error {
	if r := s.rejected.Load(); r != nil && sched.Now()-r.at <= rejectionAge {
		return r.err
	}
	return nil
}

// Session is the part of an Endpoint for one run.
type Session struct {
	endpoint *Endpoint
	id       uint64
	// challenges holds the last received cookie; limit limits the challenges that this end sends.
	challenges chan challenge
	limit      *rate.Limiter
	// asking are the addresses of the last HelloAny; rejected is the last ICMP error of a packet to one of them.
	asking   atomic.Pointer[[]netip.AddrPort]
	rejected atomic.Pointer[rejection]
	// received is when the last packet of any type arrived, greeted whether the other end has sent a hello without a
	// reply: see LastReceived. asked is when one with a reply came after that, answered when the last reply came.
	received, asked, answered atomic.Int64
	greeted                   atomic.Bool
	// offered is the last cookie of an Offer of the other end; proof is when the last cookie was sent that the address proved has returned.
	offered atomic.Pointer[offer]
	proof   atomic.Int64

	mu         sync.Mutex
	left       bool
	receptions []*Reception
	// peer is the source of the last hello, local its destination.
	peer  netip.AddrPort
	local netip.Addr
	// proved is the address of Prove.
	proved netip.AddrPort
	// source is the source of the last packet of a stream, at sourceAt; zero: none.
	source   netip.AddrPort
	sourceAt time.Duration
}

// ID returns the number of the session.
func (s *Session) ID() uint64 { return s.id }

// Leave removes the session: its packets are ignored from now on, its receptions end, and its
// sending ends at the next packet.
func (s *Session) Leave() {
	e := s.endpoint
	e.mu.Lock()
	if e.sessions[s.id] == s {
		delete(e.sessions, s.id)
	}
	var proves []*sending
	for _, x := range e.sending {
		if x.session == s {
			proves = append(proves, x)
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
	for _, x := range proves {
		x.cancel()
	}
	for _, r := range receptions {
		r.abandon()
	}
}

// isPeer sets the address of the session's other end.
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

// LastReceived returns the age of the last packet from the other end; greeted: it sends hello packets (KeepAlive), so that
// silence means that it or the path is gone. Without a packet so far the age is 0.
func (s *Session) LastReceived() (ago time.Duration, greeted bool) {
	at := s.received.Load()
	if at == 0 {
		return 0, false
	}
	return sched.Now() - time.Duration(at), s.greeted.Load()
}

// LastAsked returns the age of the last packet of Ask from the other end; false: none was received.
func (s *Session) LastAsked() (ago time.Duration, ok bool) {
	at := s.asked.Load()
	return sched.Now() - time.Duration(at), at != 0
}

// LastAnswered returns the age of the last reply to a hello; false: none was received.
func (s *Session) LastAnswered() (ago time.Duration, ok bool) {
	at := s.answered.Load()
	return sched.Now() - time.Duration(at), at != 0
}

// LastOffered returns the age of the last cookie of an Offer; false: none was received.
func (s *Session) LastOffered() (ago time.Duration, ok bool) {
	o := s.offered.Load()
	if o == nil {
		return 0, false
	}
	return sched.Now() - o.at, true
}

// LastStreamPacket returns the source of the last packet of a stream, and its age; false: none was received.
func (s *Session) LastStreamPacket() (from netip.AddrPort, ago time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.source, sched.Now() - s.sourceAt, s.source.IsValid()
}

// sourceFor returns the local address for packets to the peer; zero: the kernel chooses.
func (s *Session) sourceFor(peer netip.AddrPort) netip.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.peer == peer {
		return s.local
	}
	return netip.Addr{}
}

// Limits of the challenges of one session.
const (
	challengesPerSecond = 20
	challengesAtOnce    = 5
)
