// Package loadtcp is a second type of traffic, for tests: bytes over one TCP connection, in one
// direction, for a given time. A new type of traffic needs a package such as this and a line in the
// registry of each end.
package loadtcp

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"oneway.example/exporter/core/ctxtime"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/traffic"
)

// Messages: the client's parameters, the address of the stream, and the bytes the remote end moved.
type (
	parameters struct {
		Direction sample.Direction
		Duration  time.Duration
	}
	reply struct {
		Port   uint16
		Cookie []byte
	}
	finished struct{ Bytes int64 }
)

// Type is the remote end's half.
type Type struct{}

// Name returns "bulk".
func (Type) Name() string { return "bulk" }

// New returns the half of one load server; sessions share no state.
func (Type) New(traffic.Env) traffic.Remote { return remote{} }

type remote struct{}

func (remote) Listen(netip.AddrPort) (func(), error) { return func() {}, nil }
func (remote) Run(ctx context.Context) error         { <-ctx.Done(); return nil }
func (remote) Discarded() map[string]uint64          { return nil }
func (remote) Open(host traffic.Host, raw json.RawMessage) (traffic.Session, any, *loadcontrol.Refusal) {
	s := &serving{host: host, cookie: []byte(rand.Text())}
	limits, refusal := host.Limits()
	switch err := json.Unmarshal(raw, &s.parameters); {
	case refusal != nil:
		return nil, nil, refusal
	case err != nil || s.Duration <= 0:
		return nil, nil, &loadcontrol.Refusal{Reason: loadcontrol.BadRequest, Detail: "parameters must have a direction and a duration above 0"}
	case limits.Duration > 0 && s.Duration > limits.Duration:
		return nil, nil, &loadcontrol.Refusal{Reason: loadcontrol.TimeLimit, Detail: fmt.Sprintf("duration is %v; the token allows %v", s.Duration, limits.Duration)}
	}
	l, err := host.Listen(net.ListenConfig{})
	if err != nil {
		return nil, nil, &loadcontrol.Refusal{Reason: loadcontrol.TooMany, Detail: err.Error()}
	}
	s.listener = l
	s.ctx, s.end = context.WithCancel(context.Background())
	s.tasks.Go(s.serve)
	return s, reply{uint16(l.Addr().(*net.TCPAddr).Port), s.cookie}, nil
}

// serving is the stream of one session.
type serving struct {
	parameters
	host     traffic.Host
	listener net.Listener
	cookie   []byte
	ctx      context.Context // ends with the session
	end      context.CancelFunc
	tasks    sync.WaitGroup
}

func (*serving) Handle(m *loadcontrol.TrafficMessage) *loadcontrol.Refusal {
	return &loadcontrol.Refusal{Reason: loadcontrol.BadRequest, Detail: fmt.Sprintf("unexpected message %.40q", m.Name)}
}

func (s *serving) Close() {
	s.end()
	_ = s.listener.Close()
	s.tasks.Wait()
}

func (s *serving) serve() {
	c, err := s.listener.Accept()
	if err != nil {
		return // the session has ended
	}
	context.AfterFunc(s.ctx, func() { _ = c.Close() })
	shown := make([]byte, len(s.cookie))
	if _, err := io.ReadFull(c, shown); err != nil || subtle.ConstantTimeCompare(shown, s.cookie) != 1 {
		s.host.End(&loadcontrol.Refusal{Reason: loadcontrol.Unproved, Detail: "the connection of the stream did not send the cookie"})
		return
	}
	s.host.CountTransfer()
	end := time.Now().Add(s.Duration)
	s.host.SetBusy(end)
	defer s.host.SetBusy(time.Time{})
	move := receive
	if s.Direction == sample.Reverse {
		move = send
	}
	n := move(c, end, s.allow)
	s.host.CountBytes(s.Direction, n, 0)
	_ = s.host.SendMessage("finished", finished{n}, nil) // an error ends the session
}

// allow takes n bytes from the session's limit, and waits as the token's rate requires.
func (s *serving) allow(n int) bool {
	var pause time.Duration
	draw := func(b traffic.Bucket) (left float64, err error) {
		pause = time.Duration(max(0, float64(n)-b.Level) / b.Rate * float64(time.Second))
		return b.Level - float64(n), nil
	}
	return s.host.Take(int64(n)) == nil && s.host.ConsumeRate(s.Direction, 0, draw) == nil && ctxtime.Sleep(s.ctx, pause)
}

