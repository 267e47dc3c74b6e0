package responder

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"oneway.example/exporter/control"
	"oneway.example/exporter/sample"
	"oneway.example/exporter/sched"
	"oneway.example/exporter/stream"
)

// Times of a session, beside those of package control.
const (
	// openTime is how long an authorised client may take to say what it wants.
	openTime = 10 * time.Second
	// idleTime is how long it may hold the link without a transfer.
	idleTime = time.Minute
	// sessionTime is how long it may hold the link at all; a matrix of 100 cells takes an hour.
	sessionTime = 4 * time.Hour
	// farewell is how long the reason of an end may take to be said.
	farewell = 500 * time.Millisecond
)

// session is one authorised connection, and what it has opened. One goroutine reads what
// the client says; each transfer has one of its own.
type session struct {
	r     *Responder
	token Token
	conn  *control.Conn
	gated *gatedConn // nil: what came last over the connection is not known
	// admitted is when it was authorised.
	admitted time.Time
	idle     *time.Timer
	stop     context.CancelCauseFunc
	tasks    sync.WaitGroup

	// Set by open, and not changed after it.
	opened  bool
	run     string
	id      uint64
	stream  *stream.Session
	port    uint16
	reserve *sched.Reservation
	budget  *sched.Reservation
	release func()
	begun   time.Time

	// Of the reading goroutine.
	announced int64 // octets that transfers may still plan
	used      map[uint16]bool

	moved   [2]atomic.Int64 // octets of payload, by direction
	headers atomic.Int64    // octets of IP and UDP headers, which a link's budget counts too
	to      atomic.Pointer[netip.AddrPort]
	// hellos counts them once an address is proved; hello is when the last came from there, or when
	// it was proved, by sched.Now. refused counts ICMP errors since then.
	hellos  atomic.Uint64
	hello   atomic.Int64
	refused atomic.Int64

	mu     sync.Mutex
	ready  bool // open has succeeded
	active [2]*transfer
}

// Causes of an end that are no refusal.
var (
	errGone     = errors.New("responder: the connection has ended")
	errVanished = errors.New("responder: the client has vanished")
)

// serve runs the session until its connection ends.
func (s *session) serve(parent context.Context, conn *control.Conn) {
	s.conn, s.used = conn, map[uint16]bool{}
	ctx, stop := context.WithCancelCause(parent)
	s.stop = stop
	longest := time.AfterFunc(sessionTime, func() {
		stop(&control.Refusal{Reason: control.TimeLimit, Detail: fmt.Sprintf("a session is over after %v", sessionTime), RetryAfter: tooManyWait})
	})
	defer longest.Stop()
	s.idle = time.AfterFunc(s.r.options.opening, func() {
		stop(&control.Refusal{Reason: control.TimeLimit, Detail: "nothing was asked for, for too long"})
	})
	var watching sync.WaitGroup
	watching.Go(func() {
		select {
		case <-conn.Done():
			stop(errGone)
		case <-ctx.Done():
		}
	})
	err := s.talk(ctx)
	stop(errGone)
	watching.Wait()
	if s.stream != nil {
		s.r.byID.Delete(s.id)
		s.stream.Leave()
	}
	reason := s.hangUp(err)
	s.tasks.Wait()
	s.idle.Stop()
	s.finish(reason)
}

// talk does what the client says, until an error ends the session: a refusal, or what
// the connection's end was.
func (s *session) talk(ctx context.Context) error {
	limits := s.token.Limits
	limits.Sessions = mostSessions(limits)
	if most := limits.BytesPerDay; most > 0 {
		limits.LeftToday = s.r.ledger.Usage(s.token.Name).Within(most).Left
	}
	if err := s.conn.Write(control.Message{Welcome: &control.Welcome{Version: control.Version, Limits: limits}}); err != nil {
		return err
	}
	for {
		m, _, err := s.conn.Read(ctx)
		if err != nil {
			if refusal, ok := errors.AsType[*control.Refusal](context.Cause(ctx)); ok {
				return refusal
			}
			if ended := s.conn.Err(); ended != nil {
				return ended
			}
			if errors.Is(context.Cause(ctx), errVanished) {
				return errVanished
			}
			return shuttingDown() // Run's context has ended
		}
		if err := s.hear(ctx, m); err != nil {
			return err
		}
	}
}

