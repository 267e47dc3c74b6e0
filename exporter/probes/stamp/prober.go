package stamp

import (
	"context"
	"fmt"
	"math"
	"net/netip"
	"sync/atomic"
	"time"

	"oneway.example/exporter/core/ctxtime"
	"oneway.example/exporter/core/lightreason"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/net/sched"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/calibration"
	"oneway.example/exporter/probe/target"
	"oneway.example/exporter/probes/stamp/ledger"
)

// Prober measures one path.
type Prober struct {
	hubs *Type
	env  probe.Env
	path probe.Target
	peer *target.Target
	opts *Options // shared with other paths

	// OnPacket, if set before Run or Measure, is called for every answered packet with the delays of both
	// directions, as the estimators receive them. It runs with locks held: it must return quickly and must not call
	// back.
	OnPacket func(p sample.Packet, forward, reverse sample.Delay)

	session atomic.Pointer[session] // nil while the peer has no address
	serial  atomic.Uint64           // of the newest session
}

// Address is the peer's current address; the zero Addr: unknown.
func (p *Prober) Address() netip.Addr {
	if s := p.session.Load(); s != nil {
		return s.peer.Addr()
	}
	return netip.Addr{}
}

// Run measures until ctx ends. A name that does not resolve is retried.
func (p *Prober) Run(ctx context.Context) error {
	end, err := p.Start(ctx)
	if end != nil {
		<-ctx.Done()
		end()
	}
	return err
}

// Start is Run without a goroutine that waits.
func (p *Prober) Start(ctx context.Context) (end func(), err error) {
	series := seriesOf(p.env.Scope(p.path))
	failed := func(why lightreason.Reason) {
		if why == lightreason.Unresolved {
			series.scope.Series(metric.ResolveFailures).Add(1)
		}
		if p.session.Load() == nil {
			series.scope.Set(metric.ProbeUp, 0)
		}
	}
	stop := p.peer.Follow(ctx, failed, func(ctx context.Context, peer netip.AddrPort) (target.Measurement, error) {
		series.renew() // a session counts from zero
		return p.open(ctx, peer, series)
	})
	if stop == nil {
		series.scope.Close()
		return nil, nil
	}
	return func() {
		stop()
		series.scope.Close()
	}, nil
}

// open begins a session with the peer at one address, when the Type's start turn allows it.
func (p *Prober) open(ctx context.Context, peer netip.AddrPort, series *series) (m target.Measurement, err error) {
	if !ctxtime.Sleep(ctx, p.hubs.startDelay(sched.Now())) {
		return m, ctx.Err()
	}
	s, remove, err := p.begin(ctx, peer, p.opts, series, func(s *session) { s.target, s.serial = p.peer, p.serial.Add(1) })
	if err != nil {
		return m, err
	}
	p.session.Store(s)
	// A foreign reflector treats a statistics query as a test packet: the query must not take a number between two
	// measured packets.
	s.awaitOpening(ctx, 5*pollInterval) // ticked rarely: thousands of sessions may wait
	unschedule := p.env.Pacer.Add(s, s.plan.Next(sched.Now()))
	return target.Measurement{Renew: func() { p.renew(ctx, s) }, End: func() {
		unschedule()
		s.drain(ctx)
		p.session.Store(nil)
		remove()
	}, Replies: s.replies, Replaced: s.replaced}, nil
}

// renew reads the keys, and the calibration of the interface that s sends from: its route may have changed.
func (p *Prober) renew(ctx context.Context, s *session) {
	if p.opts.KeyFile != "" {
		keys, err := loadKeys(p.opts.KeyFile)
		if err == nil {
			s.useKeys(keys)
		}
		p.peer.LogFault(unread, err)
	}
	p.calibrate(ctx, s)
}

// unread: the key file is not readable.
const unread target.Fault = "the key file cannot be read; the previous keys stay in use"

// begin makes a session on the hub for the peer's address and calls change before it starts; end ends it.
func (p *Prober) begin(ctx context.Context, peer netip.AddrPort, o *Options, series *series, change func(*session)) (s *session, end func(), err error) {
	key := hubKey{local: netip.AddrPortFrom(o.From(peer.Addr()), uint16(o.LocalPort)), hardware: o.Hardware, device: o.Interface}
	h, err := p.hubs.acquire(key, p.env)
	if err != nil {
		return nil, nil, err
	}
	if s, err = newSession(h, peer, o, p.env.Clock, series); err == nil {
		s.estimator.observe = p.OnPacket
		s.estimator.recordTo(p.env.Recorder, &p.path)
		change(s)
		err = h.add(s)
	}
	if err != nil {
		p.hubs.release(h)
		return nil, nil, err
	}
	p.calibrate(ctx, s)
	return s, func() { p.hubs.leave(s) }, nil
}

// calibrate looks up the calibration of the interface that s sends over; without one, timestamps are not
// calibrated.
func (p *Prober) calibrate(ctx context.Context, s *session) {
	iface, err := p.opts.Hardware, error(nil)
	if iface == "" {
		iface, err = calibration.InterfaceVia(ctx, p.opts.Interface, p.opts.From(s.peer.Addr()), s.peer)
	}
	if err != nil {
		p.peer.Log().Debug("Interface of the path not found; its timestamps are not calibrated", "err", err)
	}
	local := p.env.Calibration.Host(iface)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.estimator.ends.Local = local
}