// send writes until end or until may returns false, and then shuts down its direction.
func send(c net.Conn, end time.Time, may func(int) bool) (n int64) {
	b := make([]byte, 64<<10)
	_ = c.SetWriteDeadline(end)
	for may(len(b)) {
		m, err := c.Write(b)
		if n += int64(m); err != nil {
			break
		}
	}
	_ = c.(*net.TCPConn).CloseWrite()
	return n
}

func receive(c net.Conn, end time.Time, may func(int) bool) (n int64) {
	b := make([]byte, 64<<10)
	_ = c.SetReadDeadline(end.Add(5 * time.Second))
	for {
		m, err := c.Read(b)
		if n += int64(m); err != nil || !may(m) {
			return n
		}
	}
}

// Bulk is a load test with this type of traffic.
type Bulk struct {
	Direction sample.Direction
	For       time.Duration
	Most      int64
}

// Result of a run.
type Result struct{ Sent, Received int64 }

// Kind of the test.
func (Bulk) Kind() string { return "bulk" }

// Bytes is the most that a run sends.
func (b Bulk) Bytes() int64 { return b.Most }

// Duration of a run.
func (b Bulk) Duration() time.Duration { return b.For }

// Publish sets nothing.
func (Bulk) Publish(*loadtest.Values, *loadtest.Run) {}

// Traffic returns the local half.
func (b Bulk) Traffic() loadtest.Traffic { return local{b} }

type local struct{ test Bulk }

func (local) Counters(*metric.Scope, []sample.Direction) {}

func (n local) Connect(ctx context.Context, d *loadtest.ControlConn) (loadtest.Flow, error) {
	f := &flow{test: n.test, client: d.Client, finished: make(chan finished, 1), loaded: d.Loaded}
	o := d.Open
	o.Bytes += d.Beside
	o.Traffic = Type{}.Name()
	o.Parameters, _ = json.Marshal(parameters{n.test.Direction, n.test.For})
	opened, err := d.Client.Open(ctx, o, func(m *loadcontrol.TrafficMessage, _ []byte) error {
		var end finished
		if err := m.Into(&end); err != nil {
			return err
		}
		select {
		case f.finished <- end:
			return nil
		default:
			return errors.New("received finished twice")
		}
	})
	if err != nil {
		return nil, d.Failed(ctx, err)
	}
	var to reply
	if err := json.Unmarshal(opened.Reply, &to); err != nil {
		return nil, err
	}
	at := netip.AddrPortFrom(d.Client.Remote().Addr(), to.Port)
	if f.conn, err = (&net.Dialer{}).DialContext(ctx, "tcp", at.String()); err != nil {
		return nil, &loadtest.Failure{Reason: loadtest.ReasonSocket, Err: err}
	}
	_, err = f.conn.Write(to.Cookie)
	return f, err
}

type flow struct {
	test     Bulk
	client   *loadcontrol.Client
	conn     net.Conn
	finished chan finished
	moved    int64
	loaded   func(d sample.Direction, from, to instant.Time)
}

func (f *flow) Remote() netip.AddrPort       { return f.client.Remote() }
func (*flow) Follow(func(loadtest.Progress)) {}
func (f *flow) Close()                       { _ = f.conn.Close() }

func (f *flow) Perform(ctx context.Context, r *loadtest.Run) error {
	defer context.AfterFunc(ctx, func() { _ = f.conn.Close() })()
	move := send
	if f.test.Direction == sample.Reverse {
		move = receive
	}
	left := f.test.Most
	begin := instant.Now()
	f.moved = move(f.conn, time.Now().Add(f.test.For), func(n int) bool { left -= int64(n); return left > 0 })
	f.loaded(f.test.Direction, begin, instant.Now())
	select {
	case remote := <-f.finished:
		r.Body = Result{Sent: f.moved, Received: remote.Bytes}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (f *flow) Account(o *loadtest.Outcome, _ *metric.Scope) {
	o.ForwardBytes = f.moved
	if f.test.Direction == sample.Reverse {
		o.ForwardBytes, o.ReverseBytes = 0, f.moved
	}
}
