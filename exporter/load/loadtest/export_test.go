package loadtest

import (
	"context"

	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/probe"
)

// Remote is a simulated remote end.
type Remote struct {
	Flow  Flow
	Lost  chan struct{}
	Why   error
	Close func()
}

// SetConnect replaces the load server of the prober's runs by f.
func (p *Prober) SetConnect(f func(ctx context.Context, bytes int64) (*Remote, error)) {
	p.rng = nil
	p.runner.connect = func(ctx context.Context, _ string, bytes int64, _ *beside) (*connection, error) {
		remote, err := f(ctx, bytes)
		if err != nil {
			return nil, err
		}
		return &connection{
			Flow: remote.Flow, lost: remote.Lost, why: func() error { return remote.Why }, close: remote.Close,
		}, nil
	}
}

// SetLessor sets the Lessor of the prober's runs.
func (p *Prober) SetLessor(l Lessor) { p.runner.lessor = l }

// ReadToken is readToken.
func ReadToken(file string) (string, error) { return readToken(file) }

// OnceWith is RunOnce with a simulated remote end.
func OnceWith(ctx context.Context, env probe.Env, target probe.Target, o Options, k Kind, f func(context.Context, int64) (*Remote, error), progress func(Progress)) (*Outcome, error) {
	r, err := newRunner(env, target, o, k)
	if err != nil {
		return nil, err
	}
	(&Prober{runner: r}).SetConnect(f)
	return r.runSingle(ctx, progress)
}

// LastRun returns the ID of the last completed run.
func (p *Prober) LastRun() string {
	p.status.mu.Lock()
	defer p.status.mu.Unlock()
	return p.status.done.ID
}

// BesideOlder returns why no light packets go beside a session with a load server that does not offer its reflector.
func BesideOlder() string {
	b := &beside{}
	b.fit(&loadcontrol.Client{}, 1)
	return b.off
}
