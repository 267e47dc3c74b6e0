// Package chrony is the monitor of a clock that chronyd disciplines.
//
// It sends requests to chronyd's command port (candm.h, protocol version 6) once a second, and computes Quality from the
// last replies: a chronyd that does not reply, hangs, sends false replies or floods delays no caller. It does not use
// adjtimex: chronyd maintains the kernel's error estimate only with `rtcsync`, and in whole microseconds.
//
// The states:
//
//	Silent          no reply for 30 s; until then the last one is aged
//	Stepping        the clock was stepped, and chronyd has not had an update since
//	Unsynchronized  leap status 3, stratum 0 or 16, no reference, or local mode;
//	                or the aged bound is above bound.Limit
//	Holdover        no update for four poll intervals; valid, the bound grows
//	Synchronized    otherwise
//
// The bound does not cover errors of chronyd's source, nor updates of chronyd since its last reply, which an interval of
// one second keeps small. A chronyd that was stopped and resumed (SIGSTOP, a frozen container) during a slew misinterprets
// the samples queued meanwhile: chronyd 4.3 has been observed 1.3 ms off with a bound of 0.5 ms, for some seconds.
package chrony

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/clocks/internal/publish"
	"oneway.example/exporter/core/bound"
	"oneway.example/exporter/core/ctxtime"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/sample"
)

// holdoverPolls is the number of poll intervals without an update after which the source counts as lost. chronyd itself
// waits for eight.
const holdoverPolls = 4

// Monitor watches chronyd. Its methods are safe for concurrent use; Run is called once.
type Monitor struct {
	options   Options
	addresses []address
	steps     *clock.StepDetector
	now       atomic.Pointer[replyState]
	fault     atomic.Pointer[string] // why there is no reply; nil: there are, or the reason is not known yet
	// overdueAge is the age of the last reply after which the next one is overdue.
	overdueAge time.Duration
}

var _ clock.Monitor = (*Monitor)(nil)

// replyState is the state from the last replies. It is immutable.
type replyState struct {
	// previous is the reply before last, for instants before last; it may be equal to last.
	last, previous *report
	// drift is the possible change of the offset.
	drift drift
	// settled is the count of steps up to which chronyd has settled.
	settled uint64
	// holdover is the age of an update at which the source counts as lost.
	holdover time.Duration
}

// New checks the options and returns a monitor without a reply. It opens nothing.
func New(o Options) (*Monitor, error) {
	addresses, err := parseAddresses(o.Address)
	if err != nil {
		return nil, err
	}
	if o.Interval < 0 || o.Interval > maxInterval {
		return nil, fmt.Errorf("chrony: interval is %v; it must be between 0 and %v", o.Interval, maxInterval)
	}
	if !(o.MaxClockError >= 0 && o.MaxClockError <= 1) {
		return nil, fmt.Errorf("chrony: max clock error is %v; it must be a ratio from 0 to 1, such as 1e-6", o.MaxClockError)
	}
	o.MaxClockError = cmp.Or(o.MaxClockError, defaultMaxClockError)
	o.Interval = cmp.Or(o.Interval, defaultInterval)
	o.holdDown = cmp.Or(o.holdDown, defaultHoldDown)
	o.silentAfter = cmp.Or(o.silentAfter, defaultSilentAfter)
	o.maxBackOff = cmp.Or(o.maxBackOff, defaultMaxBackOff)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.Steps.Log = cmp.Or(o.Steps.Log, o.Log)
	if o.dial == nil {
		o.dial = func(a address) (net.Conn, error) { return a.dial(o.SocketDir) }
	}
	return &Monitor{options: o, addresses: addresses, steps: clock.NewStepDetector(o.Steps), overdueAge: 2*o.Interval + queryTimeout}, nil
}

// Quality is the state of the clock at the instant at.
func (m *Monitor) Quality(at instant.Time) clock.Quality {
	check := m.steps.Check()
	return m.qualityAt(m.now.Load(), check, at)
}

func (m *Monitor) qualityAt(k *replyState, check clock.Check, at instant.Time) clock.Quality {
	q := clock.Quality{Steps: check.Steps}
	if k == nil || check.Now.Mono-k.last.at > m.options.silentAfter {
		q.State, q.Bound.Reason = clock.Silent, sample.ClockSilent
		return q
	}
	q.Offset = time.Duration(k.last.offset * 1e9)
	q.LastUpdate = k.last.updated
	switch {
	case check.Steps != k.settled || check.Since() < m.options.holdDown:
		q.State, q.Bound.Reason = clock.Stepping, sample.LocalStepped
		return q
	case !k.last.synchronized(m.options.TrustLocal):
		q.State, q.Bound.Reason = clock.Unsynchronized, sample.LocalUnsynchronized
		return q
	case check.Now.Mono-k.last.updatedAt() > k.holdover:
		q.State = clock.Holdover
	default:
		q.State = clock.Synchronized
	}
	if q.Bound = bound.ClockBound(m.bound(k, check, at)); !q.Synchronized() {
		q.State = clock.Unsynchronized
	}
	return q
}

