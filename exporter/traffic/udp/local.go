package udp

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"oneway.example/exporter/calibration"
	"oneway.example/exporter/clock"
	"oneway.example/exporter/ctxtime"
	"oneway.example/exporter/hostid"
	"oneway.example/exporter/loadcontrol"
	"oneway.example/exporter/loadtest"
	"oneway.example/exporter/metric"
	"oneway.example/exporter/sample"
	"oneway.example/exporter/stream"
)

// Test is what a load test does with streams of UDP packets.
type Test interface {
	// Perform runs the test by Session.Transfer, again and again: see loadtest.Flow.
	Perform(ctx context.Context, s *Session, r *loadtest.Run) error
}

// Fitter is what a Test may be besides: one that makes a run fit what the remote end allows.
// Without it, a run that wants more than its token has left for the day is refused.
type Fitter interface {
	// Fit is told what the token allows, and the bytes of IP and UDP headers of a packet,
	// before the session is asked for: after Bytes and before Perform. It returns how many IP
	// bytes the run will send at the most, which is then announced in place of Bytes; 0 if
	// nothing fits: then the remote end may say so itself.
	Fit(limits loadcontrol.Limits, overhead int) int64
}

// Near is the client's half, for one test.
func Near(t Test) loadtest.Traffic { return local{t} }

type local struct{ test Test }

func (local) Counters(s *metric.Scope, directions []sample.Direction) {
	for _, d := range directions {
		s.Series(metric.KernelChecksumErrors, d.String())
	}
}

// Connect opens a session over the control connection, and its UDP socket, and proves where
// that receives.
func (n local) Connect(ctx context.Context, d *loadtest.Dialed) (loadtest.Flow, error) {
	o, where := d.Open, d.Client.Remote()
	if f, ok := n.test.(Fitter); ok {
		if fits := f.Fit(d.Client.Welcome().Limits, Overhead(where.Addr().Is6())); fits > 0 {
			o.Bytes = min(o.Bytes, fits)
		}
	}
	client, err := Open(ctx, d.Client, o)
	if err != nil {
		return nil, d.Failed(ctx, &loadtest.RemoteError{Err: err, Package: Name})
	}
	remote := netip.AddrPortFrom(where.Addr(), client.Reply.Port)
	endpoint, err := stream.Open(stream.Options{Local: netip.AddrPortFrom(d.Options.From(remote.Addr()), 0), Log: d.Log})
	if err != nil {
		return nil, &loadtest.Failure{Reason: loadtest.ReasonSocket, Err: err}
	}
	f := &flow{test: n.test}
	running, stop := context.WithCancel(context.Background())
	var served sync.WaitGroup
	served.Go(func() {
		if err := endpoint.Run(running); err != nil {
			d.Log.Error("Receiving test packets ended", "run", o.Run, "err", err)
		}
	})
	s := endpoint.Join(client.Reply.Session)
	f.close = func() {
		s.Leave()
		stop()
		served.Wait()
	}
	d.Phase("opening the way for test packets")
	cookie, err := greet(ctx, s, remote)
	if err == nil {
		if err = client.Prove(ctx, cookie); err != nil {
			err = d.Failed(ctx, &loadtest.RemoteError{Err: err, Package: Name})
		}
	}
	if err != nil {
		f.close()
		return nil, err
	}
	c := &carrier{client: client, session: s, remote: remote, clock: d.Env.Clock, drain: d.Options.DrainTimeout}
	served.Go(func() { c.hello(running) })
	f.Session = NewSession(c, sessionOptions(ctx, d, client, remote))
	return f, nil
}

// greet fetches the cookie that proves where this end receives.
func greet(ctx context.Context, s *stream.Session, remote netip.AddrPort) (cookie []byte, err error) {
	cookie, err = s.Hello(ctx, remote)
	switch {
	case errors.Is(err, stream.ErrNoReply):
		err = &loadtest.Failure{Reason: loadtest.ReasonNoTraffic, Err: fmt.Errorf("no reply to UDP at %s; is UDP %d open there and on the way?", remote, remote.Port())}
	case err != nil && ctx.Err() == nil:
		err = &loadtest.Failure{Reason: loadtest.ReasonSocket, Err: err}
	case err != nil:
		err = loadtest.Refine(ctx, err)
	}
	return cookie, err
}

func sessionOptions(ctx context.Context, d *loadtest.Dialed, c *Client, remote netip.AddrPort) SessionOptions {
	o := SessionOptions{
		IPv6: remote.Addr().Is6(), DSCP: uint8(d.Options.DSCP), NoChecksum: d.Options.NoChecksum,
		Limits: c.Welcome().Limits, Remote: remote,
		Rows: d.Env.Recorder.Rows(), Path: d.Target.Path, Probe: d.Target.Probe, Run: d.Open.Run,
	}
	here := hostid.Read().Token(c.Reply.Salt)
	o.Shared = here != 0 && here == c.Reply.Host
	iface, err := calibration.InterfaceTo(ctx, d.Options.LocalAddr(), remote)
	if err != nil {
		d.Log.Debug("Interface of the path not found; its stamps are taken as not calibrated", "err", err)
	}
	o.Local = d.Env.Calibration.Host(iface)
	return o
}

