// Package ondemand measures a target once, when a client asks for it, as blackbox_exporter does: the client selects a
// target and a module, the set of options that the configuration has for it.
//
//	Measure -> module and target are allowed -> a turn -> addresses of the name -> one of them is allowed
//	        -> pause of the target -> probe.Once.Measure -> families of the reply, in the request's own sink
//
// Whoever reaches the agent's web server can ask, so that nothing depends on the client: the number of packets, their size
// and rate are those of the module, a target and its address must be in a list, and few measurements run at a time. The
// package has no knowledge of HTTP.
package ondemand

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"oneway.example/exporter/core/errtext"
	"oneway.example/exporter/core/hostport"
	"oneway.example/exporter/core/lightreason"
	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/probe"
)

// Options are the environment of a Service. Sink and Log are required.
type Options struct {
	// Sink has the series of all requests; those of one request go to its own sink.
	Sink metric.Sink
	Log  *slog.Logger
	// Lookup resolves names; nil: net.DefaultResolver.
	Lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Config is what may be measured, and how.
type Config struct {
	Modules []Module
	Targets Targets
	// Port is that of targets without one.
	Port uint16
	// MaxConcurrent is the number of measurements at the same time, TargetPause the least time between the begins of two
	// measurements of one address.
	MaxConcurrent int
	TargetPause   time.Duration
}

// Module is a named set of options.
type Module struct {
	Name, Type string
	// Count is the number of test packets.
	Count uint64
	// New makes the prober of one measurement.
	New func(sink metric.Sink, log *slog.Logger, target probe.Target) (probe.Once, error)
}

// Request is a request of a client.
type Request struct {
	// Target is a host with an optional port, Module the name of a module.
	Target, Module string
	// Client is the source of the request. One client cannot use all turns; the zero value can.
	Client netip.Addr
	// Within is the time in which the measurement must end.
	Within time.Duration
	// Sink receives the families of the reply; nobody else writes to it. Nothing closes the series.
	Sink metric.Sink
	// Log receives the steps of the measurement.
	Log *slog.Logger
}

// Service measures on demand. Its methods are safe for concurrent use. Make one with New.
type Service struct {
	options Options
	turns   turns

	mu       sync.Mutex // guards the fields below
	config   *Config    // nil: nothing is measured
	series   *metric.Scope
	active   int
	done     map[string]uint64 // requests by result
	stop     context.CancelFunc
	ctx      context.Context // of the measurements; nil: stopped
	finished sync.WaitGroup
}

// New makes a service that refuses all requests until Configure.
func New(o Options) *Service {
	if o.Lookup == nil {
		o.Lookup = net.DefaultResolver.LookupNetIP
	}
	return &Service{options: o, done: map[string]uint64{}}
}

// Configure puts a configuration in force for the requests that follow; nil: none are accepted. Measurements under way
// continue.
func (s *Service) Configure(c *Config) {
	s.mu.Lock()
	old := s.series
	switch {
	case c == nil:
		s.series = nil
	case old != nil:
		old = nil
	default:
		s.series = metric.NewScope(s.options.Sink)
		s.series.Set(metric.OnDemandRunning, float64(s.active))
		clear(s.done)
	}
	if s.config = c; c != nil && s.ctx == nil {
		s.ctx, s.stop = context.WithCancel(context.Background())
	}
	s.mu.Unlock()
	if old != nil {
		old.Close()
	}
}

// Stop refuses all further requests, ends the measurements under way, and returns when they have ended.
func (s *Service) Stop() {
	s.Configure(nil)
	s.mu.Lock()
	if s.ctx != nil {
		s.stop()
		s.ctx = nil
	}
	s.mu.Unlock()
	s.finished.Wait()
}

// Status is the state of a service.
type Status struct {
	Modules []ModuleStatus `json:"modules"`
	// Running is the number of measurements now, MaxConcurrent their limit.
	Running       int `json:"running"`
	MaxConcurrent int `json:"max_concurrent"`
	// Requests are the requests since the section is configured, by result.
	Requests map[string]uint64 `json:"requests"`
}

// ModuleStatus is a module.
type ModuleStatus struct {
	Name string `json:"name"`
	Type string `json:"type"`
	// Count is the number of test packets.
	Count uint64 `json:"test_packets"`
}

// Status returns the current state; nil: not configured.
func (s *Service) Status() *Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.config == nil {
		return nil
	}
	now := &Status{Running: s.active, MaxConcurrent: s.config.MaxConcurrent, Requests: maps.Clone(s.done)}
	for _, m := range s.config.Modules {
		now.Modules = append(now.Modules, ModuleStatus{m.Name, m.Type, m.Count})
	}
	return now
}

