package loadserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/core/standstill"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/traffic"
	"oneway.example/exporter/probe/link"
	"oneway.example/exporter/probe/quota"
)

// Times of a session.
const (
	// openTime is the timeout of an authorized client's Open.
	openTime = 10 * time.Second
	// idleTime is the longest time that a session holds the link without a transfer.
	idleTime = time.Minute
	// durationSlack is added to the announced duration of a session.
	durationSlack = time.Minute
	// lastWriteTimeout is the timeout of the last message.
	lastWriteTimeout = 500 * time.Millisecond
)

// session is one authorized connection and its open session; it is the traffic.Host. One goroutine
// reads the client's messages.
type session struct {
	r     *LoadServer
	token Token
	conn  *loadcontrol.Conn
	gated *gatedConn
	// admitted is the time of the authorization.
	admitted time.Time
	idle     *time.Timer
	longest  *time.Timer
	watch    *standstill.Watch
	stop     context.CancelCauseFunc

	// Set by open and constant after it.
	run     string
	traffic traffic.Session // nil: not open
	reserve *quota.Reservation
	quota   *quota.Reservation
	release func()
	emptied func() // the traffic no longer fills the link
	begun   time.Time

	transferred [2]atomic.Int64 // payload bytes by direction
	headers     atomic.Int64    // header bytes; the link's quota includes them

	mu        sync.Mutex
	ready     bool      // open has succeeded
	until     time.Time // planned end of the transfers; zero: none runs
	announced int64     // announced bytes that are left
	sockets   []net.Listener
	settle    [2]func(bytes int64, now time.Time) // of the last draw by direction; nil: none

	reflecting      *reflecting // used by the goroutine of serve only; nil: no reflector
	reflectRequests int
}

var _ traffic.Host = (*session)(nil)

// serve runs the session until its connection ends.
func (s *session) serve(parent context.Context, conn *loadcontrol.Conn) {
	s.conn, s.watch = conn, standstill.New()
	ctx, stop := context.WithCancelCause(parent)
	s.stop = stop
	s.longest = s.timer(link.MaxHold, &loadcontrol.Refusal{Reason: loadcontrol.TimeLimit, Detail: fmt.Sprintf("the session has reached its limit of %v", link.MaxHold), RetryAfter: tooManyWait})
	defer s.longest.Stop()
	s.idle = s.timer(s.r.options.opening, &loadcontrol.Refusal{Reason: loadcontrol.TimeLimit, Detail: "the session was idle for too long"})
	watching, unwatch := context.WithCancel(context.WithoutCancel(parent)) // also while a session that was stopped ends
	defer unwatch()
	go s.watch.Run(watching, func(time.Duration) { _ = s.checkRan() }) // it ends the session
	err := s.exchange(ctx)
	stop(nil)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if s.traffic != nil {
			s.traffic.Close()
		}
	}()
	reason := s.disconnect(err)
	<-ended
	s.idle.Stop()
	s.finish(reason)
}

// timer ends the session after a time.
func (s *session) timer(after time.Duration, why *loadcontrol.Refusal) *time.Timer {
	return time.AfterFunc(after, func() { s.stop(why) })
}

// exchange handles the client's messages until an error ends the session: a refusal, or the error of
// the connection.
func (s *session) exchange(ctx context.Context) error {
	limits := s.token.Limits
	limits.Sessions = maxSessions(limits)
	if most := limits.BytesPerDay; most > 0 {
		limits.LeftToday = s.r.usage.Usage(s.token.Name, most).Left
	}
	if err := s.conn.Write(loadcontrol.Message{Welcome: &loadcontrol.Welcome{Limits: limits}}); err != nil {
		return err
	}
	for {
		m, _, err := s.conn.Read(ctx)
		if err != nil {
			return s.ended(ctx)
		}
		if err := s.handle(&m); err != nil {
			return err
		}
	}
}

