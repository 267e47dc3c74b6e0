// Package loadtest has the common part of all load tests: the schedule, the link and its data quota,
// the session with the load server, the report, and the metrics of runs. A Kind decides what is
// sent and evaluates it.
//
//	calendar -> link (link.Table) -> quota -> dial
//	  -> Traffic.Connect -> Flow.Perform -> Kind.Publish -> report
//
// If another process of the host manages links and quotas, a Lessor leases them.
//
// A run starts only within its calendar and with its link and quota. It always ends, and the quota is
// then settled with the bytes that were sent. Each run that was due is counted once, with its
// outcome (metric.Runs).
package loadtest

import (
	"context"
	"log/slog"
	"net/netip"
	"time"

	"oneway.example/exporter/core/instant"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/load/loadcontrol"
	"oneway.example/exporter/probe"
)

// Kind is a type of load test: its limits, its traffic and its metrics. A Prober calls it from one
// goroutine.
type Kind interface {
	// Kind is the name of the type in logs and reports.
	Kind() string
	// Bytes is the most IP bytes that a run sends, both directions together. The runner reserves
	// them.
	Bytes() int64
	// Duration is the planned time of all of a run's traffic, both directions together. The default
	// timeout of the run and its progress follow from it.
	Duration() time.Duration
	// Traffic returns the local half of the traffic of a run, which performs the test.
	Traffic() Traffic
	// Publish sets the metrics of a completed run; it is not called for other runs. Gauges of the
	// previous run that this one does not set are removed.
	Publish(v *Values, r *Run)
}

// Undisturbed is implemented by a Kind whose result the packets of others change: no light packets go beside it.
type Undisturbed interface {
	// Undisturbed does nothing.
	Undisturbed()
}

// Traffic is the local half of a type of traffic.
type Traffic interface {
	// Counters creates the counters to which Account adds.
	Counters(s *metric.Scope, directions []sample.Direction)
	// Connect opens a session. Convert errors of d.Client with d.Failed.
	Connect(ctx context.Context, d *ControlConn) (Flow, error)
}

// ControlConn is a control connection on which a session can be opened.
type ControlConn struct {
	Client *loadcontrol.Client
	// Open has all fields but Traffic and Parameters.
	Open    loadcontrol.Open
	Options *Options
	Env     probe.Env
	Target  probe.Target
	Log     *slog.Logger
	// Phase reports the present step in a few words.
	Phase func(string)
	// Beside are the IP bytes of light packets beside the traffic: Connect adds them to the bytes of Open.
	Beside int64
	// Loaded reports a time in which the traffic loaded a direction, by this host's clock: from its first packet to the
	// last one that the sender sent.
	Loaded func(d sample.Direction, from, to instant.Time)

	address string
}

// Flow is the traffic of one session.
type Flow interface {
	// Remote returns the address of the load server.
	Remote() netip.AddrPort
	// Follow sets the receiver of progress.
	Follow(f func(Progress))
	// Perform runs the test and sets r.Body and r.Summary, on an error to the results so far. It
	// returns at once when ctx ends.
	Perform(ctx context.Context, r *Run) error
	// Account adds to the outcome what was sent, also of a run that failed, and to the counters.
	Account(o *Outcome, s *metric.Scope)
	// Close releases the resources of the flow; the control connection is closed already.
	Close()
}

// Lessor leases the link from another process of this host: from the agent, to a test of the
// terminal. The limits of this process apply too.
type Lessor interface {
	// Lease waits at most wait until this run holds the link. The error is a *Failure or the cause
	// of ctx.
	Lease(ctx context.Context, wait time.Duration) (Lease, error)
}

// Lease is a link leased for one attempt of a run.
type Lease interface {
	// Reserve reserves IP bytes of the link's quota.
	Reserve(bytes int64) error
	// BeginSending reports that the run begins to send.
	BeginSending()
	// Return ends the lease with the IP bytes that were sent. It is called once.
	Return(forward, reverse int64)
}

// ownLink is the Lessor of a process that manages its links itself.
type ownLink struct{}

func (ownLink) Lease(context.Context, time.Duration) (Lease, error) { return ownLink{}, nil }
func (ownLink) Reserve(int64) error                                 { return nil }
func (ownLink) BeginSending()                                       {}
func (ownLink) Return(_, _ int64)                                   {}
