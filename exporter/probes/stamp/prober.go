package stamp

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"time"

	"oneway.example/exporter/calibration"
	"oneway.example/exporter/metric"
	"oneway.example/exporter/probe"
	"oneway.example/exporter/sample"
	"oneway.example/exporter/sched"
	"oneway.example/exporter/wait"
)

// Prober measures one path.
type Prober struct {
	hubs   *Type
	env    probe.Env
	target probe.Target
	opts   Options
	host   string
	port   uint16
	log    *slog.Logger

	// OnPacket, if set before Run or Measure, is given every answered packet with
	// the delays of both directions, as the estimators get them. It is called
	// with locks held: it must be quick and must not call back.
	OnPacket func(p sample.Packet, forward, reverse sample.Delay)

	told map[fault]bool // the faults that were logged and last; Run's alone

	mu      sync.Mutex
	session *session // nil while the peer has no address
	reason  string   // why there is none
}

// Back-off of name resolution and of opening sockets.
const (
	minRetry = time.Second
	maxRetry = 30 * time.Second
)

// Run measures until ctx ends. A name that does not resolve is tried again.
func (p *Prober) Run(ctx context.Context) error {
	series := newSeries(p.env.Sink, p.target.Path, p.target.Probe)
	defer series.close()
	failures := series.scope.counter(metric.ResolveFailures)
	failures.to(0)
	failed, delay := uint64(0), minRetry
	for {
		peer, err := p.resolve(ctx, netip.AddrPort{})
		if ctx.Err() == nil {
			p.tell(unresolved, err)
		}
		if err == nil {
			delay = minRetry
			if err = p.measure(ctx, peer, series, func() { failed++; failures.to(failed) }); ctx.Err() == nil {
				p.tell(unopened, err)
			}
		} else if ctx.Err() == nil {
			failed++
			failures.to(failed)
		}
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			p.lacking(err.Error())
			if !wait.For(ctx, delay) {
				return nil
			}
			delay = min(2*delay, maxRetry)
		}
	}
}

// measure runs one session until ctx ends or the peer's address has changed.
func (p *Prober) measure(ctx context.Context, peer netip.AddrPort, series *series, resolveFailed func()) error {
	key := hubKey{p.local(peer), p.opts.Hardware}
	h, err := p.hubs.acquire(key, p.env)
	if err != nil {
		return err
	}
	defer p.hubs.release(key)
	s, err := newSession(h, peer, &p.opts, p.env.Clock, series)
	if err != nil {
		return err
	}
	if err := h.add(s); err != nil {
		return err
	}
	s.observe, s.unsent.log = p.OnPacket, p.log
	p.calibrate(ctx, s)
	p.begin(s)
	p.tell(unopened, nil)
	// To a foreign reflector a query is a test packet like any other: it must
	// not take a number between two of those that are measured.
	s.awaitOpening(ctx, 5*pollInterval) // thousands of sessions may wait
	remove := p.env.Pacer.Add(s, s.plan.Next(sched.Now()))
	p.watch(ctx, s, resolveFailed)
	remove()
	h.remove(s)
	p.begin(nil)
	s.end()
	return nil
}

// watch looks the peer's name up again and again, and the key file with it; it
// returns when the present address is no longer among the answers, or ctx has
// ended. What cannot be had for the moment leaves things as they are.
func (p *Prober) watch(ctx context.Context, s *session, failed func()) {
	for wait.For(ctx, p.opts.ResolveInterval) {
		if p.opts.KeyFile != "" {
			keys, err := loadKeys(p.opts.KeyFile)
			if err == nil {
				s.useKeys(keys)
			}
			p.tell(unread, err)
		}
		p.calibrate(ctx, s) // its route may have changed
		now, err := p.resolve(ctx, s.peer)
		if ctx.Err() != nil {
			return
		}
		p.tell(unresolved, err)
		switch {
		case err != nil:
			failed()
		case now != s.peer:
			p.log.Info("Address of the peer has changed", "old", s.peer.String(), "new", now.String())
			return
		}
	}
}

// fault is what may keep a path from being measured as it should be.
type fault string

const (
	unresolved fault = "the peer's name gives no address"
	unopened   fault = "it cannot be measured"
	unread     fault = "the key file cannot be read, the keys before stay"
	unsendable fault = "this host refuses to send its packets"
)

// tell logs a fault (err is not nil) when it begins, and when it has ended. What hits all paths at
// one time, as long as no file descriptor is left, is for the agent to say.
func (p *Prober) tell(what fault, err error) {
	level := slog.LevelDebug
	switch {
	case err == nil && !p.told[what]:
		return
	case err == nil:
		p.told[what] = false
		p.log.Info("The path's fault is over", "fault", string(what))
		return
	// The resolver's errors do not wrap their cause.
	case !p.told[what] && !strings.Contains(err.Error(), syscall.EMFILE.Error()):
		p.told[what], level = true, slog.LevelWarn
	}
	p.log.Log(context.Background(), level, "The path has a fault", "fault", string(what), "err", err)
}

// calibrate looks up what is known of the stamps of the interface that s sends over. Where
// that cannot be told, nothing is.
func (p *Prober) calibrate(ctx context.Context, s *session) {
	iface, err := p.opts.Hardware, error(nil)
	if iface == "" {
		iface, err = calibration.InterfaceTo(ctx, p.opts.local, s.peer)
	}
	if err != nil {
		p.log.Debug("Interface of the path not found; its stamps are taken as not calibrated", "err", err)
	}
	near := p.env.Calibration.Host(iface)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ends.Near = near
}

// resolve finds the peer's address; among several, keep stays if it is one.
func (p *Prober) resolve(ctx context.Context, keep netip.AddrPort) (netip.AddrPort, error) {
	if addr, err := netip.ParseAddr(p.host); err == nil {
		if !p.fits(addr.Unmap()) {
			return netip.AddrPort{}, fmt.Errorf("stamp: peer %s is not of family %s", p.host, p.opts.Family)
		}
		return netip.AddrPortFrom(addr.Unmap(), p.port), nil
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", p.host)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("stamp: peer %q: %w", p.host, err)
	}
	first := netip.AddrPort{}
	for _, a := range found {
		at := netip.AddrPortFrom(a.Unmap(), p.port)
		if at == keep {
			return keep, nil
		}
		if !first.IsValid() && p.fits(at.Addr()) {
			first = at
		}
	}
	if !first.IsValid() {
		return first, fmt.Errorf("stamp: peer %q has no %s address", p.host, p.opts.Family)
	}
	return first, nil
}

func (p *Prober) fits(a netip.Addr) bool {
	switch {
	case p.opts.Family == familyIPv4 && !a.Is4(), p.opts.Family == familyIPv6 && a.Is4():
		return false
	case p.opts.local.IsValid():
		return p.opts.local.Is4() == a.Is4()
	}
	return true
}

func (p *Prober) local(peer netip.AddrPort) netip.AddrPort {
	switch {
	case p.opts.local.IsValid():
		return netip.AddrPortFrom(p.opts.local, 0)
	case peer.Addr().Is4():
		return netip.AddrPortFrom(netip.IPv4Unspecified(), 0)
	}
	return netip.AddrPortFrom(netip.IPv6Unspecified(), 0)
}

func (p *Prober) begin(s *session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.session, p.reason = s, ""
}

func (p *Prober) lacking(reason string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reason = strings.TrimPrefix(reason, "stamp: ")
}

var _ sched.Task = (*session)(nil)
