package heavy

import (
	"context"
	"net/netip"
	"time"

	"oneway.example/exporter/bound"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/sample"
	"oneway.example/exporter/stream"
)

// Join is join.
func Join(p stream.Plan, overhead int, s *stream.Sent, r *stream.Received) ([]Packet, Counts) {
	return join(p, overhead, s, r)
}

// Far is a far end that a test plays.
type Far struct {
	Session *Session
	Lost    chan struct{}
	Why     error
	Close   func()
}

// SetConnect has the prober's runs call f in place of a responder.
func (p *Prober) SetConnect(f func(ctx context.Context, bytes int64) (*Far, error)) {
	p.rng = nil
	p.runner.connect = func(ctx context.Context, a ask) (*connection, error) {
		far, err := f(ctx, a.bytes)
		if err != nil {
			return nil, err
		}
		return &connection{
			session: far.Session, lost: far.Lost, why: func() error { return far.Why }, close: far.Close,
		}, nil
	}
}

// SetLender has l lend the link to the prober's runs.
func (p *Prober) SetLender(l Lender) { p.runner.lender = l }

// SetMaxRows bounds the rows of the session's report.
func (s *Session) SetMaxRows(n int) { s.recorder.most = n }

// Series is what the session has kept for the report.
func (s *Session) Series() []*Series { return s.recorder.series }

// NewTransfer is a transfer of two clocks and no packets.
func NewTransfer(near, far Clocks, shared bool, took time.Duration, packets ...Packet) *Transfer {
	t := &Transfer{
		Near: near, Far: far, Shared: shared, Packets: packets, Direction: sample.Forward,
		ends: bound.Ends{Near: farStamps(), Far: farStamps()},
		Sent: &stream.Sent{Begin: 1e18, End: 1e18 + 1}, Received: &stream.Received{},
	}
	t.Sent.End = t.Sent.Begin.Add(took)
	t.judgeClocks()
	return t
}

// ReadToken is readToken.
func ReadToken(file string) (string, error) { return readToken(file) }

// OnceWith is Once with a far end that a test plays.
func OnceWith(ctx context.Context, env probe.Env, target probe.Target, o Options, k Kind, f func(context.Context, int64) (*Far, error), progress func(Progress)) (*Outcome, error) {
	r, err := newRunner(env, target, o, k)
	if err != nil {
		return nil, err
	}
	(&Prober{runner: r}).SetConnect(f)
	return r.only(ctx, progress)
}

// Patience is how long a carrier of that drain_timeout waits when asked for idle.
func Patience(drain, idle time.Duration) time.Duration {
	return (&carrier{drain: drain}).patience(idle)
}

// LastRun is the name of the last run that was completed.
func (p *Prober) LastRun() string {
	p.status.mu.Lock()
	defer p.status.mu.Unlock()
	return p.status.done.ID
}

// Aged is a session of which the responder has heard nothing for so long.
func (s *Session) Aged(by time.Duration) {
	c := s.carrier.(*carrier)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard -= by
}

// Misled has its packets go elsewhere.
func (s *Session) Misled(to netip.AddrPort) { s.carrier.(*carrier).remote = to }
