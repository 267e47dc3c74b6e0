package heavy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"time"

	"oneway.example/exporter/control"
	"oneway.example/exporter/instant"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/report"
	"oneway.example/exporter/sched"
	"oneway.example/exporter/wait"
)

// runner takes a run from being due to its outcome.
type runner struct {
	env      probe.Env
	target   probe.Target
	opts     Options
	kind     Kind
	host     string
	port     uint16
	link     string
	links    *sched.Links
	lender   Lender
	calendar sched.Calendar
	log      *slog.Logger
	// connect opens a session with the far end; tests have their own.
	connect  func(context.Context, ask) (*connection, error)
	progress func(Progress)
	telling  sync.Mutex // one word to progress at a time: both directions may be under way
	series   *series
	values   *Values
	status   *status
}

// ask is what a session is wanted for.
type ask struct {
	run   string
	bytes int64
	phase func(string)
}

// connection is a session with the far end.
type connection struct {
	session *Session
	// lost is closed when the session has ended by itself; why says why.
	lost <-chan struct{}
	why  func() error
	// close ends the session on both sides.
	close func()
}

func newRunner(env probe.Env, target probe.Target, o Options, k Kind) (*runner, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	host, port, err := Address(&o, target)
	if err != nil {
		return nil, err
	}
	r := &runner{
		env: env, target: target, opts: o, kind: k, host: host, port: port, link: o.Link, links: env.Links, lender: own{},
		calendar: sched.Calendar{Every: o.Every, Jitter: o.Jitter, Windows: o.Windows},
		log:      env.Log.With("path", target.Path, "probe", target.Probe),
		status:   newStatus(k.Kind()),
	}
	r.connect = r.dial
	if r.link == "" {
		r.link = target.Path
	}
	if err := r.calendar.Check(); err != nil {
		return nil, &probe.OptionError{Key: "every", Problem: "and jitter do not go together: " + err.Error()}
	}
	if r.links == nil {
		if r.links, err = sched.NewLinks(sched.LinksOptions{Log: env.Log}); err != nil {
			return nil, fmt.Errorf("heavy: %w", err)
		}
	}
	return r, nil
}

// timeout is how long a run may take once it has its session.
func (r *runner) timeout() time.Duration {
	if r.opts.Timeout > 0 {
		return r.opts.Timeout
	}
	return 2*r.kind.Duration() + time.Minute
}

// once takes one run to its outcome. It waits for its link here and at the far end, never
// holding the one while it waits for the other: two agents that test each other would
// wait for each other.
func (r *runner) once(ctx context.Context) *Outcome {
	run := &Run{
		ID: report.NewID(time.Now(), nil), Path: r.target.Path, Probe: r.target.Probe,
		Kind: r.kind.Kind(), Peer: r.target.Peer, Link: r.link, Directions: r.opts.directions,
	}
	run.phase, run.share = r.tell, r.status.share
	deadline := time.Now().Add(r.opts.MaxWait)
	for {
		outcome, again := r.try(ctx, run, deadline)
		if outcome == nil && time.Now().Add(again).After(deadline) {
			outcome = r.outcome(run, &Failure{Reason: ReasonFarBusy, Err: r.status.farBusy()})
		}
		if outcome == nil {
			// A random part more, or two that wait for each other meet again.
			r.tell("waiting for the far end's link")
			if wait.For(ctx, again+rand.N(again/2+1)) {
				continue
			}
			outcome = r.outcome(run, &Failure{Reason: ReasonStopped, Err: context.Cause(ctx)})
		}
		// The link is free by now: it need not wait for what is written.
		if outcome.Result == Completed {
			r.publish(outcome)
		}
		if run.Begin != 0 {
			r.keep(outcome)
		}
		r.status.conclude(outcome)
		return outcome
	}
}

// try takes the link and runs; no outcome: the far end is busy, and may be asked again
// after a while.
func (r *runner) try(ctx context.Context, run *Run, deadline time.Time) (o *Outcome, again time.Duration) {
	r.tell("waiting for the link")
	waiting, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	release, ok := r.links.TryAcquire(r.link, r.who())
	if !ok {
		var err error
		if release, err = r.links.Acquire(waiting, r.link, r.who()); err != nil {
			return r.outcome(run, r.denied(ctx)), 0
		}
	}
	defer release()
	loan, err := r.lender.Lend(ctx, time.Until(deadline))
	if err != nil {
		return r.outcome(run, refine(ctx, err)), 0
	}
	forward, reverse := int64(0), int64(0)
	defer func() { loan.Return(forward, reverse) }()
	if ctx.Err() != nil {
		return r.outcome(run, &Failure{Reason: ReasonStopped, Err: context.Cause(ctx)}), 0
	}
	if !r.calendar.Open(time.Now()) {
		return r.outcome(run, &Failure{Reason: ReasonWindowClosed, Err: errors.New("its window was over when the link was free")}), 0
	}
	need := r.kind.Bytes() // once: it may look at what is left of the budget
	reservation, err := r.links.Reserve(r.link, need)
	if err != nil {
		return r.outcome(run, unreserved(err)), 0
	}
	defer func() { reservation.Settle(forward + reverse) }()
	if err := loan.Reserve(need); err != nil {
		return r.outcome(run, unreserved(err)), 0
	}
	c, err := r.connect(ctx, ask{run: run.ID, bytes: need, phase: r.tell})
	if err != nil {
		if d, busy := retryAfter(err); busy && ctx.Err() == nil {
			r.status.busy(err)
			return nil, d
		}
		return r.outcome(run, refine(ctx, err)), 0
	}
	defer c.close()
	run.Responder = c.session.Remote().String()
	if r.opts.NoChecksum && c.session.opts.IPv6 {
		run.Note("no_checksum is for IPv4, and the responder was reached over IPv6: packets have a checksum")
	}
	loan.Sending()
	o = r.perform(ctx, run, c)
	forward, reverse = o.ForwardBytes, o.ReverseBytes
	return o, 0
}