// flow is a test over its session.
type flow struct {
	*Session
	test  Test
	close func()
}

// NewFlow is a test over a session whose remote end somebody else plays; close may be nil.
func NewFlow(s *Session, t Test, close func()) loadtest.Flow {
	return &flow{s, t, close}
}

func (f *flow) Perform(ctx context.Context, r *loadtest.Run) error {
	if f.opts.NoChecksum && f.opts.IPv6 {
		r.Note("no_checksum is for IPv4, and the load server was reached over IPv6: packets have a checksum")
	}
	return f.test.Perform(ctx, f.Session, r)
}

func (f *flow) Close() {
	if f.close != nil {
		f.close()
	}
}

// carrier is the real Carrier: a control connection and a UDP socket.
type carrier struct {
	client  *Client
	session *stream.Session
	remote  netip.AddrPort
	clock   clock.Monitor
	drain   time.Duration
	last    atomic.Uint32 // transfer
	sending atomic.Bool   // a stream without long pauses says more than hellos

	mu      sync.Mutex
	planned time.Time // when all transfers are over
}

// helloEvery is how often this end is heard while it sends no stream, or one that pauses for
// longer. Several may be lost in a row.
const helloEvery = 500 * time.Millisecond

// hello keeps this end heard, and the mapping of a NAT on the way, until ctx ends.
func (c *carrier) hello(ctx context.Context) {
	for ctxtime.For(ctx, helloEvery) {
		if !c.sending.Load() {
			_ = c.session.KeepAlive(c.remote) // the next one may pass
		}
	}
}

// plan notes a transfer that takes so long.
func (c *carrier) plan(length time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.planned = latest(c.planned, time.Now().Add(length))
}

// end is when all transfers are over, as planned; those without intervals are not counted.
func (c *carrier) end() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.planned
}

// Carry is Carrier.
func (c *carrier) Carry(ctx context.Context, d sample.Direction, p stream.Plan, idle time.Duration, progress func(loadtest.Progress), adjustRate stream.Adjuster) (*Carried, error) {
	n := c.last.Add(1)
	if n > math.MaxUint16 {
		return nil, fmt.Errorf("udp: more than %d transfers in a session", math.MaxUint16)
	}
	c.plan(p.Duration())
	x := &carrying{
		carrier: c, adjustRate: adjustRate, tell: progress,
		Start: Start{ID: uint16(n), Direction: d, Plan: p, Idle: c.idle(idle)},
	}
	watched, gone := context.WithCancelCause(ctx)
	x.local.Before = clockNow(c.clock)
	var watching sync.WaitGroup
	watching.Go(func() { x.watch(watched, gone) })
	run := x.forward
	if d == sample.Reverse {
		run = x.reverse
	}
	out, err := run(watched)
	gone(nil)
	watching.Wait()
	if out != nil {
		x.local.After = clockNow(c.clock)
		out.Local = x.local
		out.Local.Largest = max(x.local.Largest, x.local.Before.Bound, x.local.After.Bound)
	}
	if ctx.Err() != nil {
		return out, context.Cause(ctx)
	}
	return out, err
}

// idle is how long nothing may come until what has not come is lost: as configured, or less.
func (c *carrier) idle(asked time.Duration) time.Duration {
	if asked <= 0 {
		return c.drain
	}
	return min(c.drain, max(asked, MinIdle))
}

// carrying is a transfer under way.
type carrying struct {
	*carrier
	Start
	adjustRate stream.Adjuster
	tell       func(loadtest.Progress)
	// over is when all was sent, of a forward transfer, by time.Time.UnixNano; zero: not yet.
	over      atomic.Int64
	reception atomic.Pointer[stream.Reception] // of a reverse transfer
	local     Clocks                           // of the watching goroutine, then of Carry's
}

func (x *carrying) forward(ctx context.Context) (*Carried, error) {
	started, err := x.client.Start(ctx, x.Start)
	if err != nil {
		return nil, failed(sample.Forward, err)
	}
	out := &Carried{Remote: Clocks{Before: started.Clock}}
	x.sending.Store(gap(x.Plan) <= helloEvery)
	out.Sent, err = x.session.Send(ctx, x.ID, x.remote, x.Plan, stream.How{Progress: x.progress, AdjustRate: x.adjustRate})
	x.sending.Store(false)
	if out.Sent != nil {
		out.Packets, out.PayloadBytes = out.Sent.Moved(x.Plan)
	}
	if err != nil {
		return out, &loadtest.Failure{Reason: loadtest.ReasonSocket, Err: err}
	}
	x.over.Store(time.Now().UnixNano())
	if err := x.client.Sent(ctx, x.ID, out.Packets); err != nil {
		return out, failed(sample.Forward, err)
	}
	finished, records, err := x.client.Wait(ctx, x.ID)
	if err != nil {
		return out, failed(sample.Forward, err)
	}
	out.Remote.After, out.Cut, out.Received = finished.Clock, finished.Error, finished.Received
	if out.Received.Packets, err = stream.ParseReceived(records); err != nil {
		return out, failed(sample.Forward, err)
	}
	return out, nil
}

