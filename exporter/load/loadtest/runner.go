package loadtest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"runtime/debug"
	"sync"
	"time"

	"oneway.example/exporter/core/ctxtime"
	"oneway.example/exporter/core/document"
	"oneway.example/exporter/core/errtext"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/core/runreason"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/core/standstill"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/calendar"
	"oneway.example/exporter/probe/endclock"
	"oneway.example/exporter/probe/link"
	"oneway.example/exporter/probe/quota"
	"oneway.example/exporter/probe/report"
)

// runner does runs, from due to outcome.
type runner struct {
	env        probe.Env
	target     probe.Target
	opts       Options
	settings   document.Settings // of reports; nil: the caller has them
	test       Test
	link       string
	configured []report.Line // the options of the kind, for pages; nil: unknown
	links      *link.Table
	lessor     Lessor
	calendar   calendar.Calendar
	log        *slog.Logger

	progress    func(Progress)
	progressing sync.Mutex // serializes calls of progress: transfers of both directions may run at once
	scope       *metric.Scope
	fill        *link.Fill
	values      *Values
	status      *status
	required    int64 // bytes that the quota must have left for a run
}

func newRunner(env probe.Env, target probe.Target, o Options, t Test) (*runner, error) {
	if err := option.Check(&o); err != nil {
		return nil, err
	}
	r := &runner{
		env: env, target: target, opts: o, test: t, link: link.Filled(o.Link, target.Link, target.Path), links: env.Links, lessor: ownLink{},
		calendar: calendar.Calendar{Every: o.Every, Jitter: o.Jitter, Windows: o.Windows},
		log:      env.Log.With("path", target.Path, "probe", target.Probe),
		status:   &status{}, required: t.Bytes(0),
	}
	if err := r.calendar.Check(); err != nil {
		return nil, &option.Error{Key: windowsKey, Problem: "cannot be used: " + errtext.Words(err)} // every and jitter are checked
	}
	if r.links == nil {
		r.links = link.NewTable(nil)
	}
	return r, nil
}

// timeout is the limit of a run's time after its session has begun.
func (r *runner) timeout() time.Duration {
	if r.opts.Timeout > 0 {
		return r.opts.Timeout
	}
	return r.usualTimeout()
}

// usualTimeout is the limit without one in the configuration.
func (r *runner) usualTimeout() time.Duration {
	return min(timeoutFactor*r.test.Duration()+timeoutMargin, link.MaxHold)
}

// once does one run. It waits for the local and the remote link, but never holds one while it
// waits for the other: two agents that test each other would deadlock.
func (r *runner) once(ctx context.Context) *Outcome {
	run := &Run{
		ID: report.NewID(time.Now(), nil), Path: r.target.Path, Probe: r.target.Probe,
		Kind: r.test.Kind(), Peer: r.target.Peer, Link: r.link, Directions: r.test.Directions(), Settings: r.settings, Configured: r.configured,
	}
	run.phase, run.share = r.setPhase, r.status.share
	deadline := time.Now().Add(r.opts.MaxWait)
	for {
		outcome, again, busy := r.attempt(ctx, run, deadline)
		if outcome == nil && time.Now().Add(again).After(deadline) {
			outcome = r.outcome(run, &Failure{Reason: runreason.RemoteBusy, Err: busy})
		}
		if outcome == nil {
			// The random part keeps two that wait for each other from colliding again.
			r.setPhase("waiting for the remote end's link")
			if ctxtime.Sleep(ctx, again+rand.N(again/2+1)) {
				continue
			}
			outcome = r.outcome(run, &Failure{Reason: runreason.Stopped, Err: context.Cause(ctx)})
		}
		// The link is released before the results are written.
		if outcome.Result == Completed || runreason.Find(outcome.Reason).Counted {
			r.publish(outcome)
		}
		if run.Begin != 0 {
			r.writeReport(outcome)
		}
		r.status.conclude(outcome)
		return outcome
	}
}