// count counts a request that has ended.
func (s *Service) count(result string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done[result]++
	if s.series != nil {
		s.series.Series(metric.OnDemandRequests, result).Add(1)
	}
}

// Malformed counts a request that cannot be read, and returns its error.
func (s *Service) Malformed(text string) error {
	if s.Status() == nil {
		return unconfigured()
	}
	s.count(string(Malformed))
	return &Refused{Kind: Malformed, Text: text}
}

// activate changes the number of measurements.
func (s *Service) activate(change int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active += change
	if s.series != nil {
		s.series.Set(metric.OnDemandRunning, float64(s.active))
	}
}

// Measure measures. The sink then has the families of the reply, also if the target does not reply. An error is a
// *Refused, or the end of ctx.
func (s *Service) Measure(ctx context.Context, r Request) error {
	begin := time.Now()
	out, err := s.measure(ctx, r, begin)
	why, ok := errors.AsType[*Refused](err)
	switch {
	case ok:
		s.count(string(why.Kind))
		return err
	case ctx.Err() != nil:
		s.count("canceled")
		return ctx.Err()
	case err != nil:
		s.count(string(Stopped))
		return refused(Stopped, "The agent ends.")
	case out.Failure != "":
		s.count("failure")
	default:
		s.count("success")
	}
	reply(r, out, time.Since(begin))
	return nil
}

// measure returns the outcome. An error is a *Refused, or the end of a context.
func (s *Service) measure(ctx context.Context, r Request, begin time.Time) (out probe.Outcome, err error) {
	c, own, err := s.enter()
	if err != nil {
		return out, err
	}
	defer s.finished.Done()
	ctx, cancel := context.WithDeadline(ctx, begin.Add(r.Within))
	defer cancel()
	defer context.AfterFunc(own, cancel)()
	m, to, once, err := c.admit(r, s.options.Log)
	if err != nil {
		return out, err
	}
	latest := begin.Add(r.Within - once.Longest(m.Count))
	waiting, end := context.WithDeadline(ctx, latest)
	defer end()
	if !s.turns.enter(waiting, r.Client, c.MaxConcurrent) {
		if ctx.Err() != nil {
			return out, ctx.Err()
		}
		return out, &Refused{Busy, fmt.Sprintf("%s running, the limit (max_concurrent), or %d of this client.", unit.Counted(c.MaxConcurrent, "measurement is", "measurements are"), ofClient(c.MaxConcurrent)), once.Longest(m.Count)}
	}
	defer s.turns.leave(r.Client, c.MaxConcurrent)
	s.activate(1)
	defer s.activate(-1)
	peer, out, err := s.resolve(waiting, c, to, once, r)
	if err != nil || out.Failure != "" {
		return out, cmp.Or(ctx.Err(), err)
	}
	longer := s.turns.pause(waiting, peer.Addr(), c.TargetPause, latest)
	switch {
	case ctx.Err() != nil:
		return out, ctx.Err()
	case longer > 0:
		return out, &Refused{Paused, fmt.Sprintf("The target was measured less than %v ago, or others wait for it (target_pause).", c.TargetPause), longer}
	}
	return m.run(ctx, r, peer)
}

// enter returns the configuration, and the context that ends with the service.
func (s *Service) enter() (*Config, context.Context, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.config == nil:
		return nil, nil, unconfigured()
	case s.ctx == nil:
		return nil, nil, refused(Stopped, "The agent is starting or ending.")
	}
	s.finished.Add(1)
	return s.config, s.ctx, nil
}

