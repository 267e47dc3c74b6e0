// Package loadtest has the common part of the runs of all load tests: the calendar, the link and its data quota, the
// report, the metrics and the status. A Test opens a session and performs the run in it; package loadsession has the
// sessions with a load server of this program, which are one way to perform a run.
//
//	calendar -> link (link.Table) -> quota -> Test.Open
//	  -> Session.Perform -> Session.Account -> Test.Publish -> report
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
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/endclock"
)

// Test is a load test of one path: its limits, its sessions and its metrics. A Prober calls it from one goroutine.
type Test interface {
	// Kind is the name of the type in logs and reports.
	Kind() string
	// Remote returns the host and port of the remote end, as configured.
	Remote() (host string, port uint16)
	// Directions returns the directions to be tested, in order.
	Directions() []sample.Direction
	// Bytes returns the most IP bytes that a run sends, both directions together: the runner reserves them. left is the rest
	// of the link's quota (quota.Usage.Left). The runner calls it once for each attempt of a run, and before the first with 0:
	// the least that a run needs.
	Bytes(left int64) int64
	// Duration is the planned time of all of a run's traffic, both directions together. The default
	// timeout of the run and its progress follow from it.
	Duration() time.Duration
	// Open opens the session of a run. An error that is not a *Failure counts as internal.
	Open(ctx context.Context, a *Attempt) (Session, error)
	// Publish sets the metrics of a completed run; it is not called for other runs. Gauges of the
	// previous run that this one does not set are removed.
	Publish(v *Values, r *Run)
}

// Accompanied is implemented by a Test that can have light test packets during its load: the working delay. Its sessions are
// Reflecting.
type Accompanied interface {
	// LightPackets returns the options of the packets.
	LightPackets() LightPackets
}

// LightPackets are the options of light packets during the load.
type LightPackets struct {
	// Interval is the time between packets; zero: none are sent.
	Interval time.Duration
	// LossTimeout is the time after which a packet is lost.
	LossTimeout time.Duration
	DSCP        int
}

// Session is an open session of one run.
type Session interface {
	// Remote is the address of the remote end.
	Remote() string
	// Perform performs the run and sets r.Body and r.Summary, on an error to the results so far. It
	// returns at once when ctx ends.
	Perform(ctx context.Context, r *Run) error
	// Account adds to the outcome what was sent, also of a run that failed, and to the counters. Perform has returned.
	Account(o *Outcome, s *metric.Scope)
	// Close ends the session at both ends.
	Close()
}

// Breakable is implemented by a Session that may end by itself, such as one with a control connection.
type Breakable interface {
	// Done is closed when the session has ended.
	Done() <-chan struct{}
	// Err is why it has ended, with the name of the remote end.
	Err() error
}

// Reflecting is implemented by a Session whose remote end has a STAMP reflector for packets during the load.
type Reflecting interface {
	// Reflect opens the reflector for at most this payload of packets.
	Reflect(ctx context.Context, bytes int64) (Reflector, error)
}

// Reflector is an open reflector. Local is the source address of the packets, Key the shared secret of their
// authenticated mode.
type Reflector struct {
	Peer  netip.AddrPort
	Local netip.Addr
	Key   []byte
}

// Delayed is implemented by a Run.Body with one-way delays of transfers that may end before traffic of the run proves a clock wrong.
type Delayed interface {
	// Withhold removes these delays and tells whether there were any.
	Withhold() bool
}

// Attempt is what a run has for the session that it opens.
type Attempt struct {
	// Run is the ID of the run.
	Run string
	// Bytes is what Test.Bytes has returned. It is reserved, as are the bytes of the packets during the load.
	Bytes int64
	// Timeout is the limit of the run's time after Open.
	Timeout time.Duration
	Env     probe.Env
	Target  probe.Target
	Log     *slog.Logger
	// Phase reports the present step in a few words, Progress how much of the traffic is done.
	Phase    func(string)
	Progress func(Progress)
	// Clocks is whether traffic of the attempt has proven a clock wrong; the light packets find it, too.
	Clocks *endclock.Proof

	light *lightPackets
}

// LightBytes is the most IP bytes of light packets during the load, both directions together; 0: none will be sent.
func (a *Attempt) LightBytes() int64 { return a.light.bytes() }

// LimitLight limits the packets during the load to a rate in packets a second, and to what is left of a limit of IP bytes
// of the day after this many bytes of the load. holder has the limits at the remote end, such as "the token". It is called by Open,
// if at all. left is math.MaxInt64 without one.
func (a *Attempt) LimitLight(holder string, rate int, load, left int64) {
	a.light.limit(holder, rate, load, left)
}

// Loaded reports a time in which the traffic loaded a direction, by this host's clock: from its first packet to the
// last one that the sender sent.
func (a *Attempt) Loaded(d sample.Direction, from, to instant.Time) { a.light.loaded(d, from, to) }

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