// ended returns why Read failed.
func (s *session) ended(ctx context.Context) error {
	cause := context.Cause(ctx)
	if errors.As(cause, new(*loadcontrol.Refusal)) || errors.Is(cause, traffic.ErrIdleTimeout) {
		return cause
	}
	if err := s.conn.Err(); err != nil {
		return err
	}
	return shuttingDown() // the context of Run has ended
}

// handle handles one message. It never converts a nil *Refusal into an error.
func (s *session) handle(m *loadcontrol.Message) error {
	var refusal *loadcontrol.Refusal
	switch {
	case m.Open != nil:
		refusal = s.open(m.Open)
	case m.Traffic != nil && s.traffic != nil:
		refusal = s.traffic.Handle(m.Traffic)
	case m.Reflect != nil && s.traffic != nil:
		s.reflect(m.Reflect)
	default:
		refusal = loadcontrol.Reject("the session is not open")
	}
	if refusal == nil {
		return nil
	}
	return refusal
}

const (
	// maxRun is the longest ID of a run, and name of a test, in bytes.
	maxRun = 100
	// maxAnnounced exceeds the bytes of any session; sums of it do not overflow.
	maxAnnounced = 1 << 50
)

// open acquires the link, reserves the bytes and starts the traffic of the session.
func (s *session) open(o *loadcontrol.Open) *loadcontrol.Refusal {
	remote := s.r.remote[o.Traffic]
	switch {
	case s.traffic != nil:
		return loadcontrol.Reject("the session is open already")
	case remote == nil:
		return &loadcontrol.Refusal{Reason: loadcontrol.WrongVersion, Detail: fmt.Sprintf("traffic %.40q is unknown to this load server, oneway %s; it has %s", o.Traffic, s.r.env.Version, strings.Join(s.r.types, ", "))}
	case o.Bytes <= 0 || o.Bytes > maxAnnounced:
		return loadcontrol.Reject("bytes is %d; it must be the most that the session moves, 1 to %d", o.Bytes, int64(maxAnnounced))
	case o.Duration <= 0:
		return loadcontrol.Reject("duration is %v; it must be the longest time of the session, above 0s", o.Duration)
	case len(o.Run) > maxRun || len(o.Test) > maxRun:
		return loadcontrol.Reject("the run has %d bytes, the test %d; each must have at most %d", len(o.Run), len(o.Test), maxRun)
	}
	release, refusal := s.take()
	if refusal != nil {
		return refusal
	}
	if refusal := s.reserveQuotas(o.Bytes); refusal != nil {
		release()
		return refusal
	}
	s.announced = o.Bytes
	t, reply, refusal := remote.Open(s, o.Parameters)
	if refusal != nil {
		s.reserve.Settle(0)
		s.quota.Settle(0)
		release()
		return refusal
	}
	s.traffic, s.run, s.release, s.begun = t, o.Run, release, time.Now()
	s.emptied = s.r.env.Links.Fill(link.Use{Link: s.r.options.Link, Peer: s.conn.Remote().Addr()})
	s.longest.Reset(min(link.MaxHold-durationSlack, o.Duration) + durationSlack)
	s.mu.Lock()
	s.ready = true
	s.mu.Unlock()
	s.SetBusy(time.Time{})
	s.r.counts.note(func(st *Status) { st.Opened, st.Sessions = st.Opened+1, st.Sessions+1 })
	s.r.env.Log.Info("Session opened", "token", s.token.Name, "run", o.Run, "kind", o.Test, "from", s.conn.Remote().String(), "announced_bytes", o.Bytes)
	_ = s.conn.SendOpened(reply) // an error ends the connection, and Read returns it
	return nil
}