// Placeholder is the target of a prober of which only the options are used (TEST-NET-1, RFC 5737).
const Placeholder = "192.0.2.1"

// Limits of the time of a measurement.
const (
	// MaxTime is the most time that a measurement may take; scrapes take less.
	MaxTime = time.Minute
	// ReplyTime is the part of a scrape_timeout that is for the reply and the network, as in blackbox_exporter.
	ReplyTime = 500 * time.Millisecond
)

// admit checks the request.
func (c *Config) admit(r Request, log *slog.Logger) (m *Module, to host, check probe.Once, err error) {
	i := slices.IndexFunc(c.Modules, func(m Module) bool { return m.Name == r.Module })
	if i < 0 {
		return nil, to, nil, refused(NotAllowed, "There is no module %.100q in on_demand.", r.Module)
	}
	m = &c.Modules[i]
	if to, err = c.Targets.parse(r.Target, c.Port); err != nil {
		return nil, to, nil, err
	}
	if check, err = m.New(metric.Discard{}, slog.New(slog.DiscardHandler), probe.Target{Path: r.Target, Probe: m.Name, Peer: Placeholder}); err != nil {
		log.Error("Module of on-demand probes not usable", "module", m.Name, "err", err)
		return nil, to, nil, refused(Unusable, "The module %q cannot be used now; the agent's log has the reason.", m.Name)
	}
	if most := check.Longest(m.Count); most > r.Within {
		return nil, to, nil, refused(TooShort, "The module %q needs up to %v for its packets and their loss_timeout; the request allows %v. Increase scrape_timeout, or reduce the module's count, interval or loss_timeout.",
			m.Name, most.Round(10*time.Millisecond), r.Within.Round(10*time.Millisecond))
	}
	return m, to, check, nil
}

// resolve returns an allowed address of the target, or the outcome without one.
func (s *Service) resolve(ctx context.Context, c *Config, to host, options probe.Once, r Request) (at netip.AddrPort, out probe.Outcome, err error) {
	if to.name == "" {
		if !options.Fits(to.addr) {
			return at, out, refused(NotAllowed, "The address %s is not of the module's family.", to.addr)
		}
		return netip.AddrPortFrom(to.addr, to.port), out, nil
	}
	found, err := s.options.Lookup(ctx, "ip", to.name)
	if err != nil {
		err = hostport.WithRemedy(err)
		r.Sink.Series(metric.ResolveFailures, r.Target, r.Module).Add(1)
		r.Log.Info("Name not resolved", "name", to.name, "err", err)
		return at, probe.Outcome{Failure: lightreason.Unresolved, Detail: errtext.Words(err)}, nil
	}
	r.Log.Info("Name resolved", "name", to.name, "addresses", fmt.Sprint(found))
	fitting := 0
	for _, a := range found {
		if a = a.Unmap(); !options.Fits(a) {
			continue
		}
		if fitting++; c.Targets.contains(a) {
			return netip.AddrPortFrom(a, to.port), out, nil
		}
	}
	if fitting == 0 {
		r.Sink.Series(metric.ResolveFailures, r.Target, r.Module).Add(1)
		return at, probe.Outcome{Failure: lightreason.Unresolved, Detail: "the name has no address of the module's family"}, nil
	}
	// The reply does not tell the address: a name of an internal network may be secret.
	return at, out, refused(NotAllowed, "No address of %q is in the targets of on_demand.", to.name)
}

// run measures an address.
func (m *Module) run(ctx context.Context, r Request, peer netip.AddrPort) (out probe.Outcome, err error) {
	once, err := m.New(r.Sink, r.Log, probe.Target{Path: r.Target, Probe: m.Name, Peer: peer.String()})
	if err != nil {
		return out, refused(Unusable, "The module %q cannot be used now.", m.Name)
	}
	r.Log.Info("Measuring", "peer", peer.String(), "packets", m.Count)
	out, err = once.Measure(ctx, m.Count)
	switch {
	case err != nil && ctx.Err() == nil:
		return probe.Outcome{Failure: lightreason.NotSent, Detail: errtext.Words(err)}, nil
	case errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return out, nil // the packets without an outcome are outstanding
	}
	return out, ctx.Err()
}
