package loadtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"oneway.example/exporter/core/ctxtime"
	"oneway.example/exporter/core/document"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/keyfile"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/calendar"
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
	kind       Kind
	host       string
	port       uint16
	link       string
	configured []report.Line // the options of the kind, for pages; nil: unknown
	links      *link.Table
	lessor     Lessor
	calendar   calendar.Calendar
	log        *slog.Logger
	// connect opens a session with the remote end; tests replace it.
	connect     func(ctx context.Context, run string, bytes int64, b *beside) (*connection, error)
	progress    func(Progress)
	progressing sync.Mutex // serializes calls of progress: transfers of both directions may run at once
	scope       *metric.Scope
	values      *Values
	status      *status
}

// connection is a session with the remote end.
type connection struct {
	Flow
	// lost is closed when the session has ended by itself; why returns the reason.
	lost <-chan struct{}
	why  func() error
	// close ends the session at both ends.
	close func()
	// beside are the light packets beside the load; nil: none.
	beside *beside
}

func newRunner(env probe.Env, target probe.Target, o Options, k Kind) (*runner, error) {
	err := o.check()
	host, port, wrong := Address(&o, target)
	if err = errors.Join(err, wrong); err != nil {
		return nil, err
	}
	r := &runner{
		env: env, target: target, opts: o, kind: k, host: host, port: port, link: target.FilledLink(o.Link), links: env.Links, lessor: ownLink{},
		calendar: calendar.Calendar{Every: o.Every, Jitter: o.Jitter, Windows: o.Windows},
		log:      env.Log.With("path", target.Path, "probe", target.Probe),
		status:   &status{},
	}
	r.connect = r.dial
	if err := r.calendar.Check(); err != nil {
		return nil, &probe.OptionError{Key: "windows", Problem: "cannot be used: " + err.Error()} // every and jitter are checked
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
func (r *runner) usualTimeout() time.Duration { return 2*r.kind.Duration() + time.Minute }

// once does one run. It waits for the local and the remote link, but never holds one while it
// waits for the other: two agents that test each other would deadlock.
func (r *runner) once(ctx context.Context) *Outcome {
	run := &Run{
		ID: report.NewID(time.Now(), nil), Path: r.target.Path, Probe: r.target.Probe,
		Kind: r.kind.Kind(), Peer: r.target.Peer, Link: r.link, Directions: r.opts.directions, Settings: r.settings, Configured: r.configured,
	}
	run.phase, run.share = r.setPhase, r.status.share
	deadline := time.Now().Add(r.opts.MaxWait)
	for {
		outcome, again, busy := r.attempt(ctx, run, deadline)
		if outcome == nil && time.Now().Add(again).After(deadline) {
			outcome = r.outcome(run, &Failure{Reason: ReasonRemoteBusy, Err: busy})
		}
		if outcome == nil {
			// The random part keeps two that wait for each other from colliding again.
			r.setPhase("waiting for the remote end's link")
			if ctxtime.Sleep(ctx, again+rand.N(again/2+1)) {
				continue
			}
			outcome = r.outcome(run, &Failure{Reason: ReasonStopped, Err: context.Cause(ctx)})
		}
		// The link is released before the results are written.
		if outcome.Result == Completed {
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
		return r.outcome(run, &Failure{Reason: ReasonStopped, Err: context.Cause(ctx)}), 0, nil
	}
	if !r.calendar.Open(time.Now()) {
		return r.outcome(run, &Failure{Reason: ReasonWindowClosed, Err: errors.New("the window closed before the link was free")}), 0, nil
	}
	need, light := r.kind.Bytes(), r.newBeside() // Bytes is called once: the result may depend on what is left of the quota
	reservation, err := r.reserve(lease, need, light)
	if err != nil {
		return r.outcome(run, err), 0, nil
	}
	defer func() { reservation.Settle(forward + reverse) }()
	c, err := r.connect(ctx, run.ID, need, light)
	if err != nil {
		if d, busy := retryAfter(err); busy && ctx.Err() == nil {
			return nil, d, err
		}
		return r.outcome(run, WithCause(ctx, err)), 0, nil
	}
	defer c.close()
	run.LoadServer = c.Remote().String()
	lease.BeginSending()
	o = r.perform(ctx, run, c)
	forward, reverse = o.ForwardBytes, o.ReverseBytes
	return o, 0, nil
}

// reserveError converts an error of Reserve.
func reserveError(err error) error {
	if errors.As(err, new(*quota.UnsavedError)) {
		return &Failure{Reason: ReasonUnsaved, Err: err}
	}
	return &Failure{Reason: ReasonQuota, Err: err}
}

// acquireError is the error of a link that was not acquired in time.
func (r *runner) acquireError(ctx context.Context) error {
	if ctx.Err() != nil {
		return &Failure{Reason: ReasonStopped, Err: context.Cause(ctx)}
	}
	holder, _, _ := r.links.Holder(r.link)
	return &Failure{Reason: ReasonLinkBusy, Err: fmt.Errorf("link %s was not free in %v, it is held by %s", r.link, r.opts.MaxWait, holder)}
}

func (r *runner) holder() string { return r.target.Path + "/" + r.target.Probe }

// retryAfter returns whether err means that the remote end is busy, and when to try again.
func retryAfter(err error) (time.Duration, bool) {
	refusal, ok := errors.AsType[*loadcontrol.Refusal](err)
	if !ok || !slices.Contains([]loadcontrol.Reason{loadcontrol.Busy, loadcontrol.TooMany, loadcontrol.ShuttingDown}, refusal.Reason) {
		return 0, false
	}
	return max(refusal.RetryAfter, time.Second), true
}

// perform runs the kind in a session. From here on the run counts as begun.
func (r *runner) perform(ctx context.Context, run *Run, c *connection) *Outcome {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ctx, expire := context.WithTimeoutCause(ctx, r.timeout(), &Failure{
		Reason: ReasonTimeout, Err: fmt.Errorf("the run took longer than %v", r.timeout()),
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
	c.Follow(r.follow)
	r.running(true)
	emptied := r.links.Fill(link.Use{Link: r.link, Path: r.target.Path})
	c.beside.begin(ctx, run)
	err := r.recovered(ctx, c, run)
	c.beside.end(ctx, run)
	emptied()
	r.running(false)
	o := r.outcome(run, r.verdict(ctx, c, run, err))
	r.account(c, o)
	return o
}

// ended is the error of a session that has ended by itself.
func (c *connection) ended(run *Run) error {
	return &Failure{Reason: ReasonLost, Err: fmt.Errorf("the session with the load server at %s ended: %w", run.LoadServer, c.why())}
}

// verdict is the error of a run: the end of the session or of ctx takes precedence over err.
func (r *runner) verdict(ctx context.Context, c *connection, run *Run, err error) error {
	if err == nil || errors.As(err, new(*loadcontrol.Refusal)) {
		return err
	}
	select {
	case <-c.lost:
		return c.ended(run)
	default:
		return WithCause(ctx, err)
	}
}

// recovered converts a panic into an error, so that the link and the quota are released and the next
// run takes place.
func (r *runner) recovered(ctx context.Context, f Flow, run *Run) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
			r.log.Error("Panic in a run", "run", run.ID, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		}
	}()
	return f.Perform(ctx, run)
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
	p = r.status.follow(p, r.kind.Duration())
	if r.progress != nil {
		r.progressing.Lock()
		defer r.progressing.Unlock()
		r.progress(p)
	}
}

// connectTimeout is the limit of the time until a session is open.
const connectTimeout = 25 * time.Second

// dial opens a session with the load server.
func (r *runner) dial(ctx context.Context, run string, bytes int64, light *beside) (*connection, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, connectTimeout, &Failure{
		Reason: ReasonUnreachable, Err: fmt.Errorf("load server %s: no session within %v", r.address(), connectTimeout),
	})
	defer cancel()
	token, err := readToken(r.opts.TokenFile)
	if err != nil {
		return nil, &Failure{Reason: ReasonConfiguration, Err: fmt.Errorf("token_file: %w", err)}
	}
	r.setPhase("connecting")
	client, err := loadcontrol.Dial(ctx, loadcontrol.ClientOptions{
		Address: r.address(), Token: token, CAFile: r.opts.CAFile, Pin: r.opts.Pin,
		CertFile: r.opts.CertFile, KeyFile: r.opts.KeyFile, Local: r.opts.LocalAddr(), Family: r.opts.Family,
	})
	if err != nil {
		return nil, failed(ctx, r.address(), err)
	}
	light.fit(client, bytes)
	flow, err := r.kind.Traffic().Connect(ctx, &ControlConn{
		Beside: light.bytes(), Loaded: light.loaded,
		Client: client, Options: &r.opts, Env: r.env, Target: r.target, Log: r.log, Phase: r.setPhase,
		address: r.address(), Open: loadcontrol.Open{Test: r.kind.Kind(), Run: run, Bytes: bytes, Duration: r.timeout()},
	})
	if err != nil {
		_ = client.Close() // err is returned
		return nil, err
	}
	return &connection{Flow: flow, beside: light, lost: client.Done(), why: client.Err, close: func() {
		_ = client.Close() // the load server ends the session in any case
		flow.Close()
	}}, nil
}

// address returns the load server's host:port.
func (r *runner) address() string { return net.JoinHostPort(r.host, strconv.Itoa(int(r.port))) }

// Failed converts an error of opening a session into that of the run.
func (d *ControlConn) Failed(ctx context.Context, err error) error {
	return failed(ctx, d.address, err)
}

func failed(ctx context.Context, address string, err error) error {
	if ctx.Err() != nil {
		return WithCause(ctx, err)
	}
	if refusal, ok := errors.AsType[*loadcontrol.Refusal](err); ok {
		return fmt.Errorf("load server %s: %w", address, refusal)
	}
	return &Failure{Reason: ReasonUnreachable, Err: &RemoteError{Err: err, Package: "loadcontrol"}}
}

// RemoteError is an error of a session whose text names the load server instead of the package
// that returned it.
type RemoteError struct {
	Err     error
	Package string
}

// Error is "load server 192.0.2.1:8620: ..." of "loadcontrol: 192.0.2.1:8620: ...".
func (f *RemoteError) Error() string {
	if text, ok := strings.CutPrefix(f.Err.Error(), f.Package+": "); ok {
		return "load server " + text
	}
	return f.Err.Error()
}

// Unwrap returns Err.
func (f *RemoteError) Unwrap() error { return f.Err }

// readToken returns the first line of a file that is neither empty nor a comment. An empty name
// returns no token; a client certificate may replace it.
func readToken(file string) (string, error) {
	if file == "" {
		return "", nil
	}
	content, err := keyfile.Read(file)
	if err != nil {
		return "", err
	}
	for line := range bytes.Lines(content) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return string(line), nil
		}
	}
	return "", fmt.Errorf("%s holds no token; \"oneway token new\" makes one", file)
}
