package tcptraffic

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/core/ctxtime"
	"oneway.example/exporter/core/errtext"
	"oneway.example/exporter/core/hostid"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/traffic"
	"oneway.example/exporter/net/sched"
	"oneway.example/exporter/net/tcpsocket"
	"oneway.example/exporter/probe/endclock"
)

// Type is this type of traffic.
type Type struct{}

// NewType makes the type for the registry.
func NewType() Type { return Type{} }

// Name returns Name.
func (Type) Name() string { return Name }

// Tables implements record.Declarer.
func (Type) Tables() []*record.Schema { return []*record.Schema{record.TCPTrace, record.TCPBytes} }

// New implements traffic.Type. Sessions share no state.
func (Type) New(env traffic.Env) traffic.Remote { return remote{env.Clock, hostid.Read()} }

type remote struct {
	clock clock.Monitor
	host  hostid.ID
}

func (remote) Listen(netip.AddrPort) (func(), error) { return func() {}, nil }
func (remote) Run(ctx context.Context) error         { <-ctx.Done(); return nil }
func (remote) Discarded() map[string]uint64          { return nil }

// Open opens nothing: each transfer listens on ports of its own.
func (r remote) Open(host traffic.Host, _ json.RawMessage) (traffic.Session, any, *loadcontrol.Refusal) {
	s := &serving{host: host, clock: r.clock, used: map[uint16]bool{}, active: map[uint16]*serve{}}
	s.ctx, s.end = context.WithCancel(context.Background())
	s.recordReceived()
	s.tasks.Go(func() { traffic.EndIdle(s.ctx, host, s.idleTime, func() error { return traffic.ErrIdleTimeout }) })
	return s, endclock.NewKernel(r.host), nil
}

// Limits of all transfers of a session that overlap, besides MaxFlows.
const (
	maxActive  = 8
	allSamples = 2 * MaxSamples
)

// serving is the traffic of one session at the load server. One goroutine handles the client's messages; each
// transfer has its own.
type serving struct {
	host  traffic.Host
	clock clock.Monitor
	ctx   context.Context // ends with the session
	end   context.CancelFunc
	tasks sync.WaitGroup
	used  map[uint16]bool // IDs; only the goroutine of Handle uses it, as it does talks
	talks bool            // the client has sent a message, and gets alive: before, its part of a mixed session may not be open
	// received is when a message or payload was last received from the client, by sched.Now. Acknowledgments do not
	// count: the kernel of a client that hangs sends them.
	received atomic.Int64

	mu     sync.Mutex
	active map[uint16]*serve
}

func (s *serving) recordReceived() { s.received.Store(int64(sched.Now())) }

// idleTime returns the time since the last message or payload, less what Plan.Outage allows beyond the idle timeout.
func (s *serving) idleTime() time.Duration {
	outage := traffic.IdleTimeout
	s.mu.Lock()
	for _, x := range s.active {
		outage = max(outage, x.Plan.Outage)
	}
	s.mu.Unlock()
	return sched.Now() - time.Duration(s.received.Load()) + traffic.IdleTimeout - outage
}

// serve is a transfer in progress.
type serve struct {
	start
	ctx       context.Context // ends when the client cancels it
	cancel    context.CancelFunc
	until     time.Time // planned end
	listeners map[tcpsocket.Options]net.Listener
	cookie    []byte
	sent      chan struct{} // closed when the client has ended a forward transfer
	told      bool          // sent is closed; only the goroutine of Handle uses it
}