// attempt takes the link and runs once. Without an outcome the remote end is busy, with that error; try
// again after the returned time.
func (r *runner) attempt(ctx context.Context, run *Run, deadline time.Time) (o *Outcome, again time.Duration, busy error) {
	r.setPhase("waiting for the link")
	waiting, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	release, ok := r.links.TryAcquire(r.link, r.holder())
	if !ok {
		var err error
		if release, err = r.links.Acquire(waiting, r.link, r.holder()); err != nil {
			return r.outcome(run, r.acquireError(ctx)), 0, nil
		}
	}
	defer release()
	lease, err := r.lessor.Lease(ctx, time.Until(deadline))
	if err != nil {
		return r.outcome(run, WithCause(ctx, err)), 0, nil
	}
	forward, reverse := int64(0), int64(0)
	defer func() { lease.Return(forward, reverse) }()
	if ctx.Err() != nil {
		return r.outcome(run, &Failure{Reason: runreason.Stopped, Err: context.Cause(ctx)}), 0, nil
	}
	if !r.calendar.Open(r.env.Local.Now()) {
		return r.outcome(run, &Failure{Reason: runreason.WindowClosed, Err: errors.New("the run waited for the link until the time of " + windowsKey + " had passed")}), 0, nil
	}
	clocks := &endclock.Proof{}
	a := &Attempt{
		Run: run.ID, Bytes: r.test.Bytes(r.links.Usage(r.link).Left), Timeout: r.timeout(), Env: r.env, Target: r.target, Log: r.log, Phase: r.setPhase, Progress: r.follow,
		Clocks: clocks, light: r.newLightPackets(clocks),
	}
	reservation, err := r.reserve(lease, a)
	if err != nil {
		return r.outcome(run, err), 0, nil
	}
	defer func() { reservation.Settle(forward + reverse) }()
	s, err := r.test.Open(ctx, a)
	if err != nil {
		if f, ok := errors.AsType[*Failure](err); ok && f.RetryAfter > 0 && ctx.Err() == nil {
			return nil, f.RetryAfter, err
		}
		return r.outcome(run, WithCause(ctx, err)), 0, nil
	}
	defer s.Close()
	run.Remote = s.Remote()
	if remote, err := netip.ParseAddrPort(run.Remote); err == nil {
		r.openCounters(remote.Addr())
	}
	lease.BeginSending()
	o = r.perform(ctx, run, s, a)
	forward, reverse = o.ForwardBytes, o.ReverseBytes
	return o, 0, nil
}

// reserveError converts an error of Reserve.
func reserveError(err error) error {
	if errors.As(err, new(*quota.UnsavedError)) {
		return &Failure{Reason: runreason.Unsaved, Err: err}
	}
	return &Failure{Reason: runreason.Quota, Err: err}
}

// acquireError is the error of a link that was not acquired in time.
func (r *runner) acquireError(ctx context.Context) error {
	if ctx.Err() != nil {
		return &Failure{Reason: runreason.Stopped, Err: context.Cause(ctx)}
	}
	holder, _, _ := r.links.Holder(r.link)
	return &Failure{Reason: runreason.LinkBusy, Err: &link.BusyError{Link: r.link, Waited: r.opts.MaxWait, Holder: holder}}
}

func (r *runner) holder() string { return r.target.Path + "/" + r.target.Probe }

