package chrony

import (
	"cmp"
	"context"
	"time"

	fb "github.com/facebook/time/ntp/chrony"

	"oneway.example/exporter/core/metric"
)

// sourcesEvery is the interval of requests for the poll interval.
const sourcesEvery = time.Minute

// poller is the state of Monitor.poll, used by one goroutine.
type poller struct {
	*Monitor
	series         *metric.Scope
	link           *link
	address        int              // index of the address in use
	failed         int              // attempts since the last success
	pause          time.Duration    // after the last of these
	errs           []error          // the last one of each address
	reported       map[failure]bool // reasons logged since the last success
	unsynced       time.Duration    // monotonic: since when chronyd replies without being synchronized; 0: it is
	unsyncedLogged bool
	settler        settler

	pollInterval  time.Duration // of the selected source; zero: unknown
	sourcesPolled time.Duration // monotonic time of the last such request
	polledRefID   uint32
}

func newPoller(m *Monitor) *poller {
	a := &poller{Monitor: m, errs: make([]error, len(m.addresses)), series: metric.NewScope(m.options.Sink, Name)}
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
		if a.failed < len(a.addresses) {
			return 0 // the next address at once
		}
		a.pause = min(max(2*a.pause, a.options.Interval), max(a.options.maxBackOff, a.options.Interval))
		return a.pause
	}
	if a.failed > 0 {
		a.options.Log.Info("Replies from chronyd", "address", a.addresses[a.address].String(), "failed_queries", a.failed)
		a.failed, a.pause = 0, 0
		a.fault.Store(nil)
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
	a.logSynchronized(r)
	a.now.Store(&replyState{last: r, previous: previous, settled: settled, drift: driftOf(previous, r), holdover: a.holdover(r)})
	return err
}

// logSynchronized logs that chronyd has been unsynchronized for a while, longer than it takes after its start, and that it is
// synchronized again.
func (a *poller) logSynchronized(r *report) {
	at := a.addresses[a.address].String()
	switch {
	case r.synchronized(a.options.TrustLocal):
		if a.unsyncedLogged {
			a.options.Log.Info("chronyd is synchronized", "address", at)
		}
		a.unsynced, a.unsyncedLogged = 0, false
	case a.unsynced == 0:
		a.unsynced = r.at
	case !a.unsyncedLogged && r.at-a.unsynced >= a.options.silentAfter:
		a.options.Log.Warn("This host's clock is not synchronized", "address", at, "remedy", r.remedy())
		a.unsyncedLogged = true
	}
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

// fail counts the failure and closes the connection, since late replies on it are not used. When all addresses have failed,
// it logs what to do, once per reason.
func (a *poller) fail(err error) {
	reason := causeOf(err)
	a.series.Series(metric.ClockQueryFailures, string(reason)).Add(1)
	if a.failed == 0 {
		a.reported = map[failure]bool{}
	}
	a.failed++
	a.errs[a.address] = err
	if a.failed >= len(a.addresses) {
		text, worst := explain(a.addresses, a.errs)
		a.fault.Store(&text)
		if why := causeOf(worst); !a.reported[why] {
			a.reported[why] = true
			a.options.Log.Warn("No usable reply from chronyd", "reason", string(why), "remedy", text)
		}
	}
	a.drop()
	a.address = (a.address + 1) % len(a.addresses)
}

func (a *poller) drop() {
	if a.link != nil {
		_ = a.link.Close()
		a.link = nil
	}
}
