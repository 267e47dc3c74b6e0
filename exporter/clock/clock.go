// Package clock says how far this host's clock may be from UTC, and whether to
// believe it at all.
//
// A Monitor is asked for every packet, so it never blocks and never allocates;
// what it knows is refreshed in the background by Run. The sub-packages ask the
// daemons: clock/chrony chronyd's command protocol, clock/static a configured
// bound for hosts that share one clock. clock/gpsd and clock/pps are no Monitors:
// they tell of the receiver and the pulse behind the daemon, whoever that is, and
// no bound is taken from them.
package clock

import (
	"context"
	"math"
	"time"

	"oneway.example/exporter/bound"
	"oneway.example/exporter/instant"
	"oneway.example/exporter/sample"
	"oneway.example/exporter/wire/timefmt"
)

// State of the clock's discipline.
type State uint8

// The states. The zero value is Silent: nothing has been heard yet.
const (
	// Silent: the clock daemon has not answered for too long.
	Silent State = iota
	// Synchronized: disciplined by a source that is being heard.
	Synchronized
	// Holdover: the source was lost; the bound grows with the skew.
	Holdover
	// Stepping: CLOCK_REALTIME jumped a moment ago; nothing is valid until the
	// daemon has settled again.
	Stepping
	// Unsynchronized: the daemon itself says so.
	Unsynchronized
	// None: the configuration says that nothing disciplines this clock.
	None
)

// States lists all values in order.
func States() []State {
	return []State{Silent, Synchronized, Holdover, Stepping, Unsynchronized, None}
}

// String is the value of the metric label `state`.
func (s State) String() string {
	words := [...]string{"silent", "synchronized", "holdover", "stepping", "unsynchronized", "none"}
	if int(s) >= len(words) {
		return "invalid"
	}
	return words[s]
}

// Quality is what is known of the clock at one instant.
type Quality struct {
	State State
	// Bound is the clock's error bound against UTC, aged to the instant asked
	// for, and the reason why it must not be used, if any.
	Bound sample.Bound
	// Offset is what the daemon is still correcting; positive: the clock is fast.
	Offset time.Duration
	// Steps counts the steps of CLOCK_REALTIME seen so far. Two stamps taken with
	// different counts in force must not be subtracted.
	Steps uint64
	// LastUpdate is when the daemon last heard its source; zero if unknown.
	LastUpdate instant.Time
}

// Synchronized reports whether delays measured now are valid.
func (q Quality) Synchronized() bool { return q.Bound.Reason == sample.OK }

// Monitor watches one clock.
type Monitor interface {
	// Quality says what is known of the clock at the instant at. It may be called
	// from any goroutine, does not block and does not allocate.
	Quality(at instant.Time) Quality
	// Run keeps the knowledge fresh and publishes the clock's metrics, until ctx
	// ends. It returns nil then, and an error only for a fault that no retry mends.
	Run(ctx context.Context) error
}

// ErrorEstimate is the quality as a STAMP packet carries it (RFC 8762 section
// 4.2.1, RFC 4656 section 4.1.2). A clock that is not to be trusted has S=0 and the
// largest error that the field holds, so that a receiver that looks at either is not
// misled. A bound below the resolution of our stamps is given as that, 1 ns: what an
// idle field would say (0x8001, 0.23 ns) is never sent.
func (q Quality) ErrorEstimate(f timefmt.Format) timefmt.ErrorEstimate {
	if !q.Synchronized() {
		return timefmt.MakeErrorEstimate(math.MaxInt64, false, f)
	}
	return timefmt.MakeErrorEstimate(max(q.Bound.Error, time.Nanosecond), true, f)
}

// Widen is m as the remote end of a path tells of it: with by added to its bound, for what this
// host's stamps are off that the sender cannot know (an interface's interrupt moderation).
// The Error Estimate is one of the stamp, not of the clock alone (RFC 4656 section 4.1.2).
// Zero adds nothing; Run is that of m.
func Widen(m Monitor, by time.Duration) Monitor {
	if by == 0 {
		return m
	}
	return widened{m, by}
}

type widened struct {
	of Monitor
	by time.Duration
}

func (w widened) Quality(at instant.Time) Quality {
	q := w.of.Quality(at)
	if q.Synchronized() {
		q.Bound = bound.Claim(bound.Sum(q.Bound.Error, w.by))
	}
	return q
}

func (w widened) Run(ctx context.Context) error { return w.of.Run(ctx) }