// Handle implements traffic.Session.
func (s *serving) Handle(m *loadcontrol.TrafficMessage) *loadcontrol.Refusal {
	var one only
	s.recordReceived()
	if !s.talks {
		s.talks = true
		s.tasks.Go(func() { alive(s.ctx, func() error { return s.host.SendMessage(sayAlive, struct{}{}, nil) }) })
	}
	switch m.Name {
	case sayAlive:
		return nil
	case sayTransfer:
		var x start
		if err := m.Into(&x); err != nil {
			return loadcontrol.RejectError(err)
		}
		return s.begin(x)
	case saySent, sayCancel:
		if err := m.Into(&one); err != nil {
			return loadcontrol.RejectError(err)
		}
	default:
		return loadcontrol.Reject("unexpected message %.40q", m.Name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch x := s.active[one.ID]; {
	case x == nil: // it has ended
	case m.Name == sayCancel:
		x.cancel()
	case !x.told:
		x.told = true
		close(x.sent)
	}
	return nil
}

// begin starts a permitted transfer.
func (s *serving) begin(m start) *loadcontrol.Refusal {
	if refusal := traffic.CheckID(m.ID, s.used); refusal != nil {
		return refusal
	}
	s.used[m.ID] = true
	x := &serve{start: m, cookie: make([]byte, cookieBytes), sent: make(chan struct{}), listeners: map[tcpsocket.Options]net.Listener{}}
	if refusal := s.permit(x); refusal != nil {
		x.unlisten()
		refusal.ID = m.ID
		_ = s.host.SendRefusal(sayRefused, refusal) // an error ends the session, which reports it
		return nil
	}
	_, _ = rand.Read(x.cookie) // never fails (Go 1.24)
	x.ctx, x.cancel = context.WithCancel(s.ctx)
	x.until = time.Now().Add(x.Plan.Duration)
	s.set(x.ID, x)
	s.tasks.Go(func() {
		defer x.cancel()
		s.carry(x)
	})
	return nil
}

// permit refuses a transfer, or opens its listening sockets.
func (s *serving) permit(x *serve) *loadcontrol.Refusal {
	if err := x.Plan.Check(); err != nil {
		return loadcontrol.RejectError(err)
	}
	limits, refusal := s.host.Limits()
	if refusal != nil {
		return refusal
	}
	if refusal := limits.CheckDuration(x.Plan.Duration); refusal != nil {
		return refusal
	}
	if wait := x.Plan.firstWait(limits.BytesPerSecond); wait > x.Plan.Idle {
		return &loadcontrol.Refusal{Reason: loadcontrol.RateLimit, Detail: fmt.Sprintf(
			"at the token's rate of %s the first messages leave after %v; the idle timeout is %v: send smaller messages, or %s",
			unit.BytesPerSecond.Format(limits.BytesPerSecond), wait.Round(time.Second), x.Plan.Idle, loadcontrol.AboveLimit("rate"),
		)}
	}
	flows, samples := len(x.Plan.Flows), x.Plan.allSamples()
	s.mu.Lock()
	n := len(s.active)
	for _, one := range s.active {
		flows, samples = flows+len(one.Plan.Flows), samples+one.Plan.allSamples()
	}
	s.mu.Unlock()
	if n >= maxActive || flows > MaxFlows || samples > allSamples {
		return loadcontrol.Reject("%d transfers are in progress, with this one %d flows and %d samples; the limits are %d, %d and %d", n, flows, samples, maxActive, MaxFlows, allSamples)
	}
	for _, f := range x.Plan.Flows {
		if err := tcpsocket.CheckCongestionControl(f.at(x.sends()).CongestionControl); err != nil {
			return loadcontrol.RejectError(err)
		}
		o := f.listening(x.sends())
		if x.listeners[o] != nil {
			continue
		}
		l, err := s.host.Listen(o.ListenConfig())
		if err != nil {
			return &loadcontrol.Refusal{Reason: loadcontrol.TooMany, Detail: err.Error()}
		}
		x.listeners[o] = l
	}
	return nil
}

// sends reports whether the load server sends.
func (x *serve) sends() bool { return x.Plan.Direction == sample.Reverse }

func (x *serve) unlisten() {
	for _, l := range x.listeners {
		_ = l.Close() // the end of the session may have closed it
	}
}

// set adds a transfer, or with nil removes it, and reports the planned end of all to the load server.
func (s *serving) set(id uint16, x *serve) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active[id] = x; x == nil {
		delete(s.active, id)
	}
	var until time.Time
	for _, one := range s.active {
		if one.until.After(until) {
			until = one.until
		}
	}
	s.host.SetBusy(until)
}

// carry does a transfer and sends its result.
func (s *serving) carry(x *serve) {
	s.host.CountTransfer()
	m := finished{ID: x.ID}
	clock, clockEnd := endclock.Watch(s.clock)
	defer clockEnd()
	h := newHalf(&x.Plan, x.sends())
	conns, err := s.connect(x)
	if err == nil {
		h.permit, h.over = s.permitting(x.Plan.Direction), x.sent
		_ = s.host.SendMessage(sayStarted, started{x.ID, clock}, nil) // an error ends the session, which reports it
		m.Flows = h.run(x.ctx, conns)
		s.count(x, h)
	} else {
		m.Error = errtext.Words(err)
	}
	m.Clock = clockEnd().After
	s.set(x.ID, nil) // the client may start the next one after finished
	if s.ctx.Err() != nil {
		return
	}
	// A client that does not read its records ends the session (loadcontrol).
	_ = s.host.SendMessage(sayFinished, m, appendRecords(nil, m.Flows))
}

// permitting takes IP bytes from the session's limit, and waits as the token's rate of payload requires.
func (s *serving) permitting(d sample.Direction) func(context.Context, int64, int64) error {
	return func(ctx context.Context, payload, ip int64) error {
		var pause time.Duration
		draw := func(b traffic.Bucket) (left float64, err error) {
			left = b.Level - float64(payload)
			pause = time.Duration(max(0, -left) / b.Rate * float64(time.Second))
			return left, nil
		}
		if refusal := s.host.Take(ip); refusal != nil {
			return refusal
		}
		if payload == 0 {
			return nil
		}
		if d == sample.Forward {
			s.recordReceived()
		}
		if refusal := s.host.ConsumeRate(d, 0, draw); refusal != nil {
			s.host.End(refusal)
			s.end() // at once: the client gets the refusal, not a result
			return refusal
		}
		if pause >= time.Millisecond && !ctxtime.Sleep(ctx, pause) { // the bucket remembers shorter ones
			return ctx.Err()
		}
		return nil
	}
}

// count counts the bytes of both directions.
func (s *serving) count(x *serve, h *half) {
	var payload, all int64
	for _, f := range h.flows {
		out, in := f.ipBytes()
		all += out + in
		payload += f.end.Payload
		if h.sends { // the rest was not sent
			payload -= max(0, f.end.Payload-(f.end.Final.Sent-f.end.Final.Retransmitted))
		}
	}
	s.host.CountBytes(x.Plan.Direction, payload, max(0, all-payload))
}

// Close implements traffic.Session.
func (s *serving) Close() {
	s.end()
	s.tasks.Wait()
}
