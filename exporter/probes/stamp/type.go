// Package stamp is the probe that measures one-way delay, loss, variation and
// voice quality with STAMP test packets (RFC 8762, RFC 8972).
//
// A Type owns one hub (a socket) for each local address, address family, timestamping card and interface, and a further one
// for sessions without replies, which move to another source port; a Prober is one path, and adds its session to the hub of
// the address it resolves to:
//
//	pacer thread --Fire--> session --build--> hub batch --sendmmsg--> peer
//	hub goroutine <--recvmmsg-- replies, kernel TX timestamps, ICMP errors
//	              --received/transmitted/failed--> session
//	session --packets sent, replies, time--> account --verdicts--> estimator --> histograms
//	account, estimator --once a second--> snapshot --> series, status, report
//
// The account counts packets in both directions and decides about each; the estimator computes delays and voice quality from
// its verdicts, and knows no account. Neither handles sockets. A session's mutex guards both.
//
// With our own reflector at the remote end every count of both directions is exact. With any other STAMP or
// TWAMP-Light reflector, values that cannot be determined are absent, and a reason is counted.
package stamp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"reflect"
	"sync"
	"time"

	"oneway.example/exporter/clock/phc"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/option"
	"oneway.example/exporter/net/tstamp"
	"oneway.example/exporter/net/wire/stampfmt"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/probe/target"
)

// Type makes STAMP probers. The zero value is not usable; see New.
type Type struct {
	openCard func(name string, log *slog.Logger) (card, error)

	portAge time.Duration // portAge, except in tests

	mu   sync.Mutex
	hubs map[hubKey]*hub
	// former are the ports where sessions without replies still receive, the oldest first.
	former map[*session][]formerPort
	// lastStart is the last assigned start time (monotonic).
	lastStart time.Duration
	// newest are the options of the newest path.
	newest *Options
}

// startGap is the least time between starts of sessions. Thousands of simultaneous starts would send their queries
// and open their series at the same time: the socket buffers of both ends would overflow, and packets would wait
// for seconds to be read. Our reflector, which listens on two addresses, accepts no more than 1,024 new sessions a
// second from one source.
const startGap = time.Millisecond

// startDelay returns how long a session that starts now has to wait; zero for the first one.
func (t *Type) startDelay(now time.Duration) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lastStart = max(now, t.lastStart+startGap)
	return t.lastStart - now
}

// hubKey is what probers have in common that share a hub.
type hubKey struct {
	local    netip.AddrPort
	hardware string // an interface; empty: no hardware timestamps
	device   string // an interface or VRF; empty: the kernel's choice
	// port distinguishes the sockets of the same local address, which have different source ports. Sessions begin with port 0,
	// and only move to higher ones.
	port int
}

// card is a phc.Clock, or that of a test.
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

// NewType makes the type for the registry, without an open socket.
func NewType() *Type {
	return &Type{openCard: openCard, portAge: portAge, hubs: map[hubKey]*hub{}, former: map[*session][]formerPort{}}
}

// Name is "stamp".
func (*Type) Name() string { return "stamp" }

// Document describes the probe.
func (*Type) Document() (doc string, options []option.Described) {
	o := DefaultOptions()
	return "Delay, loss, delay variation and voice quality of both directions, by test packets.", []option.Described{&o}
}

// FullKeys are those of voice quality.
func (*Type) FullKeys() []string {
	return []string{"codecs", "voice_models", "voice_impairments", "playout", "playout_delay"}
}

// CheckPeer checks the peer of a path.
func (*Type) CheckPeer(peer string) error {
	_, _, err := target.Host(peer, stampfmt.Port)
	return err
}

// New checks the options of one path. It opens nothing.
func (t *Type) New(env probe.Env, path probe.Target, decode func(...any) error) (probe.Prober, error) {
	o := DefaultOptions()
	if err := decode(&o); err != nil {
		return nil, err
	}
	return t.NewProber(env, path, o)
}

// NewProber is New with given options, for a single measurement of a terminal.
func (t *Type) NewProber(env probe.Env, path probe.Target, o Options) (*Prober, error) {
	if err := o.check(); err != nil {
		return nil, errors.Join(err, t.CheckPeer(path.Peer))
	}
	if o.slim = env.Profile == metric.Slim; o.slim {
		o.Codecs = nil
	}
	p := &Prober{hubs: t, env: env, path: path, opts: t.share(&o)}
	var err error
	if p.peer, err = target.New(&p.path, stampfmt.Port, &p.opts.Options, env.Log); err != nil {
		return nil, err
	}
	return p, nil
}

// Options returns the options in force.
func (p *Prober) Options() Options { return *p.opts }

// share returns the options of the newest path if they equal o: thousands of paths need one copy.
func (t *Type) share(o *Options) *Options {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !reflect.DeepEqual(t.newest, o) {
		t.newest = o
	}
	return t.newest
}

// acquire opens the hub of a key, or adds a user to it.
func (t *Type) acquire(key hubKey, env probe.Env) (*hub, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.acquireLocked(key, env)
}

// acquireLocked is acquire for a caller that holds mu.
func (t *Type) acquireLocked(key hubKey, env probe.Env) (*hub, error) {
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
			env.Log.Error("Receiving reflected packets failed", "local", key.local.String(), "err", err)
		}
	})
	running.Go(func() {
		h.keep(ctx, t.portAge, func(silent []*session) { go t.moveAll(silent, env) }, func(settled []*session) { go t.forgetAll(settled) }) // each may end this hub
	})
	unhook := env.Pacer.AddFlusher(h.flush)
	h.users, h.stop = 1, func() {
		unhook()
		cancel()
		h.close(running.Wait)
	}
	t.hubs[key] = h
	return h, nil
}

// release removes a user from the hub; the last one closes it.
func (t *Type) release(h *hub) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.releaseLocked(h)
}

// releaseLocked is release for a caller that holds mu.
func (t *Type) releaseLocked(h *hub) {
	if h.users--; h.users == 0 {
		delete(t.hubs, h.key)
		h.stop()
	}
}

// leave ends s and its use of its hub.
func (t *Type) leave(s *session) {
	t.mu.Lock()
	s.left = true
	h := s.hub.Load()
	t.forgetLocked(s, len(t.former[s]))
	t.mu.Unlock()
	h.remove(s, s.ssid)
	s.end()
	t.release(h)
}