// reserveQuotas reserves the bytes of the token's and of the link's quota of the day.
func (s *session) reserveQuotas(bytes int64) *loadcontrol.Refusal {
	limit := s.token.Limits.BytesPerDay
	reserve, err := s.r.usage.Reserve(s.token.Name, limit, bytes)
	if e, ok := errors.AsType[*quota.ExceededError](err); ok {
		need, left := unit.DistinctBytes(bytes, e.Left)
		return s.refuseUntilRenewed(bytes <= limit, e.Renewed, fmt.Sprintf("the run may need %s; the token has %s left of its %s a day: %s",
			need, left, unit.Bytes.Format(float64(limit)), loadcontrol.AboveLimit("per-day")))
	}
	if err != nil {
		return s.unsaved(err)
	}
	dayQuota, err := s.r.env.Links.Reserve(s.r.options.Link, bytes)
	if err != nil {
		reserve.Settle(0)
		if e, ok := errors.AsType[*quota.ExceededError](err); ok {
			need, left := unit.DistinctBytes(bytes, e.Left)
			return s.refuseUntilRenewed(true, e.Renewed, fmt.Sprintf("the run may need %s; the quota of the load server's link has %s left today: reduce the test, or let the operator of the load server raise quota_bytes of link %s", need, left, s.r.options.Link))
		}
		return s.unsaved(err)
	}
	s.reserve, s.quota = reserve, dayQuota
	return nil
}

// refuseUntilRenewed refuses until the quota is renewed, or for good.
func (s *session) refuseUntilRenewed(again bool, renewed time.Time, detail string) *loadcontrol.Refusal {
	refusal := &loadcontrol.Refusal{Reason: loadcontrol.DayLimit, Detail: detail}
	if again {
		refusal.RetryAfter = max(time.Second, renewed.Sub(s.r.options.now()))
	}
	return refusal
}

// disconnect ends the connection and returns the reason as a label value.
func (s *session) disconnect(err error) (reason string) {
	defer func() { _ = s.conn.Close() }() // it returns no error
	if errors.Is(err, traffic.ErrIdleTimeout) {
		err = s.silent(err)
	}
	if refusal, ok := errors.AsType[*loadcontrol.Refusal](err); ok {
		s.r.counts.request(refusal.Reason)
		// A client that does not read must not block the end of the session.
		late := time.AfterFunc(lastWriteTimeout, func() { _ = s.conn.Close() })
		_ = s.conn.Refuse(refusal) // the client may have closed
		late.Stop()
		return cmp.Or(runreason.Find(string(refusal.Reason)).Ended, runreason.EndProtocol)
	}
	switch {
	case errors.Is(err, loadcontrol.ErrClosed):
		return runreason.EndClosed
	case errors.Is(err, loadcontrol.ErrProtocol):
		return runreason.EndProtocol
	}
	return runreason.EndLost
}

// silent tells a client that has reached the idle timeout why its session ends: it may run, and its packets not arrive.
func (s *session) silent(err error) *loadcontrol.Refusal {
	if idle, ok := errors.AsType[*traffic.IdleError](err); ok {
		return &loadcontrol.Refusal{Reason: loadcontrol.Lost, Detail: idle.Detail}
	}
	return &loadcontrol.Refusal{Reason: loadcontrol.Lost, Detail: fmt.Sprintf("nothing was received from %v for %s: does a firewall drop it?", s.conn.Remote(), unit.Duration(traffic.IdleTimeout))}
}

// finish releases the resources of the session after its traffic has ended.
func (s *session) finish(reason string) {
	s.mu.Lock()
	sockets := s.sockets
	s.sockets = nil
	s.mu.Unlock()
	for _, l := range sockets { // also those of a refused traffic
		_ = l.Close() // the traffic may have closed it
	}
	if s.traffic == nil {
		return
	}
	s.endReflecting()
	received, sent := s.transferred[sample.Forward].Load(), s.transferred[sample.Reverse].Load()
	s.reserve.Settle(received + sent)
	s.quota.Settle(received + sent + s.headers.Load())
	s.emptied()
	s.release()
	s.r.counts.note(func(st *Status) {
		st.Ended[reason]++
		st.Sessions--
	})
	s.r.env.Log.Info("Session ended", "token", s.token.Name, "run", s.run, "reason", reason,
		"seconds", time.Since(s.begun).Seconds(), "received_bytes", received, "sent_bytes", sent)
}

