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
