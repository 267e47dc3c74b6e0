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

// Test is a load test with streams of UDP packets.
type Test interface {
	// Perform runs the test with calls of Session.Transfer: see loadtest.Flow.
	Perform(ctx context.Context, s *Session, r *loadtest.Run) error
}

// Fitter is an optional interface of a Test that adapts a run to the token's limits. Without it, a run
// that exceeds the token's bytes of the day is refused.
type Fitter interface {
	// Fit gets the token's limits and the bytes of IP and UDP headers of a packet, before the session
	// is opened: after Bytes and before Perform. It returns the most IP bytes that the run will send,
	// which are announced instead of Bytes; 0 if nothing fits, and the load server may then
	// refuse.
	Fit(limits loadcontrol.Limits, overhead int) int64
}

// NewLocal returns the local half of the traffic for one test.
func NewLocal(t Test) loadtest.Traffic { return local{t} }

type local struct{ test Test }

func (local) Counters(s *metric.Scope, directions []sample.Direction) {
	for _, d := range directions {
		s.Series(metric.KernelChecksumErrors, d.String())
	}
}

// Connect opens a session over the control connection and its UDP socket, and proves the address of
// the socket.
func (n local) Connect(ctx context.Context, d *loadtest.ControlConn) (loadtest.Flow, error) {
	o, where := d.Open, d.Client.Remote()
	if f, ok := n.test.(Fitter); ok {
		if fits := f.Fit(d.Client.Welcome().Limits, Overhead(where.Addr().Is6())); fits > 0 {
			o.Bytes = min(o.Bytes, fits)
		}
	}
	o.Bytes += d.Beside
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
			d.Log.Error("Receive of test packets failed", "run", o.Run, "err", err)
		}
	})
	s := endpoint.Join(client.Reply.Session)
	f.close = func() {
		s.Leave()
		stop()
		served.Wait()
	}
	d.Phase("proving the address for test packets")
	cookie, err := proveAddress(ctx, s, remote)
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

// proveAddress obtains the cookie that proves the local address.
func proveAddress(ctx context.Context, s *stream.Session, remote netip.AddrPort) (cookie []byte, err error) {
	cookie, err = s.Hello(ctx, remote)
	switch {
	case errors.Is(err, stream.ErrNoReply):
		err = &loadtest.Failure{Reason: loadtest.ReasonNoTraffic, Err: fmt.Errorf("no reply to UDP at %s; is UDP %d open there and on the path?", remote, remote.Port())}
	case err != nil && ctx.Err() == nil:
		err = &loadtest.Failure{Reason: loadtest.ReasonSocket, Err: err}
	case err != nil:
		err = loadtest.WithCause(ctx, err)
	}
	return cookie, err
}

func sessionOptions(ctx context.Context, d *loadtest.ControlConn, c *Client, remote netip.AddrPort) SessionOptions {
	o := SessionOptions{
		IPv6: remote.Addr().Is6(), DSCP: uint8(d.Options.DSCP), NoChecksum: !d.Options.Checksum,
		Limits: c.Welcome().Limits, Remote: remote,
		Loaded: d.Loaded, Rows: d.Env.Recorder.Rows(), Path: d.Target.Path, Probe: d.Target.Probe, Run: d.Open.Run,
	}
	here := hostid.Read().Token(c.Reply.Salt)
	o.SharedClock = here != 0 && here == c.Reply.Host
	iface, err := calibration.InterfaceTo(ctx, d.Options.LocalAddr(), remote)
	if err != nil {
		d.Log.Debug("Interface of the path not found; its timestamps count as not calibrated", "err", err)
	}
	o.Local = d.Env.Calibration.Host(iface)
	return o
}

// flow is a test with its session.
type flow struct {
	*Session
	test  Test
	close func()
}

// NewFlow returns a test with a session whose remote end is simulated; close may be nil.
func NewFlow(s *Session, t Test, close func()) loadtest.Flow {
	return &flow{s, t, close}
}

