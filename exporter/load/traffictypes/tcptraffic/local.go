package tcptraffic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/core/bound"
	"oneway.example/exporter/core/ctxtime"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/loadsession"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/traffic"
	"oneway.example/exporter/probe/endclock"
)

// Local is the local half of the traffic: TCP transfers.
type Local struct {
	// Other is another part of the session; nil: there is none.
	Other Greeter
}

// Greeter is a part of a session with hello packets.
type Greeter interface {
	// LastReceived returns when the last packet arrived.
	LastReceived() time.Time
	// HeldBack returns how long the path holds packets back, where a message is due since a time. It sends a hello packet every so often.
	HeldBack(now, due time.Time, every time.Duration) time.Duration
}

// Counters returns none.
func (Local) Counters() []loadtest.Counter { return nil }

// Connect opens a session over the control connection. A transfer opens its connections.
func (l Local) Connect(ctx context.Context, d *loadsession.Conn) (*Session, error) {
	s := &Session{
		client: d.Client, from: d.Options.From(d.Client.Remote().Addr()), dscp: d.Options.DSCP,
		limits: d.Client.Welcome().Limits, pending: map[uint16]*pending{},
		clock: d.Env.Clock, recorder: d.Env.Recorder, path: d.Target.Path, probe: d.Target.Probe, run: d.Run,
		announced: d.Announced, loaded: d.Loaded, progress: d.Progress, clocks: d.Clocks, other: l.Other,
	}
	s.open, s.end = context.WithCancelCause(context.Background())
	o := d.Open()
	o.Traffic, o.Parameters = Name, json.RawMessage("{}")
	opened, err := d.Client.Open(ctx, o, s.deliver)
	if err != nil {
		return nil, d.Failed(ctx, err)
	}
	var kernel endclock.Kernel
	if json.Unmarshal(opened.Reply, &kernel) == nil { // a load server without it may be any host
		s.sharedClock = kernel.Here()
	}
	s.tasks.Go(func() {
		alive(s.open, func() error { return s.client.SendMessage(sayAlive, struct{}{}) })
	})
	s.tasks.Go(s.watch)
	s.ends = bound.Ends{Local: endclock.LocalStamps(ctx, d.Env.Calibration, d.Options.LocalAddr(), d.Client.Remote(), d.Log), Remote: endclock.RemoteStamps()}
	return s, nil
}

// Session performs the transfers of a test. Its methods are safe for concurrent use.
type Session struct {
	client    *loadcontrol.Client
	from      netip.Addr
	dscp      int
	limits    loadcontrol.Limits
	announced int64
	clock     clock.Monitor
	ends      bound.Ends // errors of timestamps
	clocks    *endclock.Proof
	// sharedClock: both ends read one clock (package hostid).
	sharedClock bool
	loaded      func(d sample.Direction, from, to instant.Time) // as in loadtest.Attempt
	// recorder receives the samples of each transfer that has ended, labeled path, probe and run.
	recorder         *record.Recorder
	path, probe, run string
	progress         func(loadtest.Progress)
	// open ends with the session; end ends it, with the cause of the transfers in progress.
	open  context.Context
	end   context.CancelCauseFunc
	tasks sync.WaitGroup
	other Greeter // Local.Other
	flows flowState
	// greeted: the load server sends alive.
	greeted  atomic.Bool
	recovery traffic.Recovery // of the control connection; used by watch only

	mu      sync.Mutex
	last    uint16
	pending map[uint16]*pending
	moved   [2]int64      // IP bytes sent, by direction
	done    time.Duration // planned time of ended transfers
	running int           // transfers in progress, since a time, and their planned end after it
	since   time.Time
	planned time.Duration
}

// Clocks is whether traffic of the run has proven a clock wrong; nil: nobody knows.
func (s *Session) Clocks() *endclock.Proof { return s.clocks }

// pending is a transfer whose end the load server has not reported; it remains if the client has given up. replies
// has one place for each message.
type pending struct {
	session *Session
	id      uint16
	plan    *Plan
	after   time.Duration // its beginning, after that of the first of those that overlap
	expects string        // the next message; refused may replace listening, and finished replaces started if it failed
	replies chan reply
}

// reply is a message of the load server; one field is set.
type reply struct {
	started   *started
	listening *listening
	finished  *finished
	refusal   *loadcontrol.Refusal
}

// Limits returns those of the token.
func (s *Session) Limits() loadcontrol.Limits { return s.limits }

