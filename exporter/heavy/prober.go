package heavy

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"oneway.example/exporter/hostport"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/wait"
)

// Prober runs a heavy test by its calendar.
type Prober struct {
	runner *runner
	status *status
	rng    *rand.Rand // nil: nothing of the calendar is random; for tests
}

// NewProber checks the options and makes a prober. Nothing is opened, and nothing sent,
// until Run. An error is a *probe.OptionError.
func NewProber(env probe.Env, target probe.Target, o Options, k Kind) (*Prober, error) {
	r, err := newRunner(env, target, o, k)
	if err != nil {
		return nil, err
	}
	return &Prober{runner: r, status: r.status, rng: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))}, nil
}

// Run runs the test whenever it is due, until ctx ends. Whatever becomes of a run, the
// next one comes.
func (p *Prober) Run(ctx context.Context) error {
	r := p.runner
	r.open()
	defer r.close()
	due := r.calendar.First(time.Now(), p.rng)
	for {
		p.status.waiting(due)
		r.series.due(due)
		if due.IsZero() {
			<-ctx.Done()
			return nil
		}
		if !wait.For(ctx, time.Until(due)) {
			return nil
		}
		r.count(r.once(ctx))
		// The system's clock may have been stepped meanwhile: what was due is
		// counted by the time that has gone by, windows by what the clock says now.
		now := time.Now()
		due = p.next(now.Add(due.Sub(now)))
		for ; !due.IsZero() && !due.After(time.Now()); due = p.next(due) {
			r.tally(Skipped, ReasonOverrun)
		}
	}
}

func (p *Prober) next(due time.Time) time.Time { return p.runner.calendar.Next(due, p.rng) }

// Status is for the landing page.
func (p *Prober) Status() probe.Status { return p.status.of(time.Now()) }

// Fills says which link the runs fill.
func (p *Prober) Fills() probe.Filling {
	r := p.runner
	return probe.Filling{Kind: string(r.kind.Kind()), Link: r.link, Host: r.host, Port: r.port}
}

// Once runs the test now, whatever its calendar says, and tells of progress, which may
// be nil, some times a second. The outcome is there with an error too, with what was
// found until then; without one the run has completed.
func Once(ctx context.Context, env probe.Env, target probe.Target, o Options, k Kind, progress func(Progress)) (*Outcome, error) {
	return OnceLent(ctx, env, target, o, k, nil, progress)
}

// OnceLent is Once on a link that another process lends; nil: nobody does.
func OnceLent(ctx context.Context, env probe.Env, target probe.Target, o Options, k Kind, from Lender, progress func(Progress)) (*Outcome, error) {
	r, err := newRunner(env, target, o, k)
	if err != nil {
		return nil, err
	}
	if from != nil {
		r.lender = from
	}
	return r.only(ctx, progress)
}

// only is the one run of a runner.
func (r *runner) only(ctx context.Context, progress func(Progress)) (*Outcome, error) {
	r.calendar.Windows, r.progress = nil, progress
	r.open()
	defer r.close()
	outcome := r.once(ctx)
	r.count(outcome)
	if outcome.Result != Completed {
		return outcome, errors.New(outcome.Error)
	}
	return outcome, nil
}

// Address is where the responder is: as configured, or the path's peer with the
// responders' port.
func Address(o *Options, target probe.Target) (host string, port uint16, err error) {
	if o.Responder != "" {
		host, port, err = hostport.Split(o.Responder, DefaultPort)
		if err != nil {
			return "", 0, &probe.OptionError{Key: "responder", Problem: fmt.Sprintf("is %q; %v", o.Responder, err)}
		}
		return host, port, nil
	}
	host, _, err = hostport.Split(target.Peer, DefaultPort) // its port is that of another service
	if err != nil {
		return "", 0, &probe.OptionError{Key: "responder", Problem: fmt.Sprintf("is not given, and the path's peer %q is no host name or address", target.Peer)}
	}
	return host, DefaultPort, nil
}

var (
	_ probe.Prober = (*Prober)(nil)
	_ probe.Filler = (*Prober)(nil)
)
