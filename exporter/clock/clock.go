// Package clock determines the error bound of this host's clock relative to UTC, and whether the clock is trusted.
//
// A Monitor is queried for every packet, so it never blocks and never allocates; Run updates its state in the background.
// The packages below clocks implement the sources: clocks/chrony chronyd's command protocol, clocks/static a configured
// bound for hosts that share one clock, clocks/none a clock that is not trusted. watchers/gpsd and watchers/pps are not
// Monitors: they report the state of the receiver and the pulse that the clock daemon uses, and do not contribute to the
// bound.
package clock

import (
	"context"
	"math"
	"time"

	"oneway.example/exporter/core/bound"
	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/net/wire/timefmt"
)

// State is the state of the clock's synchronization.
type State uint8

// The states. The zero value is Silent: no reply yet.
const (
	// Silent: no reply of the clock daemon for too long.
	Silent State = iota
	// Synchronized: disciplined by a source with recent updates.
	Synchronized
	// Holdover: the source was lost; the bound grows with the skew.
	Holdover
	// Stepping: CLOCK_REALTIME was stepped recently; delays are invalid until the daemon has settled again.
	Stepping
	// Unsynchronized: reported by the daemon.
	Unsynchronized
	// None: by the configuration nothing disciplines this clock.
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

// Quality is the state of the clock at one instant.
type Quality struct {
	State State
	// Bound is the clock's error bound relative to UTC, aged to the requested instant, and the reason why it must not be
	// used, if any.
	Bound sample.Bound
	// Offset is the offset that the daemon is still correcting; positive: the clock is fast.
	Offset time.Duration
	// Steps is the number of detected steps of CLOCK_REALTIME. Timestamps taken at different counts must not be
	// subtracted.
	Steps uint64
	// LastUpdate is the time of the daemon's last update from its source; zero if unknown.
	LastUpdate instant.Time
}

// Synchronized reports whether delays measured now are valid.
func (q Quality) Synchronized() bool { return q.Bound.Reason == sample.OK }

// Monitor watches one clock.
type Monitor interface {
	// Quality is the state of the clock at the instant at. It is safe for concurrent use, does not block and does not
	// allocate.
	Quality(at instant.Time) Quality
	// Run updates the state and publishes the clock's metrics until ctx ends. It returns nil then, and an error only for
	// a permanent fault.
	Run(ctx context.Context) error
}

// Explainer is a Monitor that knows what to do if the clock is not trusted.
type Explainer interface {
	// Explain is why the clock is not trusted, with the remedy, in one line; empty if that is not known.
	Explain() string
}

// Explain is that of m, if m is an Explainer.
func Explain(m Monitor) string {
	if e, ok := m.(Explainer); ok {
		return e.Explain()
	}
	return ""
}

// ErrorEstimate is the quality as the Error Estimate of a STAMP packet (RFC 8762 section 4.2.1, RFC 4656 section 4.1.2). A
// clock that is not trusted has S=0 and the largest error of the field, so that a receiver that checks only one of them is
// not misled. A bound below the resolution of the timestamps is sent as that, 1 ns: the value of an unused field (0x8001,
// 0.23 ns) is never sent.
func (q Quality) ErrorEstimate(f timefmt.Format) timefmt.ErrorEstimate {
	if !q.Synchronized() {
		return timefmt.MakeErrorEstimate(math.MaxInt64, false, f)
	}
	return timefmt.MakeErrorEstimate(max(q.Bound.Error, time.Nanosecond), true, f)
}

// Widen is m with by added to its bound, for the Error Estimate in replies: by is the error of this host's timestamps that
// the sender cannot know (the interrupt moderation of an interface). The Error Estimate covers the timestamp, not only the
// clock (RFC 4656 section 4.1.2). Zero adds nothing; Run is that of m.
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
		q.Bound = bound.ClockBound(bound.Sum(q.Bound.Error, w.by))
	}
	return q
}

func (w widened) Run(ctx context.Context) error { return w.of.Run(ctx) }