// hear does what one message asks for. A nil *Refusal must not become an error, so that
// each case says so itself.
func (s *session) hear(ctx context.Context, m control.Message) error {
	var refusal *control.Refusal
	switch {
	case m.Open != nil:
		refusal = s.open(m.Open)
	case m.Prove != nil:
		refusal = s.prove(m.Prove)
	case m.Transfer != nil:
		refusal = s.transfer(ctx, m.Transfer)
	case m.Sent != nil:
		s.allSent(m.Sent)
	case m.Cancel != nil:
		s.cancel(m.Cancel.ID)
	default:
		refusal = badRequest("a responder is not told this")
	}
	if refusal == nil {
		return nil
	}
	s.r.counts.request(refusal.Reason)
	if refusal.ID != 0 {
		return s.conn.Write(control.Message{Refusal: refusal})
	}
	return refusal
}

func badRequest(format string, args ...any) *control.Refusal {
	return &control.Refusal{Reason: control.BadRequest, Detail: fmt.Sprintf(format, args...)}
}

const (
	// maxRun is the longest id of a run that is logged.
	maxRun = 100
	// maxAnnounced is more than any session moves, and small enough to be added up.
	maxAnnounced = 1 << 50
)

// open gives the link to the session, sets its octets aside, and makes its number known
// to the test port.
func (s *session) open(o *control.Open) *control.Refusal {
	endpoint := s.r.endpointAt(s.conn.Local())
	switch {
	case o.Version != control.Version:
		return &control.Refusal{Reason: control.WrongVersion, Detail: fmt.Sprintf("version %d is asked for; this responder speaks %d", o.Version, control.Version)}
	case s.opened:
		return badRequest("the session is open already")
	case o.Kind != control.Saturate && o.Kind != control.Matrix && o.Kind != control.Train:
		return badRequest("%.20q is no kind of test", o.Kind)
	case o.Bytes <= 0 || o.Bytes > maxAnnounced:
		return badRequest("a session of %d octets is announced; it must be what all its transfers will move, 1 to %d", o.Bytes, int64(maxAnnounced))
	case len(o.Run) > maxRun:
		return badRequest("the id of the run has %d octets, at most %d are taken", len(o.Run), maxRun)
	case endpoint == nil:
		return badRequest("no test port belongs to the address %v", s.conn.Local())
	}
	release, refusal := s.take()
	if refusal != nil {
		return refusal
	}
	if refusal := s.setAside(o.Bytes); refusal != nil {
		release()
		return refusal
	}
	s.opened, s.run, s.release, s.announced = true, o.Run, release, o.Bytes
	s.begun = time.Now()
	s.id = randomID()
	s.r.byID.Store(s.id, s)
	s.stream = endpoint.Join(s.id)
	s.port = endpoint.LocalAddr().Port()
	s.idle.Reset(s.r.options.idle)
	s.mu.Lock()
	s.ready = true
	s.mu.Unlock()
	s.r.counts.opened()
	s.r.env.Log.Info("Session opened", "token", s.token.Name, "run", o.Run, "kind", string(o.Kind), "from", s.conn.Remote().String(), "announced_bytes", o.Bytes)
	salt := uint32(randomID())
	_ = s.conn.Write(control.Message{Opened: &control.Opened{ // an error ends the connection, which Read tells
		Session: s.id, Port: s.port, Salt: salt, Host: s.r.host.Token(salt),
	}})
	return nil
}

