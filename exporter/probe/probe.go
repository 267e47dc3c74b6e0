// Package probe defines the interfaces of probes. It imports no concrete one.
//
// A probe is a Type: it decodes its own options and makes a Prober for one path. The agent runs Probers; the
// registry in package probes lists the Types.
package probe

import (
	"context"
	"log/slog"
	"net/netip"
	"time"

	"oneway.example/exporter/clock"
	"oneway.example/exporter/core/hostport"
	"oneway.example/exporter/core/localday"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/core/pathstate"
	"oneway.example/exporter/core/record"
	"oneway.example/exporter/net/sched"
	"oneway.example/exporter/probe/calibration"
	"oneway.example/exporter/probe/link"
	"oneway.example/exporter/probe/report"
)

// Env is the environment that the agent passes to every prober. All fields but Calibration are set; in tests Links,
// Light, Reports and Scopes may be nil too.
type Env struct {
	Log *slog.Logger
	// Sink is for the series of what probers share, such as a socket: those of one prober are in its Scope.
	Sink metric.Sink
	// Profile selects the series of the prober.
	Profile metric.Profile
	// Scopes has the scopes of the prober, which the agent closes when the prober has ended; nil: nothing closes them.
	Scopes *metric.Scopes
	Clock  clock.Monitor
	// Pacer is the one scheduler of the process; see sched.Pacer.
	Pacer *sched.Pacer
	// Calibration has the timestamp errors of this host's interfaces; nil: none are known.
	Calibration *calibration.Table
	// Links serializes load tests of one link, and holds its data quota.
	Links *link.Table
	// Local is the local calendar of the agent; nil: the time zone of this host without holidays.
	Local *localday.Clock
	// Reports stores the reports of load tests' runs.
	Reports *report.Store
	// HelperGroup is the delegated control group for helpers (helper.Options.Cgroup); empty: there is none.
	HelperGroup string
	// Light begins the streams of light packets that go beside load tests; nil: there are none.
	Light Light
	// Recorder takes raw samples; nil: there are no readers.
	Recorder *record.Recorder
}

// Scope makes a scope for series of a target, in the prober's profile. A run makes a fixed number of them.
func (e *Env) Scope(t Target) *metric.Scope {
	return e.Scopes.Add(e.Profile.Scope(e.Sink, t.Path, t.Probe))
}

// Target is one path as the configuration names it.
type Target struct {
	// Path and Probe are the names used as labels.
	Path, Probe string
	// Peer is the destination of the measurement as configured. The probe defines its syntax, such as a host with
	// an optional port (PeerKey).
	Peer string
	// Link is the path's first link; empty: the path names no links. See link.Filled.
	Link string
}

// Host is the host of a validated Peer, without port and brackets.
func (t Target) Host() string {
	host, _, _ := hostport.Split(t.Peer, 1)
	return host
}

// Type is a kind of probe.
type Type interface {
	// Document describes the type and its options in deploy/oneway.yml.
	option.Documented
	// Name is the word used in the configuration, such as "stamp".
	Name() string
	// New checks the options and makes a prober. It opens nothing and sends nothing, since check-config calls it
	// too. decode fills structs from the raw options, strictly; a wrong value is reported as *option.Error.
	New(env Env, target Target, decode func(into ...any) error) (Prober, error)
}

// FullOnly is implemented by a Type that has options without effect in profile slim.
type FullOnly interface {
	// FullKeys are the keys of these options. A configuration that gives one with profile slim is wrong.
	FullKeys() []string
}

// PeerChecker is implemented by a Type that can check a peer without the other options.
type PeerChecker interface {
	// CheckPeer returns the *option.Error of a peer, with the key PeerKey; nil: it is right.
	CheckPeer(peer string) error
}

// Sharing is implemented by a Type whose options include those of other types.
type Sharing interface {
	// UnusedKeys are the keys of options without effect on probes of this type. A configuration that gives one is wrong.
	UnusedKeys() []string
}

// Prober measures one path until its context ends.
type Prober interface {
	// Run measures until ctx ends. It then returns with its series closed and nothing left running. An error means
	// that measuring cannot continue; a peer without replies or an unresolvable name is no error.
	Run(ctx context.Context) error
	// Status is the state for the landing page.
	Status() Status
}

// Starter is implemented by a Prober that measures without a goroutine that waits: there may be thousands of them.
type Starter interface {
	// Start is Run, except that it returns end when the measurement has begun. The caller calls end when ctx has ended; then
	// its series are closed and nothing is left running. end is nil after an error, and if ctx ended before. The agent
	// repeats Start after a panic, as it does Run; what Start has started must not panic, which would end the process.
	Start(ctx context.Context) (end func(), err error)
}

// LoadTest is implemented by a Type of load tests: its Probers are LinkUsers, and use Target.Link.
type LoadTest interface {
	// LinkKey is the key of the option that names the link which the test fills.
	LinkKey() string
	// HostKey is the key of the option that is the remote end in place of the peer; empty: there is none.
	HostKey() string
	// Requirements are the options that each probe must have.
	Requirements() []Requirement
}

// Requirement is an option that a probe must have.
type Requirement struct {
	Key string
	// Instead is the key of an option that replaces it; empty: none does.
	Instead string
	// Hint tells how to get a value.
	Hint string
}

// Check is the error of an option that is missing; given reports whether a key has a value.
func (r Requirement) Check(given func(key string) bool) error {
	return option.Missing(!given(r.Key) && (r.Instead == "" || !given(r.Instead)), r.Key, "%s", r.Hint)
}

// LinkUser is implemented by a Prober that fills a link.
type LinkUser interface {
	// UsedLink returns the link, the test and the remote end.
	UsedLink() LinkUse
}

// LinkUse is the use of a link by a load test.
type LinkUse struct {
	// Kind is the test's name, such as "saturation"; Link is the link that it occupies.
	Kind, Link string
	// Host and Port are the load server's, as configured.
	Host string
	Port uint16
	// Share is the part of the time that its runs take by their plan, without waiting.
	Share float64
	// Runs is the most runs of a day.
	Runs int
	// Every is the time between two runs.
	Every time.Duration
	// Bytes are the IP bytes that the link's quota must have left for a run.
	Bytes int64
}

// FactSource is implemented by a light Prober, whose path has a state by these facts.
type FactSource interface {
	Facts() pathstate.Facts
}

// Addressed is implemented by a Prober that sends to its peer all the time.
type Addressed interface {
	// Address is the peer's current address; the zero Addr: unknown.
	Address() netip.Addr
}

// Status is one prober's state in words and its last results.
type Status struct {
	// Up: the peer replies. State describes the current activity in a few words, Reason why it is faulty (empty if
	// it is not).
	Up            bool
	State, Reason string
	// LastSuccess is when the last reply arrived; zero: never.
	LastSuccess time.Time
	// Results are in display order. Light has the values that light probes share as numbers; Values is a struct with the
	// others, or nil, whose type is told by Valued.
	Results []Result
	Light   LightValues
	Values  any
	// Cause is why it is faulty, in one word: a reason of METRICS.md, or one of Causes; empty: it is not. Next is when a load test is due; zero: it runs, or never.
	Cause string
	Next  time.Time
}

// Result is one line of a Status, such as the delay forward: 30.1 ms ± 0.2 ms.
type Result = report.Line

// PeerKey is the Key of an *option.Error about the path's peer, which is not an option of the probe.
const PeerKey = "peer"
