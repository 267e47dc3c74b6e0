package reflector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"oneway.example/exporter/clock/phc"
	"oneway.example/exporter/core/hostport"
	"oneway.example/exporter/net/listen"
	"oneway.example/exporter/net/tstamp"
	"oneway.example/exporter/net/wire/stampfmt"
)

// publishInterval is the interval of metric updates.
const publishInterval = time.Second

// Reflector replies to test packets. New makes it; it runs once.
type Reflector struct {
	options Options
	env     Env
	shards  []*shard
	started chan struct{}
	begin   time.Time
	// openCard starts the card's clock: phc.Start, except in tests
	openCard func(name string, log *slog.Logger) (card, error)
	card     card // nil: no card timestamps; used by Run only
	listened *listen.Addresses

	mu      sync.Mutex // guards what follows
	sockets []*socket
	dropped uint64 // by the kernel, at sockets that are closed now
}

// card is a phc.Clock, or a fake one in tests.
type card interface {
	tstamp.HardwareClock
	Close()
}

// New checks o. It opens nothing: see Run.
func New(o Options, env Env) (*Reflector, error) {
	o.Listen = slices.Clone(o.Listen)
	wanted := o.MaxSessions
	if err := o.complete(); err != nil {
		return nil, err
	}
	if env.Log == nil {
		env.Log = slog.New(slog.DiscardHandler)
	}
	if o.MaxSessions < wanted {
		env.Log.Warn("Reduced max_sessions of the reflector to fit the memory limit",
			"max_sessions", wanted, "sessions", o.MaxSessions, "memory_limit_bytes", o.MemoryLimit)
	}
	r := &Reflector{options: o, env: env, started: make(chan struct{}), listened: listen.New(env.Log, o.Listen)}
	r.openCard = func(name string, log *slog.Logger) (card, error) { return phc.Start(name, log) }
	for range o.Listen {
		r.shards = append(r.shards, newShard(&r.options, rand.Uint32))
	}
	return r, nil
}

// Started is closed when the sockets are open, of all addresses that this host has.
func (r *Reflector) Started() <-chan struct{} { return r.started }

// Addrs are the listening addresses, with the actual ports. It is empty before Started and after Run.
func (r *Reflector) Addrs() []netip.AddrPort {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []netip.AddrPort
	for _, s := range r.sockets {
		all = append(all, s.conn.LocalAddr())
	}
	return all
}

// SetKeys replaces the keys while running. Sessions continue if their key, or its replacement, is among the new ones.
func (r *Reflector) SetKeys(keys []*stampfmt.Key) error {
	if r.options.RequireKey && len(keys) == 0 {
		return errors.New("reflector: set keys: no key given, want at least one with require_key")
	}
	for _, s := range r.shards {
		s.mu.Lock()
		s.keys = nil
		for _, k := range keys {
			s.keys = append(s.keys, k.Clone())
		}
		s.mu.Unlock()
	}
	return nil
}

// Run opens the sockets and replies until ctx ends, which is not an error. It returns when all its goroutines have
// ended.
func (r *Reflector) Run(ctx context.Context) error {
	r.begin = time.Now()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failures := make(chan error, len(r.options.Listen))
	var running, retrying sync.WaitGroup
	if err := r.open(func(s *socket) {
		running.Go(func() {
			if err := s.serve(); err != nil {
				failures <- err
				cancel()
			}
		})
		r.env.Log.Info("Reflector listens", "address", s.conn.LocalAddr().String())
	}); err != nil {
		return err
	}
	retrying.Go(func() { r.listened.Retry(ctx) })
	close(r.started)
	r.publish(ctx)
	retrying.Wait()
	err := r.close()
	running.Wait()
	select {
	case first := <-failures:
		return first
	default:
		return err
	}
}

// renew opens the sockets of link-local addresses again whose interface was made again. While there is no interface, the
// senders get no replies.
func (r *Reflector) renew() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.sockets {
		switch renewed, err := s.conn.Renew(); {
		case err != nil:
			r.env.Log.Debug("A socket cannot be opened again", "address", s.conn.LocalAddr().String(), "err", err)
		case renewed:
			r.env.Log.Info("Reflector listens again, since the interface was made again", "address", s.conn.LocalAddr().String())
		}
	}
}

// since is how long the reflector has been running.
func (r *Reflector) since() time.Duration { return time.Since(r.begin) }

// open opens the sockets, and calls serve with each, also with those that are opened later.
func (r *Reflector) open(serve func(*socket)) error {
	o := tstamp.Options{ReceiveBufferBytes: r.options.ReceiveBufferBytes, SendBufferBytes: sendBufferBytes}
	if name := r.options.Hardware; name != "" {
		c, err := r.openCard(name, r.env.Log)
		if err != nil {
			return fmt.Errorf("reflector: %w", err)
		}
		r.card, o.Hardware = c, c
	}
	err := r.listened.Open(func(i int) error {
		a := r.options.Listen[i]
		c, err := tstamp.Open(a, o)
		switch {
		case err != nil && r.dispensable(a, err):
			return nil
		case err != nil:
			return explain(a, err)
		}
		s := newSocket(c, r.shards[i], r.env.Clock, r.since)
		r.mu.Lock()
		r.sockets = append(r.sockets, s)
		r.mu.Unlock()
		r.refuseOwnPorts()
		serve(s)
		return nil
	})
	if err == nil && len(r.Addrs()) == 0 {
		err = errors.New("reflector: listen: this host has neither IPv4 nor IPv6")
	}
	if err != nil {
		return errors.Join(err, r.close())
	}
	return nil
}

// refuseOwnPorts makes all shards ignore packets from ports of reflectors.
func (r *Reflector) refuseOwnPorts() {
	ports := []uint16{stampfmt.Port}
	for _, a := range r.Addrs() {
		ports = append(ports, a.Port())
	}
	for _, s := range r.shards {
		s.mu.Lock()
		s.refusedPorts = ports
		s.mu.Unlock()
	}
}

// dispensable reports whether the reflector can run without address a: the unspecified address of a family that this
// host does not have.
func (r *Reflector) dispensable(a netip.AddrPort, err error) bool {
	if !a.Addr().IsUnspecified() || !errors.Is(err, syscall.EAFNOSUPPORT) {
		return false
	}
	for _, other := range r.options.Listen {
		if other.Addr().Is4() != a.Addr().Is4() {
			r.env.Log.Warn("Reflector skips an address family that this host does not have", "address", a.String())
			return true
		}
	}
	return false
}

// explain adds the remedy to an error of listening.
func explain(a netip.AddrPort, err error) error {
	what := a.String()
	if a.Addr().IsUnspecified() {
		what = fmt.Sprintf(":%d (%s)", a.Port(), a.Addr())
	}
	return fmt.Errorf("reflector: listen udp %s: %w", what, hostport.ListenError(err, a.String(), "reflector"))
}

func (r *Reflector) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for _, s := range r.sockets {
		r.dropped += s.conn.Stats().Dropped
		errs = append(errs, s.conn.Close())
	}
	r.sockets = nil
	if r.card != nil {
		r.card.Close()
	}
	return errors.Join(errs...)
}
