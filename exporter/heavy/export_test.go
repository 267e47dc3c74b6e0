package heavy

import (
	"context"

	"oneway.example/exporter/probe"
)

// Far is a far end that a test plays.
type Far struct {
	Flow  Flow
	Lost  chan struct{}
	Why   error
	Close func()
}

// SetConnect has the prober's runs call f in place of a responder.
func (p *Prober) SetConnect(f func(ctx context.Context, bytes int64) (*Far, error)) {
	p.rng = nil
	p.runner.connect = func(ctx context.Context, _ string, bytes int64) (*connection, error) {
		far, err := f(ctx, bytes)
		if err != nil {
			return nil, err
		}
		return &connection{
			Flow: far.Flow, lost: far.Lost, why: func() error { return far.Why }, close: far.Close,
		}, nil
	}
}

// SetLender has l lend the link to the prober's runs.
func (p *Prober) SetLender(l Lender) { p.runner.lender = l }

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

// LastRun is the name of the last run that was completed.
func (p *Prober) LastRun() string {
	p.status.mu.Lock()
	defer p.status.mu.Unlock()
	return p.status.done.ID
}
