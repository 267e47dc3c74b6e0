package heavy

import (
	"context"
	"time"

	"oneway.example/exporter/control"
)

// Kind is what a heavy test does, and what it finds. A Prober calls it from one goroutine.
type Kind interface {
	// Kind is its word, for limits, logs and reports.
	Kind() control.Kind
	// Bytes is the most IP octets that a run sends, both directions together: what is set
	// aside of the budget.
	Bytes() int64
	// Duration is how long all transfers of a run take as planned, both directions together.
	// The run's time-out and its progress come from it.
	Duration() time.Duration
	// Perform runs the test: it transfers, and leaves what it found in r.Body and r.Summary.
	// On an error it leaves what it has found so far. It returns at once when ctx ends.
	Perform(ctx context.Context, s *Session, r *Run) error
	// Publish gives a completed run's values to the sink; it is not called for others.
	// What the run before had published and this one does not set is cleared.
	Publish(v *Values, r *Run)
}

// Fitter is what a Kind may be besides: one that makes a run fit what the far end allows.
// Without it, a run that wants more than its token has left for the day is refused.
type Fitter interface {
	// Fit is told what the token allows, and the octets of IP and UDP headers of a packet,
	// before the session is asked for: after Bytes and before Perform. It returns how many IP
	// octets the run will send at the most, which is then announced in place of Bytes; 0 if
	// nothing fits: then the far end may say so itself.
	Fit(limits control.Limits, overhead int) int64
}
