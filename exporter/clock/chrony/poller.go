package chrony

import (
	"cmp"
	"context"
	"time"

	fb "github.com/facebook/time/ntp/chrony"

	"oneway.example/exporter/metric"
)

// sourcesEvery is the interval of requests for the poll interval.
const sourcesEvery = time.Minute

// poller is the state of Monitor.poll, used by one goroutine.
type poller struct {
	*Monitor
	series   *metric.Scope
	link     *link
	address  int              // index of the address in use
	failed   int              // attempts since the last success
	pause    time.Duration    // after the last of these
	reported map[failure]bool // reasons logged since the last success
	settler  settler

	pollInterval  time.Duration // of the selected source; zero: unknown
	sourcesPolled time.Duration // monotonic time of the last such request
	polledRefID   uint32
}

func newPoller(m *Monitor) *poller {
	a := &poller{Monitor: m, series: metric.NewScope(m.options.Sink, Name)}
	for _, f := range failures() {
		a.series.Total(metric.ClockQueryFailures, 0, string(f))
	}
	return a
}

// pollOnce makes one attempt and returns the pause before the next.
func (a *poller) pollOnce(ctx context.Context) time.Duration {
	started := a.steps.Check().Now.Mono
	err := a.attempt(ctx)
	if ctx.Err() != nil {
		return 0
	}
	if err != nil {
		a.fail(err)
		a.pause = min(max(2*a.pause, a.options.Interval), max(a.options.maxBackOff, a.options.Interval))
		return a.pause
	}
	if a.failed > 0 {
		a.options.Log.Info("Replies from chronyd", "address", a.addresses[a.address].String(), "failed_queries", a.failed)
		a.failed, a.pause = 0, 0
	}
	return max(0, a.options.Interval-(a.steps.Check().Now.Mono-started))
}

// attempt connects if necessary, and requests tracking and, at intervals, the sources.
func (a *poller) attempt(ctx context.Context) error {
	if a.link == nil {
		conn, err := a.options.dial(a.addresses[a.address])
		if err != nil {
			return &queryError{unreachable, err}
		}
		a.link = newLink(conn)
	}
	link := a.link
	defer context.AfterFunc(ctx, func() { _ = link.Close() })() // ends a wait for a reply
	before := a.steps.Check()
	t, err := request[*fb.ReplyTracking](link, fb.NewTrackingPacket())
	if err != nil {
		return err
	}
	after := a.steps.Check()
	if before.Steps != after.Steps {
		return nil // the era of the reply is not known; the next one is used
	}
	r, err := newReport(&t.Tracking, before, after)
	if err != nil {
		return err
	}
	settled := a.settler.reply(after, r)
	if settled == after.Steps { // otherwise a step may be the cause
		if err := r.contradiction(before.Now.Wall, after.Now.Wall); err != nil {
			return err
		}
	}
	err = a.pollSources(r)
	previous := r
	if old := a.now.Load(); old != nil && old.last.steps == r.steps {
		previous = old.last
	}
	a.now.Store(&replyState{last: r, previous: previous, settled: settled, drift: driftOf(previous, r), holdover: a.holdover(r)})
	return err
}

// pollSources requests the poll interval when the source has changed, and every minute, since chronyd adapts it.
func (a *poller) pollSources(r *report) error {
	if r.refID == 0 || r.refID == a.polledRefID && r.at-a.sourcesPolled < sourcesEvery {
		return nil
	}
	a.polledRefID, a.sourcesPolled = r.refID, r.at // also after a failure the next request is in a minute
	interval, err := a.link.pollInterval()
	if err != nil {
		return err
	}
	if interval > 0 { // without a selected source the last interval is kept
		a.pollInterval = interval
	}
	return nil
}

// holdover is the age of an update at which the source counts as lost. With several sources not every poll is an update, so
// the observed interval between updates counts if it is longer, up to a limit.
func (a *poller) holdover(r *report) time.Duration {
	poll := cmp.Or(a.pollInterval, 64*time.Second) // default: chronyd's default minpoll
	seen := roundUp(max(0, r.interval))
	return holdoverPolls * max(poll, min(seen, 8*poll))
}

// fail counts the failure, logs it once per reason, and closes the connection, since late replies on it are not used.
func (a *poller) fail(err error) {
	reason := causeOf(err)
	a.series.Series(metric.ClockQueryFailures, string(reason)).Add(1)
	if a.failed == 0 {
		a.reported = map[failure]bool{}
	}
	if !a.reported[reason] {
		a.reported[reason] = true
		a.options.Log.Warn("No usable reply from chronyd", "address", a.addresses[a.address].String(),
			"reason", string(reason), "err", err)
	}
	a.failed++
	a.drop()
	a.address = (a.address + 1) % len(a.addresses)
}

func (a *poller) drop() {
	if a.link != nil {
		_ = a.link.Close()
		a.link = nil
	}
}