// perform performs the run in a session. From here on the run counts as begun.
func (r *runner) perform(ctx context.Context, run *Run, s Session, a *Attempt) *Outcome {
	light := a.light
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ctx, expire := context.WithTimeoutCause(ctx, r.timeout(), &Failure{
		Reason: runreason.Timeout, Err: fmt.Errorf("the run took longer than %v", r.timeout()),
	})
	defer expire()
	ended := make(chan struct{})
	defer close(ended)
	broken := broken(s)
	go func() {
		select {
		case <-broken:
			cancel(lost(s))
		case <-ended:
		}
	}()
	watching, unwatch := context.WithCancel(context.WithoutCancel(ctx)) // also while a run that was stopped ends
	defer unwatch()
	watch := standstill.New()
	go watch.Run(watching, func(d time.Duration) { cancel(paused(d)) })
	ctx = Watched(ctx, watch.Longest)
	run.Begin = instant.Now()
	r.setPhase("measuring")
	r.fill.Begin()
	light.begin(ctx, run, s)
	err := r.recovered(ctx, s, run)
	if f, ok := errors.AsType[*Failure](err); ok && f.Reason == runreason.Lost {
		cancel(err) // no reply of the remote end is awaited
	}
	light.end(ctx, run)
	if b, ok := run.Body.(Delayed); ok && a.Clocks.Found() && b.Withhold() {
		run.Note("one-way delays are unknown: " + sample.InWords(sample.ClocksApart.String()))
	}
	r.fill.End()
	err = verdict(ctx, s, err)
	if pause := Pause(ctx); pause != nil { // it explains what has ended the session meanwhile
		err = pause
	}
	o := r.outcome(run, err)
	r.account(s, light, o)
	return o
}

// broken is closed when a session has ended by itself; nil: it never does.
func broken(s Session) <-chan struct{} {
	if b, ok := s.(Breakable); ok {
		return b.Done()
	}
	return nil
}

// lost is the error of a session that has ended by itself.
func lost(s Session) error {
	err := s.(Breakable).Err()
	if f, ok := errors.AsType[*Failure](err); ok {
		return f
	}
	return &Failure{Reason: runreason.Lost, Err: err}
}

// watchedKey is the key of a context's function that returns the longest time in which this host did not run; 0: it always ran.
type watchedKey struct{}

// Watched is a context with such a function, for Pause.
func Watched(ctx context.Context, longest func() time.Duration) context.Context {
	return context.WithValue(ctx, watchedKey{}, longest)
}

// Pause is the error of a run in which this host did not run for a time; nil: it ran. It is the cause of what failed meanwhile, as each end
// was silent to the other, also if that is known before ctx ends.
func Pause(ctx context.Context) error {
	if longest, ok := ctx.Value(watchedKey{}).(func() time.Duration); ok {
		if d := longest(); d > 0 {
			return paused(d)
		}
	}
	return nil
}

// paused is the error of a run in which this host did not run for a time.
func paused(d time.Duration) error {
	return &Failure{Reason: runreason.HostPaused, Err: fmt.Errorf("this host did not run for %v", d.Round(100*time.Millisecond))}
}

// verdict is the error of a run: the end of the session or of ctx takes precedence over err, unless it says more than these.
func verdict(ctx context.Context, s Session, err error) error {
	if f, ok := errors.AsType[*Failure](err); err == nil || ok && (f.Refused || f.Reason == runreason.Lost) {
		return err
	}
	select {
	case <-broken(s):
		return lost(s)
	default:
		return WithCause(ctx, err)
	}
}

// recovered converts a panic into an error, so that the link and the quota are released and the next
// run takes place.
func (r *runner) recovered(ctx context.Context, s Session, run *Run) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
			r.log.Error("Panic in a run", "run", run.ID, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		}
	}()
	return s.Perform(ctx, run)
}

// writeReport writes the report. The store logs an error; the run is not affected.
func (r *runner) writeReport(o *Outcome) {
	if r.env.Reports == nil {
		return
	}
	h := report.Header{
		ID: o.ID, Path: o.Path, Probe: o.Probe, Kind: o.Kind, Peer: o.Peer,
		Begin: o.Begin.Time(), End: o.End.Time(), Result: string(o.Result), Reason: o.Reason, Error: o.Error, Values: o.Values, Summary: o.Lines,
	}
	_ = r.env.Reports.Write(h, o)
}

// setPhase reports the present step.
func (r *runner) setPhase(phase string) { r.follow(Progress{Phase: phase, Share: -1}) }

// follow forwards progress of the run; a negative share is unknown and leaves the previous
// one.
func (r *runner) follow(p Progress) {
	p = r.status.follow(p, r.test.Duration())
	if r.progress != nil {
		r.progressing.Lock()
		defer r.progressing.Unlock()
		r.progress(p)
	}
}
