// Package stamp is the probe that measures one-way delay, loss, variation and
// voice quality with STAMP test packets (RFC 8762, RFC 8972).
//
// A Type owns one hub (a socket) for each local address, family and card that
// stamps; a Prober is one path, and lends its session to the hub of the address it resolves to:
//
//	pacer thread --Fire--> session --write--> hub batch --sendmmsg--> peer
//	hub goroutine <--recvmmsg-- answers, kernel TX stamps, ICMP errors
//	              --received/transmitted/failed--> session --conclude--> estimators --> sink
//
// With our own reflector at the far end every count of both directions is
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

	"oneway.example/exporter/hostport"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/tstamp"
	"oneway.example/exporter/tstamp/phc"
	wire "oneway.example/exporter/wire/stamp"
)

// Type makes STAMP probers. The zero value is not usable; see New.
type Type struct {
	openCard func(name string, log *slog.Logger) (card, error)

	mu   sync.Mutex
	hubs map[hubKey]*lease
}

// hubKey is what probers must have in common to share a hub.
type hubKey struct {
	local    netip.AddrPort
	hardware string // an interface; empty: no card stamps
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
func New() *Type { return &Type{openCard: openCard, hubs: map[hubKey]*lease{}} }

// Name is "stamp".
func (*Type) Name() string { return "stamp" }

// New checks the options of one path. Nothing is opened.
func (t *Type) New(env probe.Env, target probe.Target, decode func(any) error) (probe.Prober, error) {
	o := DefaultOptions()
	if err := decode(&o); err != nil {
		return nil, err
	}
	return t.NewProber(env, target, o)
}

// NewProber is New with options at hand, for a terminal's single measurement.
func (t *Type) NewProber(env probe.Env, target probe.Target, o Options) (*Prober, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	host, port, err := hostport.Split(target.Peer, wire.Port)
	if err != nil {
		return nil, &probe.OptionError{Key: "peer", Problem: fmt.Sprintf("is %q; %v", target.Peer, err)}
	}
	return &Prober{
		hubs: t, env: env, target: target, opts: o, host: host, port: port, told: map[fault]bool{},
		log: env.Log.With("path", target.Path, "probe", target.Probe),
	}, nil
}

// lease is a hub and how many probers use it.
type lease struct {
	hub   *hub
	users int
	stop  func()
}

// acquire opens the hub of a key, or joins it.
func (t *Type) acquire(key hubKey, env probe.Env) (*hub, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l := t.hubs[key]; l != nil {
		l.users++
		return l.hub, nil
	}
	h, err := t.newHub(key, env)
	if err != nil {
		return nil, err
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
	t.hubs[key] = &lease{hub: h, users: 1, stop: func() {
		unhook()
		cancel()
		h.close()
		running.Wait()
	}}
	return h, nil
}

// newHub opens a hub, and the card's clock first: without it there is nothing
// to be had that the configuration asks for.
func (t *Type) newHub(key hubKey, env probe.Env) (*hub, error) {
	var c card
	if key.hardware != "" {
		var err error
		if c, err = t.openCard(key.hardware, env.Log); err != nil {
			return nil, fmt.Errorf("stamp: %w", err)
		}
	}
	h, err := newHub(key.local, c, env.Sink, env.Log)
	if err != nil {
		if c != nil {
			c.Close()
		}
		return nil, fmt.Errorf("stamp: %w", err)
	}
	return h, nil
}

// release leaves the hub; the last one closes it.
func (t *Type) release(key hubKey) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.hubs[key]
	if l.users--; l.users == 0 {
		delete(t.hubs, key)
		l.stop()
	}
}
