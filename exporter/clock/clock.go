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
	"time"

	"oneway.example/exporter/instant"
	"oneway.example/exporter/sample"
)

// State of the clock's discipline.
type State uint8

// The states. The zero value is Silent: nothing has been heard yet.
const (
	// Silent: the clock daemon has not answered for too long.
	Silent State = iota
	// Synchronised: disciplined by a source that is being heard.
	Synchronised
	// Holdover: the source was lost; the bound grows with the skew.
	Holdover
	// Stepping: CLOCK_REALTIME jumped a moment ago; nothing is valid until the
	// daemon has settled again.
	Stepping
	// Unsynchronised: the daemon itself says so.
	Unsynchronised
	// None: the configuration says that nothing disciplines this clock.
	None
)

// States lists all values in order.
func States() []State {
	return []State{Silent, Synchronised, Holdover, Stepping, Unsynchronised, None}
}

// String is the value of the metric label `state`.
func (s State) String() string {
	switch s {
	case Silent:
		return "silent"
	case Synchronised:
		return "synchronised"
	case Holdover:
		return "holdover"
	case Stepping:
		return "stepping"
	case Unsynchronised:
		return "unsynchronised"
	case None:
		return "none"
	}
	return "invalid"
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

// Synchronised reports whether delays measured now are valid.
func (q Quality) Synchronised() bool { return q.Bound.Reason == sample.OK }

// Monitor watches one clock.
type Monitor interface {
	// Quality says what is known of the clock at the instant at. It may be called
	// from any goroutine, does not block and does not allocate.
	Quality(at instant.Time) Quality
	// Run keeps the knowledge fresh and publishes the clock's metrics, until ctx
	// ends. It returns nil then, and an error only for a fault that no retry mends.
	Run(ctx context.Context) error
}