func (f *flow) Perform(ctx context.Context, r *loadtest.Run) error {
	if f.opts.NoChecksum && f.opts.IPv6 {
		r.Note("checksum: false is for IPv4, and the load server was reached over IPv6: packets have a checksum")
	}
	return f.test.Perform(ctx, f.Session, r)
}

func (f *flow) Close() {
	if f.close != nil {
		f.close()
	}
}

// carrier is the Carrier of a control connection and a UDP socket.
type carrier struct {
	client  *Client
	session *stream.Session
	remote  netip.AddrPort
	clock   clock.Monitor
	drain   time.Duration
	last    atomic.Uint32 // ID of the last transfer
	sending atomic.Bool   // a stream without long pauses replaces the hello packets

	mu      sync.Mutex
	planned time.Time // planned end of all transfers
}

// helloEvery is the interval of hello packets while this end sends no stream, or one with longer
// pauses. The timeouts of the load server allow for lost ones.
const helloEvery = 500 * time.Millisecond

// hello sends hello packets, which also preserve the mapping of a NAT, until ctx ends.
func (c *carrier) hello(ctx context.Context) {
	for ctxtime.Sleep(ctx, helloEvery) {
		if !c.sending.Load() {
			_ = c.session.KeepAlive(c.remote) // on an error the next one may succeed
		}
	}
}

// plan adds a transfer of this length.
func (c *carrier) plan(length time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.planned = latest(c.planned, time.Now().Add(length))
}

// end returns the planned end of all transfers; those without intervals are not included.
func (c *carrier) end() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.planned
}

