package probe

import (
	"context"
	"net/netip"
	"time"

	"oneway.example/exporter/core/lightreason"
)

// OnDemand is implemented by a Type that can measure a target once, when a client asks for it. Types of load tests do not
// implement it: a client without a token must not be able to fill a link.
type OnDemand interface {
	// NewOnce is Type.New for one measurement. What it opens, it shares with no other prober, so that the series of a
	// measurement are those of its own packets.
	NewOnce(env Env, target Target, decode func(into ...any) error) (Once, error)
	// OnceDoc says, in sentences, which defaults of NewOnce differ from New, and how long a measurement takes. Keys of options
	// stand in braces: {count}.
	OnceDoc() string
}

// Once is one measurement.
type Once interface {
	// Fits reports whether the options allow this address of a target.
	Fits(peer netip.Addr) bool
	// Longest is the most time that Measure needs to send count test packets and to decide the outcome of each.
	Longest(count uint64) time.Duration
	// Measure sends count test packets and waits for the outcome of each, at most until ctx ends. It may be called once.
	// Then nothing is left running, and the series keep their final values until Env.Scopes are closed.
	Measure(ctx context.Context, count uint64) (Outcome, error)
}

// Outcome is the result of one measurement. The series have the rest.
type Outcome struct {
	// Received and Lost are round trips.
	Received, Lost uint64
	// Failure is why none was received; empty: at least one was. Detail is the same in words.
	Failure lightreason.Reason
	Detail  string
}
