package udptraffic

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/core/errtext"
	"oneway.example/exporter/core/memlimit"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadsession"
	"oneway.example/exporter/load/loadtest"
	"oneway.example/exporter/load/stream"
	"oneway.example/exporter/load/traffic"
	"oneway.example/exporter/net/tstamp"
	"oneway.example/exporter/probe/endclock"
)

// Local is the local half of the traffic: streams of UDP packets.
type Local struct{}

// Counters returns the counters of damaged packets.
func (Local) Counters() []loadtest.Counter {
	return []loadtest.Counter{{Desc: metric.KernelChecksumErrors}, {Desc: metric.RunPacketsCorrupted}}
}

// Connect opens a session over the control connection and its UDP socket, and proves the address of
// the socket.
func (Local) Connect(ctx context.Context, d *loadsession.Conn) (*Session, error) {
	client, err := Open(ctx, d.Client, d.Open())
	if err != nil {
		return nil, d.Failed(ctx, err)
	}
	where := d.Client.Remote()
	remote := netip.AddrPortFrom(where.Addr(), client.Reply.Port)
	endpoint, err := stream.Open(stream.Options{Local: netip.AddrPortFrom(d.Options.From(remote.Addr()), 0), Log: d.Log})
	if err != nil {
		return nil, &loadtest.Failure{Reason: runreason.Socket, Err: err}
	}
	running, stop := context.WithCancel(context.Background())
	var served sync.WaitGroup
	served.Go(func() {
		if err := endpoint.Run(running); err != nil {
			d.Log.Error("Receive of test packets failed", "run", d.Run, "err", err)
		}
	})
	joined := endpoint.Join(client.Reply.Session)
	client.RejectedBy(joined.Rejected)
	leave := func() {
		joined.Leave()
		stop()
		served.Wait()
	}
	d.Phase("verifying this host's address")
	remote, cookie, err := proveAddress(ctx, joined, remote, where)
	if err == nil {
		if err = client.Prove(ctx, cookie); err != nil {
			err = d.Failed(ctx, err)
		}
	}
	if err != nil {
		leave()
		return nil, err
	}
	c := &carrier{client: client, session: joined, remote: remote, clock: d.Env.Clock, drain: d.Options.DrainTimeout}
	served.Go(func() { c.hello(running) })
	s := NewSession(c, sessionOptions(ctx, d, client, remote))
	s.leave, s.live = leave, c
	return s, nil
}

// proveAddress obtains the cookie that proves the local address, and the address at which the load server replied. Its UDP port has the
// number of its TCP port: if that is not the port of the control connection, a NAT forwards that, and perhaps the same UDP port.
func proveAddress(ctx context.Context, s *stream.Session, told, control netip.AddrPort) (remote netip.AddrPort, cookie []byte, err error) {
	to := []netip.AddrPort{told}
	if control.Port() != told.Port() {
		to = append(to, control)
	}
	remote, cookie, err = s.HelloAny(ctx, to...)
	switch {
	case errors.Is(err, stream.ErrNoReply):
		err = &loadtest.Failure{Reason: runreason.NoTraffic, Err: noReply(err, told, control)}
	case err != nil && ctx.Err() == nil:
		err = &loadtest.Failure{Reason: runreason.Socket, Err: err}
	case err != nil:
		err = loadtest.WithCause(ctx, err)
	}
	return remote, cookie, err
}

// noReply is why no UDP packet of the load server arrived: an ICMP message, a refusal of this host's kernel, or what remains.
func noReply(err error, told, control netip.AddrPort) error {
	why := ""
	if rejected, ok := errors.AsType[tstamp.ICMPError](err); ok {
		why = ", " + rejected.Error()
	} else if errors.Is(err, syscall.EPERM) {
		return fmt.Errorf("no reply to UDP at %s: this host did not send all packets: %w: %s", told, syscall.EPERM, errtext.ForbiddenBy)
	} else if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return fmt.Errorf("no reply to UDP at %s: this host did not send all packets: %w", told, errno)
	}
	if control.Port() != told.Port() {
		return fmt.Errorf("no reply to UDP at %s or %s%s; is UDP open there and on the path? A NAT forwards TCP %d to port %d of the load server: UDP %d must be forwarded to its UDP %d as well", told, control, why, control.Port(), told.Port(), control.Port(), told.Port())
	}
	return fmt.Errorf("no reply to UDP at %s%s; is UDP %d open there and on the path?", told, why, told.Port())
}

func sessionOptions(ctx context.Context, d *loadsession.Conn, c *Client, remote netip.AddrPort) SessionOptions {
	return SessionOptions{
		IPv6: remote.Addr().Is6(), DSCP: uint8(d.Options.DSCP), NoChecksum: !d.Options.Checksum,
		Limits: c.Welcome().Limits, Remote: remote, Memory: memlimit.Process(),
		Loaded: d.Loaded, Progress: d.Progress, Clocks: d.Clocks, Rows: d.Env.Recorder.Rows(), Path: d.Target.Path, Probe: d.Target.Probe, Run: d.Run,
		SharedClock: c.Reply.Here(), Local: endclock.LocalStamps(ctx, d.Env.Calibration, d.Options.LocalAddr(), remote, d.Log),
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
	sending atomic.Bool   // a stream that replaces the hello packets

	mu       sync.Mutex
	planned  time.Time        // planned end of all transfers
	recovery traffic.Recovery // of the control connection
	held     traffic.QueueDelay
}

// recover returns until when TCP may be silent; the last packet is so old.
func (c *carrier) recover(now time.Time, ago time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.recovery.Observe(now, ago)
}

// heldBack returns how long the path holds packets back, where a message is due since a time. It sends a hello packet every so often, whose
// reply shows that.
func (c *carrier) heldBack(now, due time.Time, every time.Duration) time.Duration {
	var answered time.Time
	if ago, ok := c.session.LastAnswered(); ok {
		answered = now.Add(-ago)
	}
	c.mu.Lock()
	held, ask := c.held.Observe(now, due, answered, every)
	c.mu.Unlock()
	if ask {
		_ = c.session.Ask(c.remote) // on an error the next one may succeed
	}
	return held
}

// hello sends hello packets while no stream replaces them, until ctx ends.
func (c *carrier) hello(ctx context.Context) {
	greet(ctx, c.session, func() (netip.AddrPort, bool) { return c.remote, !c.sending.Load() })
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
		return nil, fmt.Errorf("udptraffic: more than %d transfers in a session", math.MaxUint16)
	}
	c.plan(p.Duration())
	x := &transferring{
		carrier: c, adjustRate: adjustRate, onProgress: progress, begun: time.Now(),
		Start: Start{ID: uint16(n), Direction: d, Plan: p, Idle: c.idle(idle)},
	}
	// The end of ctx ends the sending; its records are awaited in transferring.
	transferring, ended := context.WithCancelCause(context.WithoutCancel(ctx))
	sending, stop := context.WithCancelCause(transferring)
	_, clockEnd := endclock.Watch(c.clock)
	var watching sync.WaitGroup
	watching.Go(func() { x.stop(ctx, transferring, stop, ended) })
	watching.Go(func() { x.watch(transferring, ended) })
	run := x.forward
	if d == sample.Reverse {
		run = x.reverse
	}
	out, err := run(sending, transferring)
	ended(nil)
	watching.Wait()
	if local := clockEnd(); out != nil {
		out.Local = local
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