// Transfer implements Carrier.
func (c *carrier) Transfer(ctx context.Context, d sample.Direction, p stream.Plan, idle time.Duration, progress func(loadtest.Progress), adjustRate stream.Adjuster) (*CarrierResult, error) {
	n := c.last.Add(1)
	if n > math.MaxUint16 {
		return nil, fmt.Errorf("udp: more than %d transfers in a session", math.MaxUint16)
	}
	c.plan(p.Duration())
	x := &transferring{
		carrier: c, adjustRate: adjustRate, onProgress: progress,
		Start: Start{ID: uint16(n), Direction: d, Plan: p, Idle: c.idle(idle)},
	}
	transferring, ended := context.WithCancelCause(ctx)
	x.local.Before = clockNow(c.clock)
	var watching sync.WaitGroup
	watching.Go(func() { x.watch(transferring, ended) })
	run := x.forward
	if d == sample.Reverse {
		run = x.reverse
	}
	out, err := run(transferring)
	ended(nil)
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

// idle returns the idle timeout after the last packet: the configured one, or less.
func (c *carrier) idle(requested time.Duration) time.Duration {
	if requested <= 0 {
		return c.drain
	}
	return min(c.drain, max(requested, MinIdle))
}

// transferring is a transfer in progress.
type transferring struct {
	*carrier
	Start
	adjustRate stream.Adjuster
	onProgress func(loadtest.Progress)
	// over is the end of sending of a forward transfer, as time.Time.UnixNano; zero: not yet.
	over      atomic.Int64
	reception atomic.Pointer[stream.Reception] // of a reverse transfer
	local     Clocks                           // used by watch, then by Transfer
}

func (x *transferring) forward(ctx context.Context) (*CarrierResult, error) {
	started, err := x.client.Start(ctx, x.Start)
	if err != nil {
		return nil, failed(sample.Forward, err)
	}
	out := &CarrierResult{Remote: Clocks{Before: started.Clock}}
	x.sending.Store(gap(x.Plan) <= helloEvery)
	out.Sent, err = x.session.Send(ctx, x.ID, x.remote, x.Plan, stream.SendOptions{Progress: x.progress, AdjustRate: x.adjustRate})
	x.sending.Store(false)
	if out.Sent != nil {
		out.Packets, out.PayloadBytes = out.Sent.Totals(x.Plan)
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

func (x *transferring) reverse(ctx context.Context) (*CarrierResult, error) {
	reception, err := x.session.Expect(x.ID, x.Plan)
	if err != nil {
		return nil, &loadtest.Failure{Reason: loadtest.ReasonSocket, Err: err}
	}
	x.reception.Store(reception)
	// The goroutine finishes the reception in any case.
	receiving, enough := context.WithCancel(ctx)
	defer enough()
	var finishing sync.WaitGroup
	out := &CarrierResult{}
	finishing.Go(func() {
		out.Received = reception.Finish(receiving, -1, x.Idle)
		enough()
	})
	if x.adjustRate != nil {
		finishing.Go(func() {
			reception.Follow(receiving, func(st stream.Status) {
				// The next order replaces a lost one.
				_ = x.session.Order(x.ID, x.remote, st.Serial, x.adjustRate(st))
			})
		})
	}
	if err = x.request(ctx, reception, out); err != nil {
		enough()
	}
	finishing.Wait()
	if out.Sent != nil {
		out.Packets, out.PayloadBytes = out.Sent.Totals(x.Plan)
	} else { // the packets received are a lower bound of those sent
		at := reception.Progress()
		out.Packets, out.PayloadBytes = at.Packets, at.Bytes
	}
	return out, err
}

// request makes the load server send, and waits for the end of the stream.
func (x *transferring) request(ctx context.Context, to *stream.Reception, out *CarrierResult) error {
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
	packets, _ := sent.Totals(x.Plan) // no other packets can arrive
	to.SetSent(packets)
	return nil
}

// failed is the error of a transfer. A load server that shuts down has ended it.
func failed(d sample.Direction, err error) error {
	refusal, refused := errors.AsType[*loadcontrol.Refusal](err)
	err = fmt.Errorf("%s transfer: %w", d, &loadtest.RemoteError{Err: &loadtest.RemoteError{Err: err, Package: "loadcontrol"}, Package: Name})
	if refused && refusal.Reason == loadcontrol.ShuttingDown {
		return &loadtest.Failure{Reason: loadtest.ReasonLost, Err: err}
	}
	return err
}

// progress forwards the progress of a stream.
func (x *transferring) progress(p stream.Progress) {
	if x.onProgress != nil {
		x.onProgress(loadtest.Progress{Packets: p.Packets, Bytes: p.Bytes, Elapsed: p.Elapsed})
	}
}

// watchEvery is the interval of watch.
const watchEvery = 200 * time.Millisecond

// watch samples the clock error bound of this host during a transfer, and ends the transfer when the
// load server reaches its idle timeout.
func (x *transferring) watch(ctx context.Context, ended context.CancelCauseFunc) {
	lastReceived, received := time.Now(), 0
	for ctxtime.Sleep(ctx, watchEvery) {
		x.local.Largest = max(x.local.Largest, clockNow(x.clock).Bound)
		if r := x.reception.Load(); r != nil {
			p := r.Progress()
			if p.Packets > received {
				received, lastReceived = p.Packets, time.Now()
			}
			x.progress(p)
		}
		lastReceived = latest(lastReceived, x.client.LastReceived())
		if since, limit := x.remoteTimeout(lastReceived, time.Now()); time.Since(since) > limit {
			ended(&loadtest.Failure{Reason: loadtest.ReasonLost, Err: fmt.Errorf("nothing was received from the load server at %s for %v", x.remote, limit)})
			return
		}
	}
}

// remoteTimeout returns the begin and the length of the load server's idle timeout, whose last packet arrived at
// lastReceived. Packets of a reverse stream must arrive as planned, since the load server pauses it without
// hello packets from this end. After all streams control messages must arrive.
func (x *transferring) remoteTimeout(lastReceived, now time.Time) (since time.Time, limit time.Duration) {
	planned := x.end()
	switch over := x.over.Load(); {
	case x.Direction == sample.Reverse && now.Before(planned):
		return lastReceived, Outage + gap(x.Plan)
	case x.Direction == sample.Forward && (over == 0 || now.Before(planned)):
		return now, grace
	default:
		return latest(latest(lastReceived, planned), time.Unix(0, over)), x.Idle + grace
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
