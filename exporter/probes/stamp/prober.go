package stamp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/netip"
	"sync/atomic"
	"time"

	"oneway.example/exporter/calibration"
	"oneway.example/exporter/ctxtime"
	"oneway.example/exporter/metric"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/sample"
	"oneway.example/exporter/sched"
	"oneway.example/exporter/target"
)

// Prober measures one path.
type Prober struct {
	hubs *Type
	env  probe.Env
	path probe.Target
	peer *target.Target
	opts Options
	log  *slog.Logger

	// OnPacket, if set before Run or Measure, is given every answered packet with
	// the delays of both directions, as the estimators get them. It is called
	// with locks held: it must be quick and must not call back.
	OnPacket func(p sample.Packet, forward, reverse sample.Delay)

	session atomic.Pointer[session] // nil while the peer has no address
}

// Run measures until ctx ends. A name that does not resolve is tried again.
func (p *Prober) Run(ctx context.Context) error {
	series := newSeries(p.env.Sink, p.path.Path, p.path.Probe)
	defer func() { series.scope.Close() }()
	failures := p.env.Sink.Series(metric.ResolveFailures, p.path.Path, p.path.Probe)
	defer failures.Close()
	p.peer.Follow(ctx, func() { failures.Add(1) }, func(ctx context.Context, peer netip.AddrPort) (func(context.Context), error) {
		series = series.anew() // a session counts from zero
		return p.open(ctx, peer, series)
	})
	return nil
}

// open begins a session with the peer at one address, when its turn has come.
func (p *Prober) open(ctx context.Context, peer netip.AddrPort, series *series) (measure func(context.Context), err error) {
	if !ctxtime.For(ctx, p.hubs.turn(sched.Now())) {
		return nil, ctx.Err()
	}
	s, end, err := p.begin(ctx, peer, p.opts, series, func(s *session) { s.tell = p.peer.Tell })
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) {
		defer end()
		p.session.Store(s)
		defer p.session.Store(nil)
		// To a foreign reflector a query is a test packet like any other: it must
		// not take a number between two of those that are measured.
		s.awaitOpening(ctx, 5*pollInterval) // thousands of sessions may wait
		remove := p.env.Pacer.Add(s, s.plan.Next(sched.Now()))
		defer remove()
		for ctxtime.For(ctx, p.opts.ResolveInterval) {
			if p.opts.KeyFile != "" {
				keys, err := loadKeys(p.opts.KeyFile)
				if err == nil {
					s.useKeys(keys)
				}
				p.peer.Tell(unread, err)
			}
			p.calibrate(ctx, s) // its route may have changed
		}
	}, nil
}

// unread is that the key file gives no key.
const unread target.Fault = "the key file cannot be read, the keys before stay"

// begin makes a session on the hub that suits the peer's address, and changes it before it begins; end ends it.
func (p *Prober) begin(ctx context.Context, peer netip.AddrPort, o Options, series *series, change func(*session)) (s *session, end func(), err error) {
	key := hubKey{netip.AddrPortFrom(o.From(peer.Addr()), 0), o.Hardware, o.Interface}
	h, err := p.hubs.acquire(key, p.env)
	if err != nil {
		return nil, nil, err
	}
	if s, err = newSession(h, peer, &o, p.env.Clock, series); err == nil {
		s.estimator.observe = p.OnPacket
		s.estimator.recordTo(p.env.Recorder, p.path)
		change(s)
		err = h.add(s)
	}
	if err != nil {
		p.hubs.release(key)
		return nil, nil, err
	}
	p.calibrate(ctx, s)
	return s, func() {
		h.remove(s)
		s.end()
		p.hubs.release(key)
	}, nil
}

