package agent

import (
	"context"
	"log/slog"
	"net/netip"
	"reflect"
	"sync"

	"oneway.example/exporter/calibration"
	"oneway.example/exporter/clock"
	"oneway.example/exporter/config"
	"oneway.example/exporter/metric"
	"oneway.example/exporter/responder"
	"oneway.example/exporter/sched"
)

// planResponder checks a responder section; nil if there is none.
func planResponder(c *config.Config, m clock.Monitor, links *sched.Links) (*responder.Options, *config.Problem) {
	if c.Responder == nil {
		return nil, nil
	}
	o := responderOptions(c)
	if _, err := responder.New(o, responder.Env{Sink: metric.Discard{}, Clock: m, Links: links}); err != nil {
		return nil, c.Problem("responder", "cannot be used: "+err.Error())
	}
	return &o, nil
}

func responderOptions(c *config.Config) responder.Options {
	r := c.Responder
	o := responder.Options{
		CertFile: r.CertFile, KeyFile: r.KeyFile, ClientCAFile: r.ClientCAFile, TokensFile: r.TokensFile, StateDir: c.StateDir,
		Link: r.Link, MaxConnections: r.MaxConnections, MaxSessions: r.MaxSessions, Allow: r.Allow,
	}
	for _, l := range r.Listen {
		if l.Addr.IsValid() {
			o.Listen = append(o.Listen, netip.AddrPortFrom(l.Addr, l.Port))
			continue
		}
		o.Listen = append(o.Listen, netip.AddrPortFrom(netip.IPv4Unspecified(), l.Port))
		if hasIPv6() {
			o.Listen = append(o.Listen, netip.AddrPortFrom(netip.IPv6Unspecified(), l.Port))
		}
	}
	return o
}

// responderKeeper runs the responder that the configuration wants.
type responderKeeper struct {
	log   *slog.Logger
	env   responder.Env
	retry retry

	mu      sync.Mutex
	options *responder.Options // nil: none is wanted
	unit    *unit
	current *responder.Responder
}

func newResponderKeeper(sink metric.Sink, log *slog.Logger, m clock.Monitor, links *sched.Links, r retry) *responderKeeper {
	log = log.With("component", "responder")
	return &responderKeeper{log: log, env: responder.Env{Log: log, Sink: sink, Clock: m, Links: links}, retry: r}
}

// apply puts a section in force, if it differs from the one that is; that ends the
// sessions of the one before. Tokens and certificates are files that the responder
// itself reads again when they change, and end none.
func (k *responderKeeper) apply(ctx context.Context, o *responder.Options) {
	k.mu.Lock()
	old, unit := k.options, k.unit
	k.mu.Unlock()
	if reflect.DeepEqual(old, o) {
		return
	}
	if err := stopUnit("the responder", unit); err != nil {
		k.log.Error("Responder did not end", "err", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.options, k.unit, k.current = o, nil, nil
	if o != nil {
		k.unit = startUnit(ctx, k.log, k.retry, k.run)
	}
}

// run is one run of a responder; the sockets are opened in it.
func (k *responderKeeper) run(ctx context.Context) error {
	k.mu.Lock()
	env := k.env
	env.Clock = clock.Widen(env.Clock, calibration.ModerationAt(k.options.Listen))
	r, err := responder.New(*k.options, env)
	k.current = r
	k.mu.Unlock()
	if err != nil {
		return err
	}
	return r.Run(ctx)
}

func (k *responderKeeper) stop() error {
	k.mu.Lock()
	unit := k.unit
	k.mu.Unlock()
	return stopUnit("the responder", unit)
}

// ResponderStatus is about the far end of others' heavy tests.
type ResponderStatus struct {
	// Listen are the configured addresses.
	Listen []string
	// Running: its sockets are open. Error is why they are not.
	Running bool
	Error   string
	// Pin is the hash of its key, for clients.
	Pin string
	// Connections and Sessions are open now.
	Connections, Sessions int
	// Opened sessions and Refused requests since it started, and the octets of UDP
	// payload that it has received and sent.
	Opened, Refused uint64
	Received, Sent  int64
}

func (k *responderKeeper) status() *ResponderStatus {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.options == nil || k.unit == nil {
		return nil
	}
	s := &ResponderStatus{Error: unitError(k.unit)}
	for _, a := range k.options.Listen {
		s.Listen = append(s.Listen, a.String())
	}
	if k.current == nil {
		return s
	}
	now := k.current.Status()
	s.Running = s.Error == "" && len(now.Addrs) > 0
	s.Pin, s.Connections, s.Sessions, s.Opened = now.Pin, now.Connections, now.Sessions, now.Opened
	s.Received, s.Sent = now.Received, now.Sent
	for _, n := range now.Refused {
		s.Refused += n
	}
	return s
}