// Local and the methods below implement traffic.Host.
func (s *session) Local() netip.AddrPort { return s.conn.Local() }

func (s *session) Remote() netip.AddrPort { return s.conn.Remote() }

func (s *session) Limits() (loadcontrol.Limits, *loadcontrol.Refusal) {
	t, ok := s.r.tokens.named(s.token.Name)
	if !ok || t.Hash != s.token.Hash || t.Certificate != s.token.Certificate {
		refusal := &loadcontrol.Refusal{Reason: loadcontrol.Unauthorized, Detail: "the token was revoked"}
		s.End(refusal)
		return loadcontrol.Limits{}, refusal
	}
	return t.Limits, nil
}

func (s *session) Take(bytes int64) *loadcontrol.Refusal {
	s.mu.Lock()
	defer s.mu.Unlock()
	if bytes > s.announced {
		return loadcontrol.Reject("the transfer has %d bytes; %d of those announced for the session are left", bytes, s.announced)
	}
	s.announced -= bytes
	return nil
}

func (s *session) CountBytes(d sample.Direction, payload, headers int64) {
	s.charge(d, payload, headers)
	s.mu.Lock()
	settle := s.settle[d]
	s.mu.Unlock()
	if settle != nil {
		settle(payload, time.Now())
	}
}

// charge counts bytes in the quotas and in the totals.
func (s *session) charge(d sample.Direction, payload, headers int64) {
	s.transferred[d].Add(payload)
	s.headers.Add(headers)
	s.r.counts.note(func(st *Status) {
		if d == sample.Forward {
			st.Received += payload
		} else {
			st.Sent += payload
		}
		s.r.counts.bytes[[2]string{s.token.Name, d.String()}] += payload
	})
}

func (s *session) CountTransfer() { s.r.counts.note(func(st *Status) { st.Started++ }) }

func (s *session) SetBusy(until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.until = until; until.IsZero() {
		s.idle.Reset(s.r.options.idle)
	} else {
		s.idle.Stop()
	}
}

// busyFor returns the planned time until the transfers end, and whether the session is open.
func (s *session) busyFor() (left time.Duration, opened bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(0, time.Until(s.until)), s.ready
}

// checkRan ends the session if this process did not run for a time: what the session has measured is not of the path.
func (s *session) checkRan() error {
	d := s.watch.Longest()
	if d == 0 {
		return nil
	}
	refusal := &loadcontrol.Refusal{Reason: loadcontrol.Paused, Detail: fmt.Sprintf("the load server did not run for %v", d.Round(100*time.Millisecond))}
	s.stop(refusal)
	return refusal
}

func (s *session) SendMessage(name string, body any, data []byte) error {
	if err := s.checkRan(); err != nil {
		return err
	}
	return s.conn.SendMessage(name, body, data)
}

func (s *session) SendRefusal(name string, r *loadcontrol.Refusal) error {
	s.r.counts.request(r.Reason)
	return s.conn.SendMessage(name, r, nil)
}

func (s *session) End(why error) { s.stop(why) }

func (s *session) Listen(o net.ListenConfig) (net.Listener, error) {
	var refused error
	for port := range s.r.options.Ports.All() {
		l, err := o.Listen(context.Background(), "tcp", netip.AddrPortFrom(s.Local().Addr(), port).String())
		if err == nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.sockets = append(s.sockets, l)
			return &furtherListener{allowedListener{l, s.r.gate}, s}, nil
		}
		refused = err
	}
	return nil, fmt.Errorf("loadserver: no port of %v is free: %w", s.r.options.Ports, refused)
}

// furtherListener is a socket of Listen. The session forgets it when it is closed: a client may request many.
type furtherListener struct {
	allowedListener
	session *session
}

// Close closes the socket.
func (l *furtherListener) Close() error {
	s := l.session
	s.mu.Lock()
	s.sockets = slices.DeleteFunc(s.sockets, func(one net.Listener) bool { return one == l.Listener })
	s.mu.Unlock()
	return l.Listener.Close()
}
