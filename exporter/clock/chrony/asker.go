package chrony

import (
	"context"
	"time"

	fb "github.com/facebook/time/ntp/chrony"

	"oneway.example/exporter/metric"
)

// sourcesEvery is how often the poll interval is asked for anew.
const sourcesEvery = time.Minute

// asker is the state of Monitor.poll, of one goroutine.
type asker struct {
	*Monitor
	counters []metric.Series
	link     *link
	address  int    // index of the address in use
	failed   int    // attempts since the last success
	reported uint32 // the reasons that were told since the last success, a bit each
	settler  settler

	pollInterval time.Duration // of the selected source; zero: unknown
	askedSources time.Duration // monotonic time of the last such question
	askedRefID   uint32
}

// ask makes one attempt and returns the pause before the next.
func (a *asker) ask(ctx context.Context) time.Duration {
	started := a.options.Steps.Read().Mono
	err := a.attempt(ctx)
	if ctx.Err() != nil {
		return 0
	}
	if err != nil {
		a.fail(err)
		pause := a.options.Interval
		for i := 1; i < a.failed && pause < a.options.MaxBackOff; i++ {
			pause *= 2
		}
		return min(pause, max(a.options.MaxBackOff, a.options.Interval))
	}
	if a.failed > 0 {
		a.options.Log.Info("chronyd answers", "address", a.addresses[a.address].String(), "failed_queries", a.failed)
		a.failed = 0
	}
	return max(0, a.options.Interval-(a.options.Steps.Read().Mono-started))
}

// attempt connects if need be, and asks for tracking and, now and then, for
// the sources.
func (a *asker) attempt(ctx context.Context) error {
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
	t, err := link.tracking()
	if err != nil {
		return err
	}
	after := a.steps.Check()
	if before.Steps != after.Steps {
		return nil // of which era is the reply? The next one is clear.
	}
	r, err := newReport(t, before, after)
	if err != nil {
		return err
	}
	settled := a.settler.reply(after, r)
	if settled == after.Steps { // else a step may have made it so
		if err := r.contradiction(before.Now.Wall, after.Now.Wall); err != nil {
			return err
		}
	}
	err = a.askSources(t, r)
	k := &knowledge{last: r, previous: r, settled: settled}
	if old := a.now.Load(); old != nil && old.last.steps == r.steps {
		k.previous = old.last
	}
	k.drift = driftOf(k.previous, r)
	k.holdover = a.holdover(r)
	a.now.Store(k)
	return err
}

// askSources learns the poll interval when the source has changed, and every
// minute: chronyd adapts it.
func (a *asker) askSources(t *fb.Tracking, r *report) error {
	if t.RefID == 0 || t.RefID == a.askedRefID && r.at-a.askedSources < sourcesEvery {
		return nil
	}
	a.askedRefID, a.askedSources = t.RefID, r.at // a failure, too, is enough for a minute
	interval, err := a.link.pollInterval()
	if err != nil {
		return err
	}
	if interval > 0 { // with no source selected, the last one's is still the best guess
		a.pollInterval = interval
	}
	return nil
}

// holdover is the age of an update at which the source counts as lost. A
// source of several is not updated from at each of its polls, so the interval
// seen between updates counts where it is longer, within reason.
func (a *asker) holdover(r *report) time.Duration {
	const unknown = 64 * time.Second // chronyd's default minpoll
	poll := a.pollInterval
	if poll == 0 {
		poll = unknown
	}
	seen := roundUp(max(0, r.interval))
	return holdoverPolls * max(poll, min(seen, 8*poll))
}

// fail counts the failure, says so once for each reason, and drops the connection: what may
// still be on its way there is not wanted any more.
func (a *asker) fail(err error) {
	reason := causeOf(err)
	a.counters[reason].Add(1)
	if a.failed == 0 {
		a.reported = 0
	}
	if told := uint32(1) << reason; a.reported&told == 0 {
		a.reported |= told
		a.options.Log.Warn("chronyd gives no usable answer", "address", a.addresses[a.address].String(),
			"reason", reason.String(), "err", err)
	}
	a.failed++
	a.drop()
	a.address = (a.address + 1) % len(a.addresses)
}

func (a *asker) drop() {
	if a.link != nil {
		_ = a.link.Close()
		a.link = nil
	}
}

func (a *asker) close() {
	a.drop()
	for _, c := range a.counters {
		c.Close()
	}
}
