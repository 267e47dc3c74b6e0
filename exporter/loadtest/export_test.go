package loadtest

import (
	"context"

	"oneway.example/exporter/probe"
)

// Remote is a remote end that a test plays.
type Remote struct {
	Flow  Flow
	Lost  chan struct{}
	Why   error
	Close func()
}

// SetConnect has the prober's runs call f in place of a load server.
func (p *Prober) SetConnect(f func(ctx context.Context, bytes int64) (*Remote, error)) {
	p.rng = nil
	p.runner.connect = func(ctx context.Context, _ string, bytes int64) (*connection, error) {
		remote, err := f(ctx, bytes)
		if err != nil {
			return nil, err
		}
		return &connection{
			Flow: remote.Flow, lost: remote.Lost, why: func() error { return remote.Why }, close: remote.Close,
		}, nil
	}
}

// SetLessor has l lease the link to the prober's runs.
func (p *Prober) SetLessor(l Lessor) { p.runner.lessor = l }

// ReadToken is readToken.
func ReadToken(file string) (string, error) { return readToken(file) }

// OnceWith is Once with a remote end that a test plays.
func OnceWith(ctx context.Context, env probe.Env, target probe.Target, o Options, k Kind, f func(context.Context, int64) (*Remote, error), progress func(Progress)) (*Outcome, error) {
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
