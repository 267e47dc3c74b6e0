// Package loadtest is what all tests that fill a link have in common: when they may run,
// the link and the data quota they need for it, the session with the load server at the
// remote end, the report and the metrics
// about runs. What is sent, and what is found in it, is a Kind's.
//
//	calendar -> link (link.Table) -> quota -> dial
//	  -> Traffic.Connect -> Flow.Perform -> Kind.Publish -> report
//
// Where another process of the host keeps links and quotas, a Lessor leases them.
//
// A run never starts outside its calendar, nor without its link and its quota; it
// always ends, and the quota is then settled with what was really sent. Each run that
// was due is counted once, whatever became of it (metric.Runs).
package loadtest

import (
	"context"
	"log/slog"
	"net/netip"
	"time"

	"oneway.example/exporter/loadcontrol"
	"oneway.example/exporter/metric"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/sample"
)

// Kind is a load test: what it needs, what its traffic is, and what it publishes. A Prober
// calls it from one goroutine.
type Kind interface {
	// Kind is its word, for logs and reports.
	Kind() string
	// Bytes is the most IP bytes that a run sends, both directions together: what is set
	// aside of the quota.
	Bytes() int64
	// Duration is how long all of a run's traffic takes as planned, both directions together.
	// The run's time-out and its progress come from it.
	Duration() time.Duration
	// Traffic is what a run sends: its type's half at this end, which performs the test.
	Traffic() Traffic
	// Publish gives a completed run's values to the sink; it is not called for others.
	// What the run before had published and this one does not set is cleared.
	Publish(v *Values, r *Run)
}

// Traffic is a type of traffic at this end.
type Traffic interface {
	// Counters makes the counters known that Account adds to.
	Counters(s *metric.Scope, directions []sample.Direction)
	// Connect opens a session of it. The errors of d.Client are d.Failed's.
	Connect(ctx context.Context, d *Dialed) (Flow, error)
}

// Dialed is a control connection on which a session is to be opened.
type Dialed struct {
	Client *loadcontrol.Client
	// Open has all but the traffic and its parameters.
	Open    loadcontrol.Open
	Options *Options
	Env     probe.Env
	Target  probe.Target
	Log     *slog.Logger
	// Phase tells in a few words what is going on.
	Phase func(string)

	where string
}

// Flow is the traffic of one session.
type Flow interface {
	// Remote is the load server's address.
	Remote() netip.AddrPort
	// Follow has progress told to f from now on.
	Follow(f func(Progress))
	// Perform runs the test, and leaves what it found in r.Body and r.Summary. On an error it
	// leaves what it has found so far. It returns at once when ctx ends.
	Perform(ctx context.Context, r *Run) error
	// Account puts into the outcome what was moved, whatever became of the run, and adds it to
	// the counters.
	Account(o *Outcome, s *metric.Scope)
	// Close frees what the flow has; the control connection has ended.
	Close()
}

// Lessor leases a run the link that another process of this host keeps: the agent, to a test
// from the terminal. What this process itself knows of links and quotas holds, too.
type Lessor interface {
	// Lease waits until the link is the run's, for wait at the most. The error is a *Failure,
	// or what has ended ctx.
	Lease(ctx context.Context, wait time.Duration) (Lease, error)
}

// Lease is a link that is leased for one try of a run.
type Lease interface {
	// Reserve sets IP bytes of the link's quota aside.
	Reserve(bytes int64) error
	// Sending says that the link is being filled from now on.
	Sending()
	// Return gives the link back. It is called once, with the IP bytes that were sent.
	Return(forward, reverse int64)
}

// own is the Lessor of a process that keeps its links itself.
type own struct{}

func (own) Lease(context.Context, time.Duration) (Lease, error) { return own{}, nil }
func (own) Reserve(int64) error                                 { return nil }
func (own) Sending()                                            {}
func (own) Return(_, _ int64)                                   {}
