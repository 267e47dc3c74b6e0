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
	"oneway.example/exporter/instant"
	"oneway.example/exporter/kernelcounts"
	"oneway.example/exporter/sched"
	"oneway.example/exporter/tstamp"
)

// Options of an Endpoint.
type Options struct {
	// Local is the address and UDP port to be bound to; port 0: the kernel chooses.
	Local netip.AddrPort
	// ReceiveBufferBytes is what to ask of SO_RCVBUF; zero: 8 MiB, which is 50 ms of
	// small packets at 180,000/s, or of 1,500 bytes at 1 Gb/s. What does not fit is
	// counted in Received.Dropped.
	ReceiveBufferBytes int
	// Log may be nil.
	Log *slog.Logger
	// OnHello, if set, is called for each hello of a session that has joined. It runs on
	// the receiving goroutine: it must not block, nor call the Endpoint.
	OnHello func(session uint64, from netip.AddrPort)
}

// Endpoint is a UDP socket that streams of many sessions share: one for all of a
// load server's, or one for a run of a client. One goroutine, that of Run, reads it.
// Its methods are safe for concurrent use.
type Endpoint struct {
	conn *tstamp.Conn
	// counters are the kernel's.
	counters kernelcounts.Files
	log      *slog.Logger
	onHello  func(uint64, netip.AddrPort)
	wall     func() instant.Time // the system clock
	secret   [32]byte            // of the cookies

	mu       sync.RWMutex
	sessions map[uint64]*Session
	// byPeer finds the session of a packet whose header is damaged.
	byPeer map[netip.AddrPort]*Session
	// sending finds the stream of a transmit stamp, by the upper half of its cookie.
	sending map[uint32]*sending
	token   uint32

	coalesceMu sync.Mutex
	coalescing int // streams being received whose stamps do not matter

	counts  [Reasons + 1]atomic.Uint64 // of packets, by why they were ignored, or taken
	hellos  atomic.Uint64
	replies atomic.Uint64
}

// Open makes the socket. Nothing is received until Run; an Endpoint that is not Run
// must be Closed.
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

// LocalAddr is the address bound to, with the port that the kernel chose.
func (e *Endpoint) LocalAddr() netip.AddrPort { return e.conn.LocalAddr() }

// Run receives until ctx ends, which is no error, or the Endpoint is closed, which is
// none either. The socket is closed when it returns.
func (e *Endpoint) Run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, e.Close)
	defer stop()
	defer e.Close()
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

// Close frees the socket: Run and every Send return.
func (e *Endpoint) Close() {
	if e.conn.Close() == nil { // a second Close is none
		e.counters.Close()
	}
}

// Join makes a session known, so that its packets are taken. Joined twice, it is the
// same one.
func (e *Endpoint) Join(session uint64) *Session {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.sessions[session]
	if s == nil {
		s = &Session{endpoint: e, id: session, challenges: make(chan []byte, 1), limit: rate.NewLimiter(challengesPerSecond, challengesAtOnce)}
		e.sessions[session] = s
	}
	return s
}

// coalesce has the kernel take packets together as long as a stream that is Unstamped is
// being received. Streams of other sessions lose the precision of their stamps by it: who
// runs both at once has them share a link anyway.
func (e *Endpoint) coalesce(change int) {
	e.coalesceMu.Lock()
	defer e.coalesceMu.Unlock()
	before := e.coalescing > 0
	e.coalescing += change
	if now := e.coalescing > 0; now != before {
		if err := e.conn.Coalesce(now); err != nil {
			e.log.Debug("packets are received one by one", "error", err)
		}
	}
}

// Ignored says why a packet that arrived was left alone.
type Ignored uint8

// The reasons.
const (
	// TooShort for a header.
	TooShort Ignored = iota
	// Foreign: not of this format or version.
	Foreign
	// DamagedHeader, and nothing tells whose packet it was.
	DamagedHeader
	// UnknownSession: nobody joined it, or it has left.
	UnknownSession
	// UnknownTransfer: none of this number is expected, or it has been finished.
	UnknownTransfer
	// BeyondPlan: a number that the plan does not have.
	BeyondPlan
	// HelloTooOften: more hellos of one session than are answered.
	HelloTooOften
	// BadHello: a hello that cannot or must not be answered: too short for it.
	BadHello
	// UnknownType of packet.
	UnknownType
	// BadFeedback: a report or an order that is old, or none, or for the other end.
	BadFeedback

	// taken: it was not ignored.
	taken

	// Reasons is how many there are.
	Reasons = int(taken)
)

// String is a word for each.
func (i Ignored) String() string {
	words := [...]string{
		TooShort: "too_short", Foreign: "foreign", DamagedHeader: "damaged_header",
		UnknownSession: "unknown_session", UnknownTransfer: "unknown_transfer", BeyondPlan: "beyond_plan",
		HelloTooOften: "hello_too_often", BadHello: "bad_hello", UnknownType: "unknown_type",
		BadFeedback: "bad_feedback",
	}
	if int(i) >= len(words) || words[i] == "" {
		return "invalid"
	}
	return words[i]
}

// Stats are counts since Open; they only grow.
type Stats struct {
	// Socket are those of the socket.
	Socket tstamp.Stats
	// Accepted counts data packets that belong to a stream, Hellos the hellos of
	// sessions that have joined, and Challenges those that were answered.
	Accepted, Hellos, Challenges uint64
	// Ignored counts the packets that were left alone, indexed by the reason.
	Ignored [Reasons]uint64
}

// Stats returns the counts so far; also after Close.
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

// Session is one run's share of an Endpoint.
type Session struct {
	endpoint *Endpoint
	id       uint64
	// challenges holds the cookie that came last; limit is for those that this end sends.
	challenges chan []byte
	limit      *rate.Limiter

	mu         sync.Mutex
	left       bool
	receptions []*Reception
	// peer is the address that hellos came from last, local where they came to.
	peer  netip.AddrPort
	local netip.Addr
	// source is where the last packet of a stream came from, at sourceAt; zero: none came.
	source   netip.AddrPort
	sourceAt time.Duration
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