// unreserved says why no octets were set aside.
func unreserved(err error) error {
	if errors.As(err, new(*sched.UnsavedError)) {
		return &Failure{Reason: ReasonUnsaved, Err: err}
	}
	return &Failure{Reason: ReasonBudget, Err: err}
}

// denied says why the link was not to be had.
func (r *runner) denied(ctx context.Context) error {
	if ctx.Err() != nil {
		return &Failure{Reason: ReasonStopped, Err: context.Cause(ctx)}
	}
	who, _, _ := r.links.Holder(r.link)
	return &Failure{Reason: ReasonLinkBusy, Err: fmt.Errorf("link %s was not free in %v, it is held by %s", r.link, r.opts.MaxWait, who)}
}

func (r *runner) who() string { return r.target.Path + "/" + r.target.Probe }

// retryAfter tells whether the far end is busy, and how long to leave it alone.
func retryAfter(err error) (time.Duration, bool) {
	var refusal *control.Refusal
	if !errors.As(err, &refusal) {
		return 0, false
	}
	switch refusal.Reason {
	case control.Busy, control.TooMany, control.ShuttingDown:
		return max(refusal.RetryAfter, time.Second), true
	default:
		return 0, false
	}
}

// perform runs the kind over a session. From here on the run counts as one that was sent.
func (r *runner) perform(ctx context.Context, run *Run, c *connection) *Outcome {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ctx, expire := context.WithTimeoutCause(ctx, r.timeout(), &Failure{
		Reason: ReasonTimeout, Err: fmt.Errorf("it was not over after %v", r.timeout()),
	})
	defer expire()
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		select {
		case <-c.lost:
			cancel(c.ended(run))
		case <-ended:
		}
	}()
	run.Begin = instant.Now()
	c.session.report(r.follow)
	r.series.running(true)
	err := r.guarded(ctx, c.session, run)
	r.series.running(false)
	o := r.outcome(run, r.verdict(ctx, c, run, err))
	c.session.close(o)
	r.series.moved(c.session)
	return o
}

// ended is the error of a session that has ended by itself.
func (c *connection) ended(run *Run) error {
	return &Failure{Reason: ReasonLost, Err: fmt.Errorf("the session with the responder at %s ended: %w", run.Responder, c.why())}
}

// verdict is why a run did not complete: what ended it comes before what that led to.
func (r *runner) verdict(ctx context.Context, c *connection, run *Run, err error) error {
	if err == nil || errors.As(err, new(*control.Refusal)) {
		return err
	}
	select {
	case <-c.lost:
		return c.ended(run)
	default:
		return refine(ctx, err)
	}
}

// guarded turns a panic into an error: the link, the budget and the next run are not to
// suffer from it.
func (r *runner) guarded(ctx context.Context, s *Session, run *Run) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
			r.log.Error("Panic in a run", "run", run.ID, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		}
	}()
	return r.kind.Perform(ctx, s, run)
}

// keep writes the report; a store that fails says so itself, and costs no run.
func (r *runner) keep(o *Outcome) {
	if r.env.Reports == nil {
		return
	}
	h := report.Header{
		ID: o.ID, Path: o.Path, Probe: o.Probe, Kind: string(o.Kind), Peer: o.Peer,
		Begin: o.Begin.Time(), End: o.End.Time(), Result: string(o.Result), Summary: o.Lines,
	}
	if o.Result != Completed {
		h.Reason = o.Reason
	}
	_ = r.env.Reports.Write(h, o)
}

// tell says what is going on.
func (r *runner) tell(phase string) { r.follow(Progress{Phase: phase, Share: -1}) }

// follow takes progress of the run; a negative share is one that is not known, and
// stays what it was.
func (r *runner) follow(p Progress) {
	p = r.status.follow(p, r.kind.Duration())
	if r.progress != nil {
		r.telling.Lock()
		defer r.telling.Unlock()
		r.progress(p)
	}
}
