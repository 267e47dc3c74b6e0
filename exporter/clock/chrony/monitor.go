// Package chrony is the clock that chronyd disciplines.
//
// It asks chronyd's command port (candm.h, protocol version 6) once a second and
// answers Quality from the last replies: a chronyd that is silent, hangs, lies or
// floods delays nobody. Not adjtimex: chronyd keeps the kernel's error estimate only
// with `rtcsync`, and in whole microseconds.
//
// The states:
//
//	Silent          no reply for Options.SilentAfter; until then the last one is aged
//	Stepping        the clock was stepped, and chronyd has not had an update since
//	Unsynchronised  leap status 3, stratum 0 or 16, no reference, or local mode;
//	                or the bound, aged, is beyond bound.Limit
//	Holdover        no update for four poll intervals; valid, the bound grows
//	Synchronised    all else
//
// What the bound cannot know: whether chronyd's source is right, and what chronyd has
// learnt since its last reply. Both are chronyd's business; a query a second keeps
// the second small. And a chronyd that was stopped and resumed (SIGSTOP, a frozen
// container) in the middle of a slew misjudges the samples that waited for it:
// chronyd 4.3 has been seen 1.3 ms off, claiming 0.5 ms, for some seconds.
package chrony

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"oneway.example/exporter/bound"
	"oneway.example/exporter/clock"
	"oneway.example/exporter/clock/internal/publish"
	"oneway.example/exporter/instant"
	"oneway.example/exporter/metric"
	"oneway.example/exporter/sample"
)

// holdoverPolls is after how many poll intervals without an update the source
// counts as lost. chronyd itself waits for eight.
const holdoverPolls = 4

// Monitor watches chronyd. Its methods are safe for concurrent use; Run is
// called once.
type Monitor struct {
	options   Options
	addresses []address
	steps     *clock.StepDetector
	now       atomic.Pointer[knowledge]
	// owed is after which age of the last reply another should have come.
	owed time.Duration
}

var _ clock.Monitor = (*Monitor)(nil)

// knowledge is what the last replies said. It is never changed, only replaced.
type knowledge struct {
	last *report
	// previous is the reply before, for instants before the last one; it may be
	// the last one again.
	previous *report
	// drift is how the offset may change.
	drift drift
	// settled is the count of steps up to which chronyd's word is good.
	settled uint64
	// holdover is the age of an update at which the source counts as lost.
	holdover time.Duration
}

// New checks the options and returns a monitor that knows nothing yet. It opens
// nothing.
func New(o Options) (*Monitor, error) {
	addresses, err := parseAddresses(o.Address)
	if err != nil {
		return nil, err
	}
	if o, err = o.withDefaults(); err != nil {
		return nil, err
	}
	return &Monitor{
		options:   o,
		addresses: addresses,
		steps:     clock.NewStepDetector(o.Steps),
		owed:      2*o.Interval + queryTimeout,
	}, nil
}

// Quality says what is known of the clock at the instant at.
func (m *Monitor) Quality(at instant.Time) clock.Quality {
	check := m.steps.Check()
	return m.qualityAt(m.now.Load(), check, at)
}

func (m *Monitor) qualityAt(k *knowledge, check clock.Check, at instant.Time) clock.Quality {
	q := clock.Quality{Steps: check.Steps}
	if k == nil || check.Now.Mono-k.last.at > m.options.SilentAfter {
		q.State, q.Bound.Reason = clock.Silent, sample.ClockSilent
		return q
	}
	q.Offset = time.Duration(k.last.offset * 1e9)
	q.LastUpdate = k.last.updated
	switch {
	case check.Steps != k.settled || check.Since() < m.options.HoldDown:
		q.State, q.Bound.Reason = clock.Stepping, sample.NearStepped
		return q
	case !k.last.synchronised(m.options.TrustLocal):
		q.State, q.Bound.Reason = clock.Unsynchronised, sample.NearUnsynchronised
		return q
	case check.Now.Mono-k.last.updatedAt() > k.holdover:
		q.State = clock.Holdover
	default:
		q.State = clock.Synchronised
	}
	if q.Bound = bound.Claim(m.bound(k, check, at)); !q.Synchronised() {
		q.State = clock.Unsynchronised
	}
	return q
}

// bound is the error bound at the instant at. While the clock slews, its
// offset was larger a moment ago: an instant before the last reply gets the
// larger of the bounds of the replies around it.
func (m *Monitor) bound(k *knowledge, check clock.Check, at instant.Time) time.Duration {
	moment := minus(time.Duration(at), check.Offset) // on the monotonic clock
	if at.IsZero() {
		moment = check.Now.Mono
	}
	silence := check.Now.Mono - k.last.at - m.owed
	bound := k.last.boundAt(minus(moment, k.last.at), silence, m.options.MaxClockError, k.drift)
	if moment < k.last.at {
		bound = max(bound, k.previous.boundAt(minus(moment, k.previous.at), 0, m.options.MaxClockError, k.drift))
	}
	return roundUp(bound)
}

// Run asks chronyd, watches for steps and publishes, until ctx ends. It never
// gives up: whatever is wrong with chronyd may be mended.
func (m *Monitor) Run(ctx context.Context) error {
	var background sync.WaitGroup
	defer background.Wait()
	background.Go(func() { m.poll(ctx) })
	background.Go(func() { _ = m.steps.Run(ctx) }) // only ever nil
	publish.New(m.options.Sink, m.options.Name).Run(ctx, m.report)
	return nil
}

// report is what is published now.
func (m *Monitor) report() publish.Report {
	check := m.steps.Check()
	k := m.now.Load()
	r := publish.Bare(m.qualityAt(k, check, check.Now.Wall))
	if r.Quality.State == clock.Silent {
		return r
	}
	r.Offset, r.Reference = k.last.offset, k.last.reference
	r.Frequency, r.Skew = k.last.frequency, k.last.skew
	return r
}

// poll asks again and again, through one connection while all goes well and
// through a new one, after a growing pause, when it does not.
func (m *Monitor) poll(ctx context.Context) {
	a := asker{Monitor: m, counters: m.openCounters()}
	defer a.close()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		timer.Reset(a.ask(ctx))
	}
}

func (m *Monitor) openCounters() []metric.Series {
	var counters []metric.Series
	for _, f := range failures() {
		counters = append(counters, m.options.Sink.Series(metric.ClockQueryFailures, m.options.Name, f.String()))
	}
	return counters
}

// causeOf is the reason for which err is counted.
func causeOf(err error) failure {
	if q, ok := errors.AsType[*queryError](err); ok {
		return q.reason
	}
	return malformed // the decoder's own complaint
}