var _ sched.Task = (*session)(nil)

// Measure sends count test packets (0: until ctx ends), waits for the last replies and the remote end's final
// counts, and reports. Twice a second it calls progress with the current state.
func (p *Prober) Measure(ctx context.Context, count uint64, progress func(Report)) (Report, error) {
	series := seriesOf(p.env.Scope(p.path))
	defer series.scope.Close()
	found, err := p.measure(ctx, context.Background(), count, series, progress)
	if err != nil {
		return Report{}, err
	}
	r := reportOf(found)
	if found.RoundTripsReceived == 0 && found.AnsweredLate == 0 {
		what := ""
		if r.Failure, _ = found.failure(); r.Failure == lightreason.Discarded {
			what = " that is valid"
		}
		return r, fmt.Errorf("%w%s in %v: %s", probe.ErrNoReply, what, p.opts.LossTimeout, found.silence())
	}
	return r, nil
}

// measure sends until sending ends, waits for the last replies until ctx ends, and leaves the final state in the series.
func (p *Prober) measure(sending, ctx context.Context, count uint64, series *series, progress func(Report)) (found snapshot, err error) {
	peer, err := p.peer.Resolve(sending, netip.AddrPort{})
	if err != nil {
		return found, err
	}
	opts := *p.opts
	opts.Window = math.MaxInt64 // one window: the whole run
	s, end, err := p.begin(sending, peer, &opts, series, func(s *session) { s.endAfter(count); s.estimator.collect = newCollector(&opts) })
	if err != nil {
		return found, err
	}
	defer end()
	s.awaitOpening(sending, pollInterval)
	remove := p.env.Pacer.Add(s, s.plan.Next(sched.Now()))
	watch(sending, s.full, func() { progress(reportOf(s.partial(s.estimator.soFar))) })
	remove()
	s.settle(ctx, opts.LossTimeout)
	return s.partial(s.estimator.window), nil
}

// progressInterval is the interval of progress reports.
const progressInterval = 500 * time.Millisecond

// watch calls f periodically until done is closed or ctx ends.
func watch(ctx context.Context, done <-chan struct{}, f func()) {
	ticker := time.NewTicker(progressInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-done:
			return
		case <-ticker.C:
			f()
		}
	}
}

// partial is the state of the session, with the window that has not ended, as window returns it.
func (s *session) partial(window func(ledger.Known) *window) snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.snapshot()
	v.window = window(s.account.Known())
	return v
}

// awaitOpening waits until our reflector has replied to the opening query, so that its counts include the first
// test packet.
func (s *session) awaitOpening(ctx context.Context, every time.Duration) {
	s.poll(ctx, every, ledger.OpenTries*ledger.StatsQueryInterval, s.account.Opened)
}

// mostDrain limits the time without test packets between two addresses of a peer.
const mostDrain = 5 * time.Second

// drain waits for the outcomes of the packets that were sent to a former address, while it replies: without them these packets stay
// undecided. A silent address must not delay the next one. The end of the path waits for nothing, since its series end with it.
func (s *session) drain(ctx context.Context) {
	if ctx.Err() != nil || !s.replies() {
		return
	}
	decided := func() bool { return s.account.Awaited() == 0 }
	s.poll(ctx, pollInterval, min(s.opts.LossTimeout+pollInterval, mostDrain), decided)
	s.mu.Lock()
	if decided() {
		s.account.Finish()
	}
	s.mu.Unlock()
	s.poll(ctx, pollInterval, 2*ledger.StatsQueryInterval, s.account.Finished)
}

// settle waits for the last replies and then for the remote end's final counts.
func (s *session) settle(ctx context.Context, wait time.Duration) {
	s.poll(ctx, pollInterval, 2*wait+ledger.StatsQueryInterval, func() bool { return s.account.Outstanding() == 0 })
	s.mu.Lock()
	s.account.Finish()
	s.mu.Unlock()
	s.poll(ctx, pollInterval, min(8*ledger.StatsQueryInterval, wait+ledger.StatsQueryInterval), s.account.Finished)
	// A missing reply is awaited since a later one arrived, which is not older than the last request.
	s.poll(ctx, pollInterval, wait+ledger.StatsQueryInterval, s.account.Settled)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.account.Flush(math.MaxInt64)
}

// pollInterval is how often a terminal's run checks whether it is complete.
const pollInterval = 10 * time.Millisecond

// poll ticks the session until done returns true, for at most the given time.
func (s *session) poll(ctx context.Context, every, most time.Duration, done func() bool) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for end := sched.Now() + most; sched.Now() < end; {
		now := sched.Now()
		s.tick(now, s.hub.Load().upTo(now))
		s.mu.Lock()
		finished := done()
		s.mu.Unlock()
		if finished {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// RecordsPackets implements probe.IncidentSource.
func (*Prober) RecordsPackets() {}

var (
	_ probe.Prober         = (*Prober)(nil)
	_ probe.Starter        = (*Prober)(nil)
	_ probe.IncidentSource = (*Prober)(nil)
	_ probe.Terminal       = (*Type)(nil)
)