func (x *carrying) reverse(ctx context.Context) (*Carried, error) {
	reception, err := x.session.Expect(x.ID, x.Plan)
	if err != nil {
		return nil, &loadtest.Failure{Reason: loadtest.ReasonSocket, Err: err}
	}
	x.reception.Store(reception)
	// Whatever happens, the reception is finished: nobody else ends it.
	receiving, enough := context.WithCancel(ctx)
	defer enough()
	var finishing sync.WaitGroup
	out := &Carried{}
	finishing.Go(func() {
		out.Received = reception.Finish(receiving, -1, x.Idle)
		enough()
	})
	if x.adjustRate != nil {
		finishing.Go(func() {
			reception.Follow(receiving, func(st stream.Status) {
				// One that is lost is followed by the next.
				_ = x.session.Order(x.ID, x.remote, st.Serial, x.adjustRate(st))
			})
		})
	}
	if err = x.request(ctx, reception, out); err != nil {
		enough()
	}
	finishing.Wait()
	if out.Sent != nil {
		out.Packets, out.PayloadBytes = out.Sent.Moved(x.Plan)
	} else { // what came is the least that was sent
		at := reception.Progress()
		out.Packets, out.PayloadBytes = at.Packets, at.Bytes
	}
	return out, err
}

// request has the load server send, and waits until it says that it has.
func (x *carrying) request(ctx context.Context, to *stream.Reception, out *Carried) error {
	started, err := x.client.Start(ctx, x.Start)
	if err != nil {
		return failed(sample.Reverse, err)
	}
	out.Remote.Before = started.Clock
	finished, records, err := x.client.Wait(ctx, x.ID)
	if err != nil {
		return failed(sample.Reverse, err)
	}
	out.Remote.After, out.Cut = finished.Clock, finished.Error
	sent := finished.Sent
	if sent.Packets, err = stream.ParseSent(records); err != nil {
		return failed(sample.Reverse, err)
	}
	out.Sent = sent
	packets, _ := sent.Moved(x.Plan) // no others can come
	to.SetSent(packets)
	return nil
}

// failed is the error of a transfer. A load server that shuts down has ended it in the middle.
func failed(d sample.Direction, err error) error {
	refusal, refused := errors.AsType[*loadcontrol.Refusal](err)
	err = fmt.Errorf("%s transfer: %w", d, &loadtest.RemoteError{Err: &loadtest.RemoteError{Err: err, Package: "loadcontrol"}, Package: Name})
	if refused && refusal.Reason == loadcontrol.ShuttingDown {
		return &loadtest.Failure{Reason: loadtest.ReasonLost, Err: err}
	}
	return err
}

// progress passes on how far a stream is.
func (x *carrying) progress(p stream.Progress) {
	if x.tell != nil {
		x.tell(loadtest.Progress{Packets: p.Packets, Bytes: p.Bytes, Elapsed: p.Elapsed})
	}
}

// watchEvery is how often a transfer is looked at.
const watchEvery = 200 * time.Millisecond

// watch looks at this host's clock, and for signs of the load server's life, while a transfer
// lasts; without any it is given up.
func (x *carrying) watch(ctx context.Context, gone context.CancelCauseFunc) {
	heard, came := time.Now(), 0
	for ctxtime.For(ctx, watchEvery) {
		x.local.Largest = max(x.local.Largest, clockNow(x.clock).Bound)
		if r := x.reception.Load(); r != nil {
			p := r.Progress()
			if p.Packets > came {
				came, heard = p.Packets, time.Now()
			}
			x.progress(p)
		}
		heard = latest(heard, x.client.Heard())
		if since, limit := x.bears(heard, time.Now()); time.Since(since) > limit {
			gone(&loadtest.Failure{Reason: loadtest.ReasonLost, Err: fmt.Errorf("nothing was heard of the load server at %s for %v", x.remote, limit)})
			return
		}
	}
}

// bears is since when, and for how long, the load server may be silent that was heard last at a
// time. Packets of a stream come as planned: where they do not, the load server has given this
// end up as well. After all streams come its words.
func (x *carrying) bears(heard, now time.Time) (since time.Time, limit time.Duration) {
	planned := x.end()
	switch over := x.over.Load(); {
	case x.Direction == sample.Reverse && now.Before(planned):
		return heard, Outage + gap(x.Plan)
	case x.Direction == sample.Forward && (over == 0 || now.Before(planned)):
		return now, grace
	default:
		return latest(latest(heard, planned), time.Unix(0, over)), x.Idle + grace
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
