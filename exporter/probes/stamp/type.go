// Package stamp is the probe that measures one-way delay, loss, variation and
// voice quality with STAMP test packets (RFC 8762, RFC 8972).
//
// A Type owns one hub (a socket) for each local address, family, card that stamps, and interface; a
// Prober is one path, and leases its session to the hub of the address it resolves to:
//
//	pacer thread --Fire--> session --build--> hub batch --sendmmsg--> peer
//	hub goroutine <--recvmmsg-- answers, kernel TX stamps, ICMP errors
//	              --received/transmitted/failed--> session
//	session --numbers and counts--> account --what is decided--> estimator --> histograms
//	        --stamps--> estimator
//	account, estimator --once a second--> snapshot --> series, status, report
//
// The account counts packets in both directions, the estimator makes delays and voice quality of their
// stamps; neither knows a socket. A session's mutex guards both.
//
// With our own reflector at the remote end every count of both directions is
// exact; with any other STAMP or TWAMP-Light reflector, what cannot be known is
// absent, and a reason is counted.
package stamp

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"oneway.example/exporter/metric"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/target"
	"oneway.example/exporter/tstamp"
	"oneway.example/exporter/tstamp/phc"
	wire "oneway.example/exporter/wire/stamp"
)

// Type makes STAMP probers. The zero value is not usable; see New.
type Type struct {
	openCard func(name string, log *slog.Logger) (card, error)

	mu   sync.Mutex
	hubs map[hubKey]*hub
	// lastStart is the turn that was given last (monotonic).
	lastStart time.Duration
}

// startGap is how far apart sessions start. Thousands that started at once would send their queries, and open
// their series, at the same time: more than the socket buffers of both ends take, and work for seconds in
// which packets wait to be read. And a reflector of ours, which listens on two addresses, lets one source begin
// no more than 1,024 sessions a second for long.
const startGap = time.Millisecond

// turn says for how long a session that starts now has to wait: the first one not at all.
func (t *Type) turn(now time.Duration) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lastStart = max(now, t.lastStart+startGap)
	return t.lastStart - now
}

// hubKey is what probers must have in common to share a hub.
type hubKey struct {
	local    netip.AddrPort
	hardware string // an interface; empty: no card stamps
	device   string // an interface or VRF; empty: the kernel's choice
}

// card is a phc.Clock, or a test's.
type card interface {
	tstamp.HardwareClock
	Uncertainty() (time.Duration, bool)
	Close()
}

func openCard(name string, log *slog.Logger) (card, error) {
	c, err := phc.Start(name, log)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// New returns the type, with no socket open.
func New() *Type { return &Type{openCard: openCard, hubs: map[hubKey]*hub{}} }

// Name is "stamp".
func (*Type) Name() string { return "stamp" }

// New checks the options of one path. Nothing is opened.
func (t *Type) New(env probe.Env, path probe.Target, decode func(...any) error) (probe.Prober, error) {
	o := DefaultOptions()
	if err := decode(&o); err != nil {
		return nil, err
	}
	return t.NewProber(env, path, o)
}

// NewProber is New with options at hand, for a terminal's single measurement.
func (t *Type) NewProber(env probe.Env, path probe.Target, o Options) (*Prober, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.slim = metric.ProfileOf(env.Sink) == metric.Slim; o.slim {
		o.Codecs = nil
	}
	log := env.Log.With("path", path.Path, "probe", path.Probe)
	peer, err := target.New(path.Peer, wire.Port, o.Options, log)
	if err != nil {
		return nil, err
	}
	return &Prober{hubs: t, env: env, path: path, peer: peer, opts: o, log: log}, nil
}

// acquire opens the hub of a key, or joins it.
func (t *Type) acquire(key hubKey, env probe.Env) (*hub, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if h := t.hubs[key]; h != nil {
		h.users++
		return h, nil
	}
	h, err := newHub(key, t.openCard, env)
	if err != nil {
		return nil, fmt.Errorf("stamp: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := h.receive(); err != nil {
			env.Log.Error("Receiving test packets ended", "local", key.local.String(), "err", err)
		}
	})
	running.Go(func() { h.keep(ctx) })
	unhook := env.Pacer.AddFlusher(h.flush)
	h.users, h.stop = 1, func() {
		unhook()
		cancel()
		h.close()
		running.Wait()
	}
	t.hubs[key] = h
	return h, nil
}

// release leaves the hub; the last one closes it.
func (t *Type) release(key hubKey) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.hubs[key]
	if h.users--; h.users == 0 {
		delete(t.hubs, key)
		h.stop()
	}
}