// calibrate looks up what is known of the stamps of the interface that s sends over. Where
// that cannot be told, nothing is.
func (p *Prober) calibrate(ctx context.Context, s *session) {
	iface, err := p.opts.Hardware, error(nil)
	if iface == "" {
		iface, err = calibration.InterfaceBy(ctx, p.opts.Interface, p.opts.From(s.peer.Addr()), s.peer)
	}
	if err != nil {
		p.log.Debug("Interface of the path not found; its stamps are taken as not calibrated", "err", err)
	}
	local := p.env.Calibration.Host(iface)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.estimator.ends.Local = local
}

var _ sched.Task = (*session)(nil)

// ErrNoReply says that the peer answered not one test packet.
var ErrNoReply = errors.New("no reply")

// Measure sends count test packets (0: until ctx ends), waits for the last
// replies, has the remote end settle its counts, and reports. While it runs,
// progress is called twice a second with the state so far.
func (p *Prober) Measure(ctx context.Context, count uint64, progress func(Report)) (Report, error) {
	peer, err := p.peer.Resolve(ctx, netip.AddrPort{})
	if err != nil {
		return Report{}, err
	}
	series := newSeries(p.env.Sink, p.path.Path, p.path.Probe)
	defer series.scope.Close()
	opts := p.opts
	opts.Window = math.MaxInt64 // one window: the whole run
	s, end, err := p.begin(ctx, peer, opts, series, func(s *session) { s.limit, s.estimator.collect = count, &collector{} })
	if err != nil {
		return Report{}, err
	}
	defer end()
	s.awaitOpening(ctx, pollInterval)
	remove := p.env.Pacer.Add(s, s.plan.Next(sched.Now()))
	watch(ctx, s.full, func() { progress(reportOf(s.partial())) })
	remove()
	s.settle(opts.LossTimeout)
	found := s.partial()
	r := reportOf(found)
	if found.roundTripsReceived == 0 && found.answeredLate == 0 {
		return r, fmt.Errorf("udp %s: %w in %v", peer, ErrNoReply, opts.LossTimeout)
	}
	return r, nil
}

// progressInterval is how often a run tells how far it is.
const progressInterval = 500 * time.Millisecond

// watch calls f now and then until done or ctx ends.
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

// partial is the state of the session with the window that has not ended.
func (s *session) partial() snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.snapshot()
	v.window = s.estimator.window(s.account.known())
	return v
}

// awaitOpening gives our reflector the time to say so before the first test
// packet, so that not one packet of the run is outside its count.
func (s *session) awaitOpening(ctx context.Context, every time.Duration) {
	s.poll(ctx, every, openTries*statsQueryInterval, func() bool { return s.account.statsQuery.opened || s.account.statsQuery.foreign })
}

// settle waits for the last replies and then for the remote end's final counts.
func (s *session) settle(wait time.Duration) {
	ctx := context.Background()
	s.poll(ctx, pollInterval, 2*wait+statsQueryInterval, func() bool { return s.account.outstandingPackets.outstanding() == 0 })
	s.mu.Lock()
	s.account.statsQuery.finish = s.account.kind != remoteUnknown
	s.account.statsQuery.foreign = s.account.statsQuery.finish && s.account.kind != remoteOurs
	s.mu.Unlock()
	s.poll(ctx, pollInterval, min(8*statsQueryInterval, wait+statsQueryInterval), func() bool { return !s.account.statsQuery.finish || s.account.statsQuery.finished })
	// A missing answer is waited for since a later one came, which is no older
	// than the last request.
	s.poll(ctx, pollInterval, wait+statsQueryInterval, func() bool { return s.account.kind != remoteStateful || s.account.guessable() })
	s.mu.Lock()
	defer s.mu.Unlock()
	s.estimator.flush(math.MaxInt64)
}

// pollInterval is how often a terminal's run looks whether its end has come.
const pollInterval = 10 * time.Millisecond

// poll ticks the session until done, at most for the given time.
func (s *session) poll(ctx context.Context, every, most time.Duration, done func() bool) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for end := sched.Now() + most; sched.Now() < end; {
		s.tick(sched.Now())
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

var _ probe.Prober = (*Prober)(nil)