// Left returns the IP bytes of the session that no transfer has used.
func (s *Session) Left() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(0, s.announced-s.moved[0]-s.moved[1])
}

// Remote returns the address of the load server.
func (s *Session) Remote() netip.AddrPort { return s.client.Remote() }

// Account adds the IP bytes sent to the outcome.
func (s *Session) Account(o *loadtest.Outcome, _ *metric.Scope) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o.ForwardBytes += s.moved[sample.Forward]
	o.ReverseBytes += s.moved[sample.Reverse]
}

// aliveInterval is the interval of the message alive. The timeouts of both ends allow for an outage of some seconds,
// after which TCP takes as long again to send it.
const aliveInterval = 2 * time.Second

// alive tells the other end that this end does not hang, until ctx or the session ends.
func alive(ctx context.Context, send func() error) {
	for send() == nil && ctxtime.Sleep(ctx, aliveInterval) { // the interval of the messages; an error means that the session has ended
		continue
	}
}

// Close ends the messages to the load server. Each transfer closes its connections.
func (s *Session) Close() {
	s.end(nil)
	s.tasks.Wait()
}

// deliver passes a message of the load server to its transfer.
func (s *Session) deliver(m *loadcontrol.TrafficMessage, data []byte) error {
	var (
		begun    started
		id       *uint16
		r        reply
		finished finished
		opened   listening
		refusal  loadcontrol.Refusal
		into     any
	)
	switch m.Name {
	case sayAlive:
		s.greeted.Store(true)
		return nil
	case sayListening:
		into, id, r.listening = &opened, &opened.ID, &opened
	case sayStarted:
		into, id, r.started = &begun, &begun.ID, &begun
	case sayFinished:
		into, id, r.finished = &finished, &finished.ID, &finished
	case sayRefused:
		into, id, r.refusal = &refusal, &refusal.ID, &refusal
	default:
		return fmt.Errorf("%w: unexpected %.40q", loadcontrol.ErrProtocol, m.Name)
	}
	if err := m.Into(into); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.pending[*id]
	switch {
	case x == nil, m.Name != x.expects && (m.Name != sayRefused || x.expects != sayListening) && (m.Name != sayFinished || x.expects != sayStarted || finished.Error == ""):
		return fmt.Errorf("%w: unexpected %s", loadcontrol.ErrProtocol, m.Name)
	case r.listening != nil && (len(opened.Ports) != len(x.plan.Flows) || len(opened.Cookie) != cookieBytes):
		return fmt.Errorf("%w: listening %d has %d ports and a cookie of %d bytes", loadcontrol.ErrProtocol, *id, len(opened.Ports), len(opened.Cookie))
	case r.refusal != nil:
		if err := refusal.Check(); err != nil {
			return err
		}
		refusal.Detail = loadcontrol.Printable(refusal.Detail)
	case r.finished != nil:
		if err := finished.parse(x.plan, data); err != nil {
			return err
		}
	}
	if x.expects = map[string]string{sayListening: sayStarted, sayStarted: sayFinished}[m.Name]; x.expects == "" {
		delete(s.pending, *id)
	}
	x.replies <- r
	return nil
}

// register adds a transfer.
func (s *Session) register(p *Plan) *pending {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	if s.running++; s.running == 1 {
		s.since, s.planned = time.Now(), 0
		s.flows.slowest.Store(0)
	}
	x := &pending{session: s, id: s.last, plan: p, after: time.Since(s.since), expects: sayListening, replies: make(chan reply, 3)}
	s.planned = max(s.planned, x.after+p.Duration)
	s.pending[x.id] = x
	return x
}

// wait returns the next message.
func (x *pending) wait(ctx context.Context, limit time.Duration) (reply, error) {
	client := x.session.client
	ctx, cancel := context.WithTimeoutCause(ctx, limit, &loadtest.Failure{
		Reason: runreason.Lost, Err: fmt.Errorf("no message from the load server at %s for %v", client.Remote(), limit),
	})
	defer cancel()
	select {
	case r := <-x.replies:
		if r.refusal != nil {
			return r, r.refusal
		}
		if r.finished != nil && r.finished.Error != "" {
			return r, &loadtest.Failure{Reason: runreason.Socket, Err: errors.New("load server: " + r.finished.Error)}
		}
		return r, nil
	case <-client.Done():
		return reply{}, client.Err()
	case <-ctx.Done():
		return reply{}, context.Cause(ctx)
	}
}
