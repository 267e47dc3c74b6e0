// Package target is the destination of a light probe: a host, its current address, and the interface to reach it.
//
// A probe embeds Options in its own, makes a Target from them, and follows it:
//
//	Follow -> resolve the name -> open(address) ... the address is no longer one of the name
//	       <-------------------- end <-----------------------------------------------------
package target

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

	"oneway.example/exporter/ctxtime"
	"oneway.example/exporter/probe"
)

// Target is the host that a probe measures. Its methods are safe for concurrent use.
type Target struct {
	path    *probe.Target
	host    string
	port    uint16
	options *Options
	log     *slog.Logger // of the process
	lookup  func(ctx context.Context, network, host string) ([]netip.Addr, error)

	mu     sync.Mutex
	told   map[Fault]bool // faults that are logged and not over; nil: none so far
	reason string
}

// New checks the peer of a path; the options are checked before. It resolves nothing. An error is a *probe.OptionError.
func New(path *probe.Target, missingPort uint16, o *Options, log *slog.Logger) (*Target, error) {
	host, port, err := Host(path.Peer, missingPort)
	if err != nil {
		return nil, err
	}
	return &Target{path: path, host: host, port: port, options: o, log: log, lookup: net.DefaultResolver.LookupNetIP}, nil
}

// Log is a logger with the names of the path and its probe. It is not kept: thousands of paths log little.
func (t *Target) Log() *slog.Logger { return t.log.With("path", t.path.Path, "probe", t.path.Probe) }

// Backoff of name resolution and of opening sockets.
const (
	minRetry = time.Second
	maxRetry = 30 * time.Second
)

// Open begins to measure the peer at one address. end ends that, and releases what Open has opened; it is always called.
type Open func(ctx context.Context, peer netip.AddrPort) (end func(), err error)

// Follow measures the host at its current address until ctx ends. Name resolution and Open are retried after an error;
// failed is called after each failed lookup. When the measured address is no longer one of the name, measuring ends and
// starts again.
//
// A host that is an address needs no goroutine: Follow returns while it is measured, and the caller calls end. Otherwise
// end is nil.
func (t *Target) Follow(ctx context.Context, failed func(), open Open) (end func()) {
	for delay := minRetry; ctx.Err() == nil; {
		peer, err := t.look(ctx, netip.AddrPort{}, failed)
		if err == nil {
			delay = minRetry
			if end, err = open(ctx, peer); err == nil {
				t.Tell(unopened, nil)
				t.lacks("")
				if t.literal().IsValid() { // an address stays what it is
					return end
				}
				t.watch(ctx, peer, failed)
				end()
				continue
			}
			if ctx.Err() == nil {
				t.Tell(unopened, err)
			}
		}
		t.lacks(err.Error())
		if !ctxtime.For(ctx, delay) {
			break
		}
		delay = min(2*delay, maxRetry)
	}
	return nil
}

// watch resolves the name at intervals. A failed lookup keeps the current address.
func (t *Target) watch(ctx context.Context, peer netip.AddrPort, failed func()) {
	for ctxtime.For(ctx, t.options.ResolveInterval) {
		now, err := t.look(ctx, peer, failed)
		if ctx.Err() != nil {
			return
		}
		if err == nil && now != peer {
			t.Log().Info("Address of the peer has changed", "old", peer.String(), "new", now.String())
			return
		}
	}
}

// look is Resolve; it counts and logs a failure.
func (t *Target) look(ctx context.Context, keep netip.AddrPort, failed func()) (netip.AddrPort, error) {
	peer, err := t.Resolve(ctx, keep)
	if ctx.Err() == nil {
		t.Tell(unresolved, err)
		if err != nil {
			failed()
		}
	}
	return peer, err
}

// Resolve returns an address that fits the options; if there are several, it prefers keep.
func (t *Target) Resolve(ctx context.Context, keep netip.AddrPort) (netip.AddrPort, error) {
	if addr := t.literal(); addr.IsValid() {
		if !t.options.Fits(addr) {
			return netip.AddrPort{}, fmt.Errorf("target: peer %s is not of family %s", t.host, t.options.Family)
		}
		return netip.AddrPortFrom(addr, t.port), nil
	}
	found, err := t.lookup(ctx, "ip", t.host)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("target: peer %q: %w", t.host, err)
	}
	first := netip.AddrPort{}
	for _, a := range found {
		at := netip.AddrPortFrom(a.Unmap(), t.port)
		if at == keep {
			return keep, nil
		}
		if !first.IsValid() && t.options.Fits(at.Addr()) {
			first = at
		}
	}
	if !first.IsValid() {
		return first, fmt.Errorf("target: peer %q has no %s address", t.host, t.options.Family)
	}
	return first, nil
}

// literal is the host if it is an IP address; else the zero Addr.
func (t *Target) literal() netip.Addr {
	addr, _ := netip.ParseAddr(t.host)
	return addr.Unmap()
}

// Lacks is the reason why the host cannot be measured now; empty: no known reason.
func (t *Target) Lacks() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.reason
}

func (t *Target) lacks(reason string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reason = strings.TrimPrefix(reason, "target: ")
}

// Fault is a reason that impairs the measurement of a host: the attribute `fault` of the log.
type Fault string

const (
	unresolved Fault = "the peer's name gives no address"
	unopened   Fault = "it cannot be measured"
)

// Tell logs a fault (err is not nil) when it begins and when it ends. A lack of file descriptors, which concerns all paths,
// is logged by the agent.
func (t *Target) Tell(what Fault, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	level := slog.LevelDebug
	switch {
	case err == nil && !t.told[what]:
		return
	case err == nil:
		t.told[what] = false
		t.Log().Info("The path's fault is over", "fault", string(what))
		return
	// Errors of the resolver do not wrap their cause.
	case !t.told[what] && !strings.Contains(err.Error(), syscall.EMFILE.Error()):
		if t.told == nil {
			t.told = map[Fault]bool{}
		}
		t.told[what], level = true, slog.LevelWarn
	}
	t.Log().Log(context.Background(), level, "The path has a fault", "fault", string(what), "err", err)
}
