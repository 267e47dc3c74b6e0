package loadtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"oneway.example/exporter/core/ctxtime"
	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/report"
)

// Prober runs a load test on a schedule.
type Prober struct {
	runner *runner
	status *status
	rng    *rand.Rand // nil: a schedule without random parts, for tests
}

// NewProber checks the options and makes a prober. It opens nothing and sends nothing before
// Run. An error is a *option.Error.
func NewProber(env probe.Env, target probe.Target, o Options, t Test) (*Prober, error) {
	r, err := newRunner(env, target, o, t)
	if err != nil {
		return nil, err
	}
	return &Prober{runner: r, status: r.status, rng: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))}, nil
}

// Run runs the test whenever it is due, until ctx ends. A run that fails does not prevent the
// next.
func (p *Prober) Run(ctx context.Context) error {
	r := p.runner
	r.open()
	defer r.close()
	due := r.calendar.First(r.env.Local.Now(), p.rng)
	for {
		p.status.waiting(due)
		r.due(due)
		if due.IsZero() {
			<-ctx.Done()
			return nil
		}
		if !ctxtime.Sleep(ctx, time.Until(due)) {
			return nil
		}
		r.count(r.once(ctx))
		// The system clock may have been stepped during the run. The interval is counted by elapsed
		// time, the windows by the present clock.
		now := time.Now()
		due = p.next(now.Add(due.Sub(now)))
		for ; !due.IsZero() && !due.After(time.Now()); due = p.next(due) {
			r.tally(Skipped, runreason.Overrun)
		}
	}
}

func (p *Prober) next(due time.Time) time.Time {
	return p.runner.calendar.Next(p.runner.env.Local.Calendar().Local(due), p.rng)
}

// Status is for the landing page.
func (p *Prober) Status() probe.Status { return p.status.of(time.Now()) }

// UsedLink returns the link that the runs fill.
func (p *Prober) UsedLink() probe.LinkUse {
	r := p.runner
	host, port := r.test.Remote()
	return probe.LinkUse{Kind: r.test.Kind(), Link: r.link, Host: host, Port: port, Every: r.opts.Every, Runs: r.calendar.MostRuns(), Share: r.test.Duration().Seconds() / r.opts.Every.Seconds(), Bytes: r.required}
}

// RunOnce runs the test now, regardless of its calendar, and calls progress, which may be nil, several
// times a second. from leases the link if another process manages it; nil: none does. With an error
// the outcome has the results so far; without one the run has completed.
func RunOnce(ctx context.Context, env probe.Env, target probe.Target, o Options, t Test, from Lessor, progress func(Progress)) (*Outcome, error) {
	r, err := newRunner(env, target, o, t)
	if err != nil {
		return nil, err
	}
	if from != nil {
		r.lessor = from
	}
	return r.runSingle(ctx, progress)
}

// runSingle does the single run of RunOnce.
func (r *runner) runSingle(ctx context.Context, progress func(Progress)) (*Outcome, error) {
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

var (
	_ probe.Prober   = (*Prober)(nil)
	_ probe.LinkUser = (*Prober)(nil)
)

// status has the state and the last results of a prober.
type status struct {
	mu     sync.Mutex
	due    time.Time
	idle   bool // waiting for due
	at     Progress
	shared bool     // the kind has set at.Share
	last   *Outcome // also if skipped
	tried  *Outcome // the last that was not skipped
	done   *Outcome // the last completed one
}

func (s *status) waiting(due time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.due, s.idle = due, true
}

// follow stores progress; it completes and returns it.
func (s *status) follow(p Progress, planned time.Duration) Progress {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = false
	if p.Phase == "" {
		p.Phase = s.at.Phase
	}
	switch {
	case p.Share < 0 || s.shared:
		p.Share = s.at.Share
	case planned > 0:
		p.Share = min(1, float64(p.Elapsed)/float64(planned))
	}
	s.at = p
	return p
}

// phase returns the present phase.
func (s *status) phase() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at.Phase
}

func (s *status) share(done float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at.Share, s.shared = min(max(done, 0), 1), true
}

func (s *status) conclude(o *Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at, s.shared = Progress{}, false
	// Drop the parts that only a report needs.
	run, kept := *o.Run, *o
	run.Body, kept.Run, kept.Transfers = nil, &run, nil
	s.last = &kept
	if o.Result != Skipped {
		s.tried = &kept
	}
	if o.Result == Completed {
		s.done = &kept
	}
}

// of returns the status at now.
func (s *status) of(now time.Time) probe.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := probe.Status{State: s.state(now), Up: s.tried != nil && s.tried.Result == Completed}
	if s.idle {
		st.Next = s.due
	}
	if s.last != nil && s.last.Result != Completed {
		st.Cause = s.last.Reason
		st.Reason = report.LastRun(string(s.last.Result), s.last.Error)
	}
	if s.done == nil {
		return st
	}
	st.LastSuccess = s.done.End.Time()
	st.Results = s.done.Summary
	if st.Reason == "" && len(s.done.Notes) > 0 {
		st.Cause = probe.CauseLimited
		st.Reason = s.done.Notes[0]
	}
	return st
}

func (s *status) state(now time.Time) string {
	switch {
	case !s.idle && s.at.Phase == "":
		return "starting"
	case !s.idle:
		if s.at.Share > 0 {
			return fmt.Sprintf("%s, %s done", s.at.Phase, unit.Percent(s.at.Share))
		}
		return s.at.Phase
	case s.due.IsZero():
		return "no run is due: no window ever opens"
	}
	format := "15:04"
	if s.due.Sub(now) > 20*time.Hour {
		format = "Mon 15:04"
	}
	return "next run at " + s.due.Format(format)
}