// setAside takes the octets from what the token, and the link, have left today.
func (s *session) setAside(bytes int64) *control.Refusal {
	limit := s.token.Limits.BytesPerDay
	reserve, err := s.r.ledger.ReserveWithin(s.token.Name, limit, bytes)
	if e, ok := errors.AsType[*sched.BudgetError](err); ok {
		return s.tomorrow(bytes <= limit, e.Renewed, fmt.Sprintf("%d octets are announced, and %d of the %d a day are left to the token", bytes, e.Left, limit))
	}
	if err != nil {
		return s.unsaved(err)
	}
	budget, err := s.r.env.Links.Reserve(s.r.options.Link, bytes)
	if err != nil {
		reserve.Settle(0)
		if e, ok := errors.AsType[*sched.BudgetError](err); ok {
			return s.tomorrow(true, e.Renewed, fmt.Sprintf("%d octets are announced, and %d of the link's budget are left today", bytes, e.Left))
		}
		return s.unsaved(err)
	}
	s.reserve, s.budget = reserve, budget
	return nil
}

// tomorrow refuses for today, or for good.
func (s *session) tomorrow(again bool, renewed time.Time, detail string) *control.Refusal {
	refusal := &control.Refusal{Reason: control.DayLimit, Detail: detail}
	if again {
		refusal.RetryAfter = max(time.Second, renewed.Sub(s.r.options.now()))
	}
	return refusal
}

func randomID() uint64 {
	for {
		var b [8]byte
		_, _ = rand.Read(b[:]) // never fails (Go 1.24)
		if id := binary.BigEndian.Uint64(b[:]); id != 0 {
			return id
		}
	}
}

// prove learns where the client receives, from the cookie that was sent there.
func (s *session) prove(p *control.Prove) *control.Refusal {
	if !s.opened {
		return badRequest("the session is not open")
	}
	if s.transferring() {
		return badRequest("the address cannot change while a transfer runs")
	}
	to, ok := s.stream.Proven(p.Cookie)
	if !ok {
		return &control.Refusal{Reason: control.Unproved, Detail: "this cookie was not sent for this session"}
	}
	if !s.r.options.allowed(to.Addr()) {
		return &control.Refusal{Reason: control.Unproved, Detail: fmt.Sprintf("%v is not an address that is served here", to.Addr())}
	}
	s.to.Store(&to)
	s.heardFrom()
	s.idle.Reset(s.r.options.idle)
	_ = s.conn.Write(control.Message{Proved: &control.Proved{Address: to.String()}}) // an error ends the connection, which Read tells
	return nil
}

// greeted hears of a hello; it runs on the goroutine that receives.
func (r *Responder) greeted(id uint64, from netip.AddrPort) {
	v, ok := r.byID.Load(id)
	if !ok {
		return
	}
	s := v.(*session)
	to := s.to.Load()
	if to == nil {
		return
	}
	s.hellos.Add(1)
	if *to == from {
		s.heardFrom()
		s.conn.Heard()
	}
}

// hangUp ends the connection, and says in one word why.
func (s *session) hangUp(err error) (reason string) {
	defer func() { _ = s.conn.Close() }() // it has no error to tell
	if refusal, ok := errors.AsType[*control.Refusal](err); ok {
		if refusal.Reason == control.ShuttingDown || refusal.Reason == control.TimeLimit {
			s.r.counts.request(refusal.Reason) // nobody has asked, so nobody has counted it
		}
		// A client that does not read must not hold the session.
		late := time.AfterFunc(farewell, func() { _ = s.conn.Close() })
		_ = s.conn.Refuse(refusal) // it may have gone
		late.Stop()
		if refusal.Reason == control.ShuttingDown {
			return "shutting_down"
		}
		return "protocol"
	}
	switch {
	case errors.Is(err, control.ErrClosed):
		return "closed"
	case errors.Is(err, control.ErrSilent), errors.Is(err, errVanished):
		return "silent"
	case errors.Is(err, control.ErrProtocol):
		return "protocol"
	}
	return "lost"
}

// finish gives back what the session had, when nothing of it runs any more.
func (s *session) finish(reason string) {
	if !s.opened {
		return
	}
	received, sent := s.moved[sample.Forward].Load(), s.moved[sample.Reverse].Load()
	s.reserve.Settle(received + sent)
	s.budget.Settle(received + sent + s.headers.Load())
	s.release()
	s.r.counts.ended(reason)
	s.r.env.Log.Info("Session ended", "token", s.token.Name, "run", s.run, "reason", reason,
		"seconds", time.Since(s.begun).Seconds(), "received_bytes", received, "sent_bytes", sent)
}