// bound is the error bound at the instant at. While the clock slews, its offset was larger before: an instant before the
// last reply gets the larger of the bounds of the replies around it.
func (m *Monitor) bound(k *replyState, check clock.Check, at instant.Time) time.Duration {
	moment := minus(time.Duration(at), check.Offset) // on the monotonic clock
	if at.IsZero() {
		moment = check.Now.Mono
	}
	silence := check.Now.Mono - k.last.at - m.overdueAge
	bound := k.last.boundAt(minus(moment, k.last.at), silence, m.options.MaxClockError, k.drift)
	if moment < k.last.at {
		bound = max(bound, k.previous.boundAt(minus(moment, k.previous.at), 0, m.options.MaxClockError, k.drift))
	}
	return roundUp(bound)
}

// Run polls chronyd, detects steps and publishes, until ctx ends. It retries after every error.
func (m *Monitor) Run(ctx context.Context) error {
	var polling sync.WaitGroup
	defer polling.Wait()
	polling.Go(func() { m.poll(ctx) })
	return publish.Run(ctx, m.steps, m.options.Sink, Name, m.report)
}

// report is the state to publish.
func (m *Monitor) report() publish.Report {
	check := m.steps.Check()
	k := m.now.Load()
	r := publish.Report{Quality: m.qualityAt(k, check, check.Now.Wall)}
	if r.Quality.State != clock.Silent {
		r.Reference, r.Offset, r.Frequency, r.Skew = k.last.reference, k.last.offset, k.last.frequency, k.last.skew
	}
	return r
}

// poll sends requests repeatedly, over one connection until an error, and then over a new one, after a growing pause.
func (m *Monitor) poll(ctx context.Context) {
	a := newPoller(m)
	defer a.series.Close()
	defer a.drop()
	for ctxtime.Sleep(ctx, a.pollOnce(ctx)) { // pollOnce returns the time until the next request
	}
}

// Name is the value of the metric label `clock`.
const Name = "chrony"

const (
	defaultInterval = time.Second
	// defaultHoldDown is the minimum time after a step in which the clock is not trusted.
	defaultHoldDown = 5 * time.Second
	// defaultSilentAfter is the age at which the last reply expires, several times the longest pause.
	defaultSilentAfter = 30 * time.Second
	// defaultMaxBackOff is the longest pause between attempts.
	defaultMaxBackOff = 10 * time.Second
	// defaultMaxClockError is chronyd's default.
	defaultMaxClockError = 1e-6
)

// queryTimeout limits one request. chronyd replies from memory in well under a millisecond, unless the host is overloaded.
const queryTimeout = 500 * time.Millisecond

// maxInterval is the largest Interval; some multiples of it are still a Duration.
const maxInterval = 24 * time.Hour

// Options configure the monitor. The zero value uses the local chronyd, as chronyc does.
type Options struct {
	// Address is "unix:///run/chrony/chronyd.sock" or "udp://127.0.0.1:323". Empty: both of these and udp://[::1]:323, in
	// turn until one replies.
	Address string
	// SocketDir is the directory of the client's end of a Unix socket. chronyd must be able to write to it. Empty: the
	// directory of chronyd's socket, as with chronyc; that needs root or the user of chronyd.
	SocketDir string
	// Interval is the time between requests, from 0 to 24 h; zero: 1 s.
	Interval time.Duration
	// MaxClockError is chronyd's maxclockerror as a ratio, which the protocol does not report: the rate at which the clock
	// may drift between updates. Zero: 1e-6, chronyd's default. Set it if chrony.conf does.
	MaxClockError float64
	// TrustLocal treats chronyd's local mode (`local stratum`, reference 7F7F0101) as a synchronized clock. It is correct
	// only on the host whose clock defines the time of an isolated network; elsewhere it hides the loss of all sources.
	TrustLocal bool
	// Sink receives the clock's metrics; nil: they are discarded.
	Sink metric.Sink
	// Log receives a record when chronyd stops and starts to reply; nil: no log.
	Log *slog.Logger
	// Steps configures the detection of steps.
	Steps clock.StepOptions

	// Set by tests only: the sockets, and the times of the defaults above.
	dial                              func(address) (net.Conn, error)
	holdDown, silentAfter, maxBackOff time.Duration
}
