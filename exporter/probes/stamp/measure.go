package stamp

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"time"

	"oneway.example/exporter/probe"
	"oneway.example/exporter/sched"
)

// ErrNoAnswer says that the peer answered not one test packet.
var ErrNoAnswer = errors.New("no answer")

// Measure sends count test packets (0: until ctx ends), waits for the last
// answers, has the far end settle its counts, and reports. While it runs,
// progress is called twice a second with the state so far.
func (p *Prober) Measure(ctx context.Context, count uint64, progress func(Report)) (Report, error) {
	peer, err := p.resolve(ctx, netip.AddrPort{})
	if err != nil {
		return Report{}, err
	}
	key := hubKey{p.local(peer), p.opts.Hardware}
	h, err := p.hubs.acquire(key, p.env)
	if err != nil {
		return Report{}, err
	}
	defer p.hubs.release(key)
	series := newSeries(p.env.Sink, p.target.Path, p.target.Probe)
	defer series.close()
	opts := p.opts
	opts.Window = math.MaxInt64 // one window: the whole run
	s, err := newSession(h, peer, &opts, p.env.Clock, series)
	if err != nil {
		return Report{}, err
	}
	s.limit = count
	s.observe = p.OnPacket
	p.calibrate(ctx, s)
	s.collect = &collector{}
	if err := h.add(s); err != nil {
		return Report{}, err
	}
	defer func() { h.remove(s); s.end() }()
	s.awaitOpening(ctx, pollInterval)
	remove := p.env.Pacer.Add(s, s.plan.Next(sched.Now()))
	watch(ctx, s.full, func() { progress(s.report()) })
	remove()
	s.settle(opts.LossTimeout)
	r := s.report()
	if r.RoundTrip.Received == 0 && s.roundTrips.answeredLate == 0 {
		return r, fmt.Errorf("udp %s: %w in %v", peer, ErrNoAnswer, opts.LossTimeout)
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

// awaitOpening gives our reflector the time to say so before the first test
// packet, so that not one packet of the run is outside its count.
func (s *session) awaitOpening(ctx context.Context, every time.Duration) {
	s.poll(ctx, every, openTries*queryInterval, func() bool { return s.query.opened || s.query.foreign })
}

// settle waits for the last answers and then for the far end's final counts.
func (s *session) settle(wait time.Duration) {
	ctx := context.Background()
	s.poll(ctx, pollInterval, 2*wait+queryInterval, func() bool { return s.flights.outstanding() == 0 })
	s.mu.Lock()
	s.query.finish = s.kind != farUnknown
	s.query.foreign = s.query.finish && s.kind != farOurs
	s.mu.Unlock()
	s.poll(ctx, pollInterval, min(8*queryInterval, wait+queryInterval), func() bool { return !s.query.finish || s.query.finished })
	// A missing answer is waited for since a later one came, which is no older
	// than the last question.
	s.poll(ctx, pollInterval, wait+queryInterval, func() bool { return s.kind != farStateful || s.guessable() })
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers.flush(math.MaxInt64, s.conclude)
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
